package chat

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/storetest"
)

// All readers get stored frames and tokens in the order of publication.
func TestBroadcaster_OrderOfFramesAndTokens(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	one, two := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, tokenFrame("a", "Hel"))
	w.Broadcaster.Token(c.ID, tokenFrame("a", "lo"))
	w.appendFrame(c.ID, messageFrame("a", "Hello"))
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, tokenFrame("a", "again"))
	for _, r := range []*Reader{one, two} {
		list := w.read(r, withText("again"))
		got := ""
		for _, f := range list {
			got += fmt.Sprintf("%s/%d ", f.Type, f.Seq)
			if f.ConversationID != c.ID {
				t.Errorf("frame without the conversation id: %+v", f)
			}
		}
		want := "turn_started/1000000 token/1000001 token/1000002 message_complete/2000000 token/2000001 "
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// A client that reconnects gets each later frame exactly once, from memory or, after a restart, from the store.
func TestBroadcaster_ResumeIsExact(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	hold := w.subscribe(c.ID, 0)
	for i := range 5 {
		w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: fmt.Sprint(i)})
		w.Broadcaster.Changed(c.ID)
		w.Broadcaster.Token(c.ID, tokenFrame(fmt.Sprint(i), "x"))
	}
	all := w.read(hold, func(f reeve.Frame) bool { return f.TurnID == "4" && f.Type == reeve.FrameToken })
	if len(all) != 10 {
		t.Fatalf("%d frames", len(all))
	}
	for i, f := range all[:9] {
		rest := w.read(w.subscribe(c.ID, f.Seq), func(f reeve.Frame) bool { return f.Seq == all[9].Seq })
		if len(rest) != 9-i {
			t.Errorf("after %d: %d frames, want %d", f.Seq, len(rest), 9-i)
		}
	}
	w.Broadcaster = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
	for i, f := range all {
		r := w.subscribe(c.ID, f.Seq)
		w.appendFrame(c.ID, messageFrame("z", fmt.Sprint(i)))
		w.Broadcaster.Changed(c.ID)
		rest := w.read(r, withText(fmt.Sprint(i)))
		want := 5 - (i/2 + 1) + i + 1 // frames from before the restart, and frames of this loop
		if len(rest) != want {
			t.Errorf("after a restart and %d: %d frames, want %d", f.Seq, len(rest), want)
		}
	}
}

// Sequence numbers of tokens are not used again after a restart.
func TestBroadcaster_SequenceNumbersAfterRestart(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Broadcaster.Changed(c.ID)
	for range 40 {
		w.Broadcaster.Token(c.ID, tokenFrame("a", "x"))
	}
	w.Broadcaster.Token(c.ID, tokenFrame("a", "end"))
	list := w.read(r, withText("end"))
	last := list[len(list)-1].Seq

	w.Broadcaster = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
	r = w.subscribe(c.ID, last)
	// a resumed turn begins with this frame
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameToken, TurnID: "a", Discard: true})
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, tokenFrame("a", "resumed"))
	if got := w.read(r, withText("resumed")); len(got) != 2 || !got[0].Discard || got[0].Seq <= last ||
		got[1].Seq <= got[0].Seq {
		t.Errorf("after %d: %+v", last, got)
	}
}

