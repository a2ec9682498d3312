package chat

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// simulation is a conversation on two servers, with clients that connect, disconnect and change the server at random.
type simulation struct {
	*harness
	*rand.Rand
	id      string
	hubs    [2]*Broadcaster
	kept    int64 // frames that are committed
	clients []*listener
}

// listener is a client with the frames that it has received.
type listener struct {
	*Reader
	begun int64   // it wants all after that
	last  int64   // what it saw last
	got   []int64 // the kept ones
	busy  bool    // it is in the middle of catching up
}

func newSimulation(w *harness, seed uint64) *simulation {
	c := &simulation{harness: w, Rand: rand.New(rand.NewPCG(seed, 12)), id: w.openConversation().ID}
	for i := range c.hubs {
		c.hubs[i] = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
		c.hubs[i].getStream(c.id, 0)
		c.hubs[i].streamShare.Store(1000) // a few lines, so that many must catch up
	}
	if c.IntN(4) == 0 { // more than are read at once
		c.kept = pageSize + 30
		w.update(func(tx *store.Tx) error {
			for i := range c.kept {
				if err := tx.Chat().AppendFrame(w.t.Context(), c.id, fmt.Sprint("before:", i),
					message("old", "before")); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c
}

func (c *simulation) hub() *Broadcaster { return c.hubs[c.IntN(len(c.hubs))] }

func (c *simulation) subscribe(l *listener, after int64) {
	c.t.Helper()
	var err error
	if l.Reader, err = c.hub().Subscribe(c.t.Context(), c.id, after); err != nil {
		c.t.Fatalf("after %d of %d: %v", after, c.kept*store.FrameStep, err)
	}
}

// randomPosition returns a position that a client can have reached.
func (c *simulation) randomPosition() int64 {
	if c.kept == 0 { // tokens come after a frame
		return 0
	}
	tokens := []int64{0, 0, 1, c.Int64N(10), store.FrameStep - 1 - c.Int64N(store.FrameStep/5)}
	return c.Int64N(c.kept+1)*store.FrameStep + tokens[c.IntN(len(tokens))]
}

// performStep performs a random action. It does not touch clients that are catching up.
func (c *simulation) performStep() {
	c.t.Helper()
	turn := fmt.Sprint("turn", c.IntN(3))
	switch c.IntN(10) {
	case 0, 1, 2:
		c.appendFrame(c.id, message(turn, "some"))
		c.kept++
	case 3:
		c.must(c.hub().Step(c.t.Context()))
	case 4:
		c.hub().Changed(c.id)
	case 5:
		if c.kept > 0 {
			c.hub().Token(c.id, token(turn, "some"))
		}
	case 6:
		l := &listener{}
		if l.begun = c.randomPosition(); c.IntN(4) == 0 {
			c.subscribe(l, -1)
			l.begun = c.kept * store.FrameStep
		} else {
			c.subscribe(l, l.begun)
		}
		l.last = l.begun
		c.clients = append(c.clients, l)
	default:
		if len(c.clients) == 0 {
			return
		}
		if l := c.clients[c.IntN(len(c.clients))]; l.busy {
			return
		} else if c.IntN(3) == 0 {
			l.Close()
			c.subscribe(l, l.last)
		} else {
			c.readOnce(l)
		}
	}
}

// readOnce reads the available frames of a client, with random actions in between. It returns false if there are none.
func (c *simulation) readOnce(l *listener) bool {
	c.t.Helper()
	if _, _, here := l.stream.listAfter(l.position, 1); here {
		lines, more, err := l.readAvailable(c.t.Context())
		c.must(err)
		l.receive(c.t, lines)
		return more == nil
	}
	_, floor, _ := l.stream.getState()
	c.meanwhile(l)
	frames, err := listStoredFrames(c.t.Context(), c.DB, c.id, l.position)
	c.must(err)
	c.meanwhile(l)
	lines, err := l.acceptStored(frames, floor)
	c.must(err)
	l.receive(c.t, lines)
	return true
}

func (c *simulation) meanwhile(l *listener) {
	l.busy = true
	defer func() { l.busy = false }()
	for range c.IntN(4) {
		c.performStep()
	}
}

// receive checks that sequence numbers increase, and records stored frames.
func (l *listener) receive(t testing.TB, lines []EncodedFrame) {
	t.Helper()
	for _, f := range lines {
		if f.Seq <= l.last {
			t.Fatalf("told %d after %d", f.Seq, l.last)
		}
		if l.last = f.Seq; f.Type != reeve.FrameToken {
			l.got = append(l.got, f.Seq)
		}
	}
}

// checkComplete checks that a client has received every stored frame after its first position.
func (l *listener) checkComplete(t testing.TB, kept int64) {
	t.Helper()
	var want []int64
	for n := l.begun/store.FrameStep + 1; n <= kept; n++ {
		want = append(want, n*store.FrameStep)
	}
	if !slices.Equal(l.got, want) {
		t.Fatalf("after %d: told %v, want %v", l.begun, l.got, want)
	}
}

// Each client gets every stored frame after its position once and in order, whatever the order in which frames are
// committed and published and clients change servers.
func TestW12_AnyOrderIsExact(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for seed := range uint64(24) {
		c := newSimulation(w, seed)
		for range 80 {
			c.performStep()
		}
		for _, h := range c.hubs {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for c.readOnce(l) { // others may speak meanwhile
			}
		}
		for _, h := range c.hubs {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for l.position < l.stream.lastStored { // nobody speaks any more
				lines, _, err := l.readAvailable(t.Context())
				c.must(err)
				l.receive(t, lines)
			}
			l.checkComplete(t, c.kept)
			l.Close()
		}
	}
}

// The same with concurrent actions.
func TestW12_AtOnceIsExact(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := newSimulation(w, 0)
	first, total := c.kept, c.kept+120
	ctx, done := context.WithTimeout(t.Context(), time.Minute) // who is told nothing must not wait for ever
	defer done()
	var group, polls sync.WaitGroup
	for _, h := range c.hubs {
		polls.Go(func() {
			for ctx.Err() == nil {
				if err := h.Step(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() {
		for i := first; i < total; i++ {
			w.appendFrame(c.id, message("a", "y"))
			if i%2 == 0 {
				c.hubs[0].Changed(c.id)
			}
			c.hubs[0].Token(c.id, token("a", "x"))
		}
	})
	for n := range uint64(4) {
		group.Go(func() {
			l, draw := &listener{}, rand.New(rand.NewPCG(n, 12))
			for l.last < total*store.FrameStep {
				r, err := c.hubs[draw.IntN(2)].Subscribe(ctx, c.id, l.last)
				if err != nil {
					t.Error(err)
					return
				}
				lines, err := r.Next(ctx)
				r.Close()
				if err != nil {
					t.Error(err)
					return
				}
				for _, f := range lines[:1+draw.IntN(len(lines))] { // it breaks off anywhere
					if f.Seq <= l.last {
						t.Errorf("told %d after %d", f.Seq, l.last)
						return
					}
					if l.last = f.Seq; f.Type != reeve.FrameToken {
						l.got = append(l.got, f.Seq)
					}
				}
			}
			if len(l.got) != int(total) {
				t.Errorf("%d of %d kept frames", len(l.got), total)
			}
		})
	}
	group.Wait()
	done()
	polls.Wait()
}
