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
func TestBroadcaster_TokensComeBetweenKeptFrames(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	one, two := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, token("a", "Hel"))
	w.Broadcaster.Token(c.ID, token("a", "lo"))
	w.appendFrame(c.ID, message("a", "Hello"))
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, token("a", "again"))
	for _, r := range []*Reader{one, two} {
		list := w.read(r, withText("again"))
		got := ""
		for _, f := range list {
			got += fmt.Sprintf("%s/%d ", f.Type, f.Seq)
			if f.ConversationID != c.ID {
				t.Errorf("frame of no conversation: %+v", f)
			}
		}
		if want := "turn_started/1000000 token/1000001 token/1000002 message_complete/2000000 token/2000001 "; got != want {
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
		w.Broadcaster.Token(c.ID, token(fmt.Sprint(i), "x"))
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
		w.appendFrame(c.ID, message("z", fmt.Sprint(i)))
		w.Broadcaster.Changed(c.ID)
		rest := w.read(r, withText(fmt.Sprint(i)))
		kept := 5 - (i/2 + 1) + i + 1 // those of before, those of this loop
		if len(rest) != kept {
			t.Errorf("after a restart and %d: %d frames, want %d", f.Seq, len(rest), kept)
		}
	}
}

// Sequence numbers of tokens are not used again after a restart.
func TestBroadcaster_NumbersGrowAcrossARestart(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Broadcaster.Changed(c.ID)
	for range 40 {
		w.Broadcaster.Token(c.ID, token("a", "x"))
	}
	w.Broadcaster.Token(c.ID, token("a", "end"))
	list := w.read(r, withText("end"))
	last := list[len(list)-1].Seq

	w.Broadcaster = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
	r = w.subscribe(c.ID, last)
	// a resumed turn begins with this frame
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameToken, TurnID: "a", Discard: true})
	w.Broadcaster.Changed(c.ID)
	w.Broadcaster.Token(c.ID, token("a", "anew"))
	if got := w.read(r, withText("anew")); len(got) != 2 || !got[0].Discard || got[0].Seq <= last ||
		got[1].Seq <= got[0].Seq {
		t.Errorf("after %d: %+v", last, got)
	}
}

// An unassigned position that can be that of a token is accepted for its client alone. A higher position is refused,
// and so is any position before the first frame.
func TestW12_ANumberFromNowhere(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	for _, after := range []int64{1, 5000, store.FrameStep - 1} {
		if _, err := w.Broadcaster.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("after %d where there is no frame: %v", after, err)
		}
	}
	w.appendFrame(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	last := int64(store.FrameStep)
	for _, beyond := range []int64{-1, 0, 1, store.FrameStep / 2, store.FrameStep - 1} {
		r, other := w.subscribe(c.ID, last+beyond), w.subscribe(c.ID, 0)
		if got := other.Last(); got != last {
			t.Errorf("after %d: another is told that the last is %d, and it is %d", last+beyond, got, last)
		}
		say := fmt.Sprint("beyond ", beyond)
		w.Broadcaster.Token(c.ID, token(say, say))
		w.Broadcaster.Token(c.ID, token(say, "."))
		w.appendFrame(c.ID, message("b", "between"))
		w.Broadcaster.Changed(c.ID)
		w.Broadcaster.Token(c.ID, token(say, "!"))
		w.appendFrame(c.ID, message(say, say+".!"))
		w.Broadcaster.Changed(c.ID)
		if list := w.read(r, withText(say+".!")); !strings.HasPrefix(say+".!", said(list, say)) {
			t.Errorf("%s: tokens with a hole: %q", say, said(list, say))
		}
		if list := w.read(other, withText(say+".!")); said(list, say) != say+".!" {
			t.Errorf("%s: another got %q", say, said(list, say))
		}
		last += 2 * store.FrameStep
		for _, after := range []int64{last + store.FrameStep, 1 << 62, math.MaxInt64} {
			if _, err := w.Broadcaster.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
				t.Errorf("after %d of %d: %v", after, last, err)
			}
		}
	}
	if n := w.Broadcaster.getStream(c.ID, 0).readers; n != 10 {
		t.Errorf("%d readers, want those that were let in", n)
	}
}

// Concurrent subscribers share reads of the store.
func TestBroadcaster_OneReadsForAll(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.Broadcaster.getStream(w.openConversation().ID, 0)
	over, cancel := context.WithCancel(t.Context())
	cancel() // who has to read fails
	one, two := s.requestRefresh(), s.requestRefresh()
	w.must(s.serveRefresh(t.Context(), one))
	w.must(s.serveRefresh(over, two))
	if err := s.serveRefresh(over, s.requestRefresh()); err == nil {
		t.Error("one who came later was not told what is there by now")
	}
	w.must(s.refresh(t.Context()))
}

