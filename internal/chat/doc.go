// Package chat is where people talk to agents: it begins conversations and turns, and tells their clients what happens.
//
// Two kinds of frame reach clients. Kept ones are rows, written in the transaction of the change they tell of, and
// numbered by it: n times [store.FrameStep]. Tokens are not kept; they are numbered between the kept frames as they
// pass. What every client may rely on:
//
//   - Numbers grow strictly. A client that comes back with the last one it saw gets every kept frame after it, once,
//     from whichever server. One with a number that cannot be of this conversation is refused.
//   - The tokens of a message come from its beginning and without a hole. A client that is too slow or comes late may not get them
//     all, or any; the message_complete has the whole text.
//
// The [Hub] holds the latest frames of each busy conversation, encoded once for everybody. A client reads from there at
// its own pace; one that is too slow is served from the store until it has caught up. So nobody waits for a client: not
// the brain, and no other client. The [Desk] writes what begins and ends a turn.
package chat