// An unassigned position that can be that of a token is accepted for its client alone. A higher position is refused,
// and so is any position before the first frame.
func TestW12_UnknownPosition(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	for _, after := range []int64{1, 5000, store.FrameStep - 1} {
		if _, err := w.Broadcaster.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("after %d in an empty conversation: %v", after, err)
		}
	}
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	last := int64(store.FrameStep)
	for _, beyond := range []int64{-1, 0, 1, store.FrameStep / 2, store.FrameStep - 1} {
		r, other := w.subscribe(c.ID, last+beyond), w.subscribe(c.ID, 0)
		if got := other.Last(); got != last {
			t.Errorf("after %d: the last frame of another client is %d, want %d", last+beyond, got, last)
		}
		text := fmt.Sprint("beyond ", beyond)
		w.Broadcaster.Token(c.ID, tokenFrame(text, text))
		w.Broadcaster.Token(c.ID, tokenFrame(text, "."))
		w.appendFrame(c.ID, messageFrame("b", "between"))
		w.Broadcaster.Changed(c.ID)
		w.Broadcaster.Token(c.ID, tokenFrame(text, "!"))
		w.appendFrame(c.ID, messageFrame(text, text+".!"))
		w.Broadcaster.Changed(c.ID)
		if list := w.read(r, withText(text+".!")); !strings.HasPrefix(text+".!", joinTokens(list, text)) {
			t.Errorf("%s: tokens are missing: %q", text, joinTokens(list, text))
		}
		if list := w.read(other, withText(text+".!")); joinTokens(list, text) != text+".!" {
			t.Errorf("%s: another client got %q", text, joinTokens(list, text))
		}
		last += 2 * store.FrameStep
		for _, after := range []int64{last + store.FrameStep, 1 << 62, math.MaxInt64} {
			if _, err := w.Broadcaster.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
				t.Errorf("after %d of %d: %v", after, last, err)
			}
		}
	}
	if n := w.Broadcaster.getStream(c.ID, 0).readers; n != 10 {
		t.Errorf("%d readers, want the 10 that were accepted", n)
	}
}

// Concurrent subscribers share reads of the store.
func TestBroadcaster_SubscribersShareReads(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.Broadcaster.getStream(w.openConversation().ID, 0)
	canceled, cancel := context.WithCancel(t.Context())
	cancel() // a read with this context fails
	one, two := s.requestRefresh(), s.requestRefresh()
	w.must(s.serveRefresh(t.Context(), one))
	w.must(s.serveRefresh(canceled, two))
	if err := s.serveRefresh(canceled, s.requestRefresh()); err == nil {
		t.Error("a later request was served by an earlier read")
	}
	w.must(s.refresh(t.Context()))
}

// A client that does not read affects no other client. When it reads, it gets every stored frame once, and no tokens of
// messages whose beginning it has missed.
func TestBroadcaster_SlowClient(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.Broadcaster.memory = 0 // each conversation has the minimum
	c := w.openConversation()
	slow, fast := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	const messages, tokens = 20, 100
	fullText := map[string]string{}
	for m := range messages {
		turn := fmt.Sprint("turn", m)
		for i := range tokens {
			piece := fmt.Sprintf("%d.%d ", m, i)
			fullText[turn] += piece
			w.Broadcaster.Token(c.ID, tokenFrame(turn, piece))
		}
		w.appendFrame(c.ID, messageFrame(turn, fullText[turn]))
		w.Broadcaster.Changed(c.ID)
		if got := joinTokens(w.read(fast, withText(fullText[turn])), turn); got != fullText[turn] {
			t.Fatalf("the fast client got %d of %d bytes", len(got), len(fullText[turn]))
		}
	}
	w.Broadcaster.Token(c.ID, tokenFrame("last", "end"))
	list := w.read(slow, withText("end"))
	stored := 0
	for _, f := range list {
		if f.Type == reeve.FrameMessage {
			stored++
			if pieces := joinTokens(list, f.TurnID); !strings.HasPrefix(f.Text, pieces) {
				t.Errorf("%s: tokens are missing: %.60q", f.TurnID, pieces)
			}
		}
	}
	if stored != messages {
		t.Errorf("%d stored frames, want %d", stored, messages)
	}
}

// With concurrent turns, sequence numbers increase for every client, and the tokens of each turn are complete and in
// order.
func TestW05_TokensOfConcurrentTurns(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	const turns, pieces = 8, 200
	var group sync.WaitGroup
	readers := []*Reader{w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)}
	for n := range turns {
		group.Go(func() {
			turn, text := fmt.Sprint("turn", n), ""
			for i := range pieces {
				piece := fmt.Sprintf("%d:%d ", n, i)
				text += piece
				w.Broadcaster.Token(c.ID, tokenFrame(turn, piece))
				if i%50 == 49 {
					w.appendFrame(c.ID, messageFrame(turn, text))
					w.Broadcaster.Changed(c.ID)
					text = ""
				}
			}
		})
	}
	results := make([]map[string]string, len(readers))
	for i, r := range readers {
		group.Go(func() {
			open, done := map[string]string{}, map[string]string{}
			count := 0
			w.read(r, func(f reeve.Frame) bool {
				if f.Type == reeve.FrameToken {
					open[f.TurnID] += f.Text
					return false
				}
				if !strings.HasPrefix(f.Text, open[f.TurnID]) {
					t.Errorf("%s: tokens %.40q of %.40q", f.TurnID, open[f.TurnID], f.Text)
				}
				delete(open, f.TurnID)
				done[f.TurnID] += f.Text
				count++
				return count == turns*pieces/50
			})
			results[i] = done
		})
	}
	group.Wait()
	for _, done := range results {
		for n := range turns {
			want := ""
			for i := range pieces {
				want += fmt.Sprintf("%d:%d ", n, i)
			}
			if done[fmt.Sprint("turn", n)] != want {
				t.Errorf("turn %d is incomplete", n)
			}
		}
	}
}