// A client that does not read affects no other client. When it reads, it gets every stored frame once, and no tokens of
// messages whose beginning it has missed.
func TestBroadcaster_ASlowClient(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.Broadcaster.memory = 0 // the least that each conversation has
	c := w.openConversation()
	slow, fast := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	const messages, tokens = 20, 100
	whole := map[string]string{}
	for m := range messages {
		turn := fmt.Sprint("turn", m)
		for i := range tokens {
			piece := fmt.Sprintf("%d.%d ", m, i)
			whole[turn] += piece
			w.Broadcaster.Token(c.ID, token(turn, piece))
		}
		w.appendFrame(c.ID, message(turn, whole[turn]))
		w.Broadcaster.Changed(c.ID)
		if got := said(w.read(fast, withText(whole[turn])), turn); got != whole[turn] {
			t.Fatalf("the fast one got %d of %d bytes", len(got), len(whole[turn]))
		}
	}
	w.Broadcaster.Token(c.ID, token("last", "end"))
	list := w.read(slow, withText("end"))
	kept := 0
	for _, f := range list {
		if f.Type == reeve.FrameMessage {
			kept++
			if pieces := said(list, f.TurnID); !strings.HasPrefix(f.Text, pieces) {
				t.Errorf("%s: tokens with a hole: %.60q", f.TurnID, pieces)
			}
		}
	}
	if kept != messages {
		t.Errorf("%d kept frames, want %d", kept, messages)
	}
}

// With concurrent turns, sequence numbers increase for every client, and the tokens of each turn are complete and in
// order.
func TestW05_ParallelTurnsKeepTheirPieces(t *testing.T) {
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
				w.Broadcaster.Token(c.ID, token(turn, piece))
				if i%50 == 49 {
					w.appendFrame(c.ID, message(turn, text))
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
				t.Errorf("turn %d is not whole", n)
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
	for i := range 250 { // more than are read at once
		w.appendFrame(c.ID, message("a", fmt.Sprint(i)))
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
	w.appendFrame(c.ID, message("a", "kept"))
	w.Broadcaster.Changed(c.ID)
	hold := w.subscribe(w.openConversation().ID, 0)
	defer hold.Close()
	w.Broadcaster.mu.Lock()
	w.Broadcaster.sweep(reeve.Monotonic().Add(2 * idleTimeout))
	left := len(w.Broadcaster.streams)
	w.Broadcaster.mu.Unlock()
	if left != 1 {
		t.Errorf("%d conversations in memory, want the one that is listened to", left)
	}
	if list := w.read(w.subscribe(c.ID, 0), withText("kept")); len(list) != 1 {
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
		w.appendFrame(c.ID, message("a", fmt.Sprint(i, big)))
		w.Broadcaster.Changed(c.ID)
	}
	if n := len(r.stream.frames); n != 1 {
		t.Errorf("%d frames in memory", n)
	}
	if list := w.read(r, withText("2"+big)); len(list) != 3 {
		t.Errorf("%d frames", len(list))
	}
}

func TestBroadcaster_ReadersEndWithTheirContext(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	r := w.subscribe(w.openConversation().ID, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Next(ctx); err == nil {
		t.Error("it went on")
	}
}

// A token that arrives before the frame turn_started is published after it.
func TestBroadcaster_TokensWaitForWhatIsExpected(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := w.openConversation()
	r := w.subscribe(c.ID, 0)
	for i := range 3 {
		w.appendFrame(c.ID, message("a", fmt.Sprint("kept ", i)))
		w.Broadcaster.MarkPending(c.ID)
		w.Broadcaster.Token(c.ID, reeve.Frame{TurnID: "a", Text: fmt.Sprint("token ", i)})
		w.Broadcaster.Flush(c.ID) // has nothing left to tell
	}
	var got []string
	last := int64(0)
	for _, f := range w.read(r, withText("token 2")) {
		if f.Seq <= last {
			t.Errorf("%q is numbered %d after %d", f.Text, f.Seq, last)
		}
		last = f.Seq
		got = append(got, f.Text)
	}
	if want := "kept 0, token 0, kept 1, token 1, kept 2, token 2"; strings.Join(got, ", ") != want {
		t.Errorf("told %v", got)
	}
}
