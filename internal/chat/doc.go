// Package chat connects people with agents. It opens conversations, begins turns, and sends the frames of a
// conversation to its clients.
//
// A turn passes through these functions. Service.BeginTurn fetches the attachments and, in one transaction, inserts the
// user message, the wake, the run and the frame turn_started (insertTurn). After the commit it passes the run to the
// Queue, where package wake serves it, and tells the Broadcaster that there are new frames. While the brain answers, it
// calls Broadcaster.Token for each piece of text, and Broadcaster.Changed after it has committed messages or calls.
// When the run ends, OnRunEnd appends the last frames in the transaction that ends the run, and AfterRunEnd publishes
// them.
//
// There are two kinds of frames. Stored frames are rows, written in the transaction of the change that they describe.
// The nth stored frame has the sequence number n times [store.FrameStep]. Tokens are not stored. They get sequence
// numbers between those of the stored frames. Every client can rely on two rules:
//
//   - Sequence numbers increase strictly. A client that reconnects with the last number it has seen gets each later
//     stored frame once, from any server. A number that this conversation cannot have reached is refused.
//   - The tokens of a message arrive from its beginning and without gaps. A client that is late or slow may miss them.
//     The frame message_complete contains the whole text.
//
// The [Broadcaster] keeps the latest frames of each busy conversation in memory, encoded once for all clients. A
// [Reader] reads them at its own pace. A reader that falls behind reads stored frames from the store until it has
// caught up. So neither a brain nor another client ever waits for a client.
package chat
