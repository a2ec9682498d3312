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

// Kept frames and tokens come in the order in which they were told, to everybody.
func TestHub_TokensComeBetweenKeptFrames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	one, two := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	w.keep(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Hub.Changed(c.ID)
	w.Hub.Token(c.ID, token("a", "Hel"))
	w.Hub.Token(c.ID, token("a", "lo"))
	w.keep(c.ID, message("a", "Hello"))
	w.Hub.Changed(c.ID)
	w.Hub.Token(c.ID, token("a", "again"))
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

// Whatever a client saw last, it gets the rest exactly once: from memory, and after a restart from the store.
func TestHub_ResumeIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	hold := w.subscribe(c.ID, 0)
	for i := range 5 {
		w.keep(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: fmt.Sprint(i)})
		w.Hub.Changed(c.ID)
		w.Hub.Token(c.ID, token(fmt.Sprint(i), "x"))
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
	w.Hub = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
	for i, f := range all {
		r := w.subscribe(c.ID, f.Seq)
		w.keep(c.ID, message("z", fmt.Sprint(i)))
		w.Hub.Changed(c.ID)
		rest := w.read(r, withText(fmt.Sprint(i)))
		kept := 5 - (i/2 + 1) + i + 1 // those of before, those of this loop
		if len(rest) != kept {
			t.Errorf("after a restart and %d: %d frames, want %d", f.Seq, len(rest), kept)
		}
	}
}

// The numbers of tokens that a client saw before a restart are not given again.
func TestHub_NumbersGrowAcrossARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	r := w.subscribe(c.ID, 0)
	w.keep(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	w.Hub.Changed(c.ID)
	for range 40 {
		w.Hub.Token(c.ID, token("a", "x"))
	}
	w.Hub.Token(c.ID, token("a", "end"))
	list := w.read(r, withText("end"))
	last := list[len(list)-1].Seq

	w.Hub = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
	r = w.subscribe(c.ID, last)
	// which whoever takes up a turn says first
	w.keep(c.ID, reeve.Frame{Type: reeve.FrameToken, TurnID: "a", Discard: true})
	w.Hub.Changed(c.ID)
	w.Hub.Token(c.ID, token("a", "anew"))
	if got := w.read(r, withText("anew")); len(got) != 2 || !got[0].Discard || got[0].Seq <= last ||
		got[1].Seq <= got[0].Seq {
		t.Errorf("after %d: %+v", last, got)
	}
}

// A number that nobody was given does no harm to the others: one that may be a token's is taken for that, and counts
// for its client alone; one beyond is refused, and so is any before the first frame.
func TestW12_ANumberFromNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	for _, after := range []int64{1, 5000, store.FrameStep - 1} {
		if _, err := w.Hub.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
			t.Errorf("after %d where there is no frame: %v", after, err)
		}
	}
	w.keep(c.ID, reeve.Frame{Type: reeve.FrameStarted, TurnID: "a"})
	last := int64(store.FrameStep)
	for _, beyond := range []int64{-1, 0, 1, store.FrameStep / 2, store.FrameStep - 1} {
		r, other := w.subscribe(c.ID, last+beyond), w.subscribe(c.ID, 0)
		if got := other.Last(); got != last {
			t.Errorf("after %d: another is told that the last is %d, and it is %d", last+beyond, got, last)
		}
		say := fmt.Sprint("beyond ", beyond)
		w.Hub.Token(c.ID, token(say, say))
		w.Hub.Token(c.ID, token(say, "."))
		w.keep(c.ID, message("b", "between"))
		w.Hub.Changed(c.ID)
		w.Hub.Token(c.ID, token(say, "!"))
		w.keep(c.ID, message(say, say+".!"))
		w.Hub.Changed(c.ID)
		if list := w.read(r, withText(say+".!")); !strings.HasPrefix(say+".!", said(list, say)) {
			t.Errorf("%s: tokens with a hole: %q", say, said(list, say))
		}
		if list := w.read(other, withText(say+".!")); said(list, say) != say+".!" {
			t.Errorf("%s: another got %q", say, said(list, say))
		}
		last += 2 * store.FrameStep
		for _, after := range []int64{last + store.FrameStep, 1 << 62, math.MaxInt64} {
			if _, err := w.Hub.Subscribe(t.Context(), c.ID, after); reeve.CodeOf(err) != reeve.Stale {
				t.Errorf("after %d of %d: %v", after, last, err)
			}
		}
	}
	if n := w.Hub.stream(c.ID, 0).readers; n != 10 {
		t.Errorf("%d readers, want those that were let in", n)
	}
}

// Of many who come at once, one reads the store for all who were there when it began.
func TestHub_OneReadsForAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Hub.stream(w.talk().ID, 0)
	over, cancel := context.WithCancel(t.Context())
	cancel() // who has to read fails
	one, two := s.ask(), s.ask()
	w.must(s.answer(t.Context(), one))
	w.must(s.answer(over, two))
	if err := s.answer(over, s.ask()); err == nil {
		t.Error("one who came later was not told what is there by now")
	}
	w.must(s.refresh(t.Context()))
}