// Frames that another server commits are published in order.
func TestBroadcaster_FramesOfAnotherServer(t *testing.T) {
	t.Parallel()
	e, err := postgres.Open(t.Context(), postgres.Config{URL: storetest.PostgresURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := newHarnessOn(t, e)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	for i := range 250 { // more than one page
		w.appendFrame(c.ID, messageFrame("a", fmt.Sprint(i)))
	}
	w.must(w.Broadcaster.Step(t.Context()))
	for i, f := range w.read(r, withText("249")) {
		if f.Text != fmt.Sprint(i) {
			t.Fatalf("frame %d is %q", i, f.Text)
		}
	}
	w.must(w.Broadcaster.Step(t.Context()))
}

// Conversations without readers leave memory without losing frames.
func TestBroadcaster_IdleConversationsLeaveMemory(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	w.appendFrame(c.ID, messageFrame("a", "stored"))
	w.Broadcaster.Changed(c.ID)
	hold := w.subscribe(w.openConversation().ID, 0)
	defer hold.Close()
	w.Broadcaster.mu.Lock()
	w.Broadcaster.sweep(reeve.Monotonic().Add(2 * idleTimeout))
	left := len(w.Broadcaster.streams)
	w.Broadcaster.mu.Unlock()
	if left != 1 {
		t.Errorf("%d conversations in memory, want the one with a reader", left)
	}
	if list := w.read(w.subscribe(c.ID, 0), withText("stored")); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	for i := range 3 * maxIdleStreams {
		w.Broadcaster.getStream(fmt.Sprint("conv", i), 0)
	}
	if n := len(w.Broadcaster.streams); n > 2*maxIdleStreams {
		t.Errorf("%d conversations in memory", n)
	}
}

// The memory limit counts bytes. A frame over the limit is still published.
func TestBroadcaster_LargeFrames(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	big := strings.Repeat("x", 2*maxShare)
	for i := range 3 {
		w.appendFrame(c.ID, messageFrame("a", fmt.Sprint(i, big)))
		w.Broadcaster.Changed(c.ID)
	}
	if n := len(r.stream.frames); n != 1 {
		t.Errorf("%d frames in memory", n)
	}
	if list := w.read(r, withText("2"+big)); len(list) != 3 {
		t.Errorf("%d frames", len(list))
	}
}

func TestBroadcaster_ReaderWithCanceledContext(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.subscribe(w.openConversation().ID, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Next(ctx); err == nil {
		t.Error("Next returned no error")
	}
}

// A token that arrives before the frame turn_started is published after it.
func TestBroadcaster_TokenWaitsForPendingFrame(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	for i := range 3 {
		w.appendFrame(c.ID, messageFrame("a", fmt.Sprint("stored ", i)))
		w.Broadcaster.MarkPending(c.ID)
		w.Broadcaster.Token(c.ID, reeve.Frame{TurnID: "a", Text: fmt.Sprint("token ", i)})
		w.Broadcaster.Flush(c.ID) // publishes nothing, because the token has published the frame
	}
	var got []string
	last := int64(0)
	for _, f := range w.read(r, withText("token 2")) {
		if f.Seq <= last {
			t.Errorf("%q has number %d, not above %d", f.Text, f.Seq, last)
		}
		last = f.Seq
		got = append(got, f.Text)
	}
	if want := "stored 0, token 0, stored 1, token 1, stored 2, token 2"; strings.Join(got, ", ") != want {
		t.Errorf("frames %v, want %s", got, want)
	}
}