// A client that reads nothing harms nobody, and gets every kept frame once when it does. Of messages whose beginning it
// missed it gets no tokens.
func TestHub_ASlowClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Hub.memory = 0 // the least that each conversation has
	c := w.talk()
	slow, fast := w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)
	const messages, tokens = 20, 100
	whole := map[string]string{}
	for m := range messages {
		turn := fmt.Sprint("turn", m)
		for i := range tokens {
			piece := fmt.Sprintf("%d.%d ", m, i)
			whole[turn] += piece
			w.Hub.Token(c.ID, token(turn, piece))
		}
		w.keep(c.ID, message(turn, whole[turn]))
		w.Hub.Changed(c.ID)
		if got := said(w.read(fast, withText(whole[turn])), turn); got != whole[turn] {
			t.Fatalf("the fast one got %d of %d bytes", len(got), len(whole[turn]))
		}
	}
	w.Hub.Token(c.ID, token("last", "end"))
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

// Turns that run together: every client sees the numbers grow, and each turn's pieces whole and in order.
func TestW05_ParallelTurnsKeepTheirPieces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	const turns, pieces = 8, 200
	var group sync.WaitGroup
	readers := []*Reader{w.subscribe(c.ID, 0), w.subscribe(c.ID, 0)}
	for n := range turns {
		group.Go(func() {
			turn, text := fmt.Sprint("turn", n), ""
			for i := range pieces {
				piece := fmt.Sprintf("%d:%d ", n, i)
				text += piece
				w.Hub.Token(c.ID, token(turn, piece))
				if i%50 == 49 {
					w.keep(c.ID, message(turn, text))
					w.Hub.Changed(c.ID)
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

// What another server commits is told here too, in order.
func TestHub_FramesOfAnotherServer(t *testing.T) {
	t.Parallel()
	e, err := postgres.Open(t.Context(), postgres.Config{URL: storetest.PostgresURL(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOn(t, e)
	c := w.talk()
	r := w.subscribe(c.ID, 0)
	for i := range 250 { // more than are read at once
		w.keep(c.ID, message("a", fmt.Sprint(i)))
	}
	w.must(w.Hub.Step(t.Context()))
	for i, f := range w.read(r, withText("249")) {
		if f.Text != fmt.Sprint(i) {
			t.Fatalf("frame %d is %q", i, f.Text)
		}
	}
	w.must(w.Hub.Step(t.Context()))
}

// Conversations that nobody listens to leave memory, and lose nothing by it.
func TestHub_IdleConversationsLeaveMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	w.keep(c.ID, message("a", "kept"))
	w.Hub.Changed(c.ID)
	hold := w.subscribe(w.talk().ID, 0)
	defer hold.Close()
	w.Hub.mu.Lock()
	w.Hub.sweep(reeve.Monotonic().Add(2 * idleAfter))
	left := len(w.Hub.streams)
	w.Hub.mu.Unlock()
	if left != 1 {
		t.Errorf("%d conversations in memory, want the one that is listened to", left)
	}
	if list := w.read(w.subscribe(c.ID, 0), withText("kept")); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	for i := range 3 * mostIdle {
		w.Hub.stream(fmt.Sprint("conv", i), 0)
	}
	if n := len(w.Hub.streams); n > 2*mostIdle {
		t.Errorf("%d conversations in memory", n)
	}
}

// Memory is bounded by bytes too, and a frame larger than all of it is still told.
func TestHub_LargeFrames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	r := w.subscribe(c.ID, 0)
	big := strings.Repeat("x", 2*mostShare)
	for i := range 3 {
		w.keep(c.ID, message("a", fmt.Sprint(i, big)))
		w.Hub.Changed(c.ID)
	}
	if n := len(r.stream.lines); n != 1 {
		t.Errorf("%d frames in memory", n)
	}
	if list := w.read(r, withText("2"+big)); len(list) != 3 {
		t.Errorf("%d frames", len(list))
	}
}

func TestHub_ReadersEndWithTheirContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.subscribe(w.talk().ID, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Next(ctx); err == nil {
		t.Error("it went on")
	}
}

// A turn's first token may be faster than whoever tells that the turn began: it still comes after that.
func TestHub_TokensWaitForWhatIsExpected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.talk()
	r := w.subscribe(c.ID, 0)
	for i := range 3 {
		w.keep(c.ID, message("a", fmt.Sprint("kept ", i)))
		w.Hub.MarkPending(c.ID)
		w.Hub.Token(c.ID, reeve.Frame{TurnID: "a", Text: fmt.Sprint("token ", i)})
		w.Hub.Flush(c.ID) // has nothing left to tell
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
