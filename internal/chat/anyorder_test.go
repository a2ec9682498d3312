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

// crowd is a conversation on two servers, with clients that come, go, and move from one to the other. What happens next
// is drawn.
type crowd struct {
	*world
	*rand.Rand
	id      string
	hubs    [2]*Broadcaster
	kept    int64 // frames that are committed
	clients []*listener
}

// listener is a client: what it has, and where it listens now.
type listener struct {
	*Reader
	begun int64   // it wants all after that
	last  int64   // what it saw last
	got   []int64 // the kept ones
	busy  bool    // it is in the middle of catching up
}

func newCrowd(w *world, seed uint64) *crowd {
	c := &crowd{world: w, Rand: rand.New(rand.NewPCG(seed, 12)), id: w.talk().ID}
	for i := range c.hubs {
		c.hubs[i] = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
		c.hubs[i].stream(c.id, 0)
		c.hubs[i].share.Store(1000) // a few lines, so that many must catch up
	}
	if c.IntN(4) == 0 { // more than are read at once
		c.kept = page + 30
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

func (c *crowd) hub() *Broadcaster { return c.hubs[c.IntN(len(c.hubs))] }

// subscribe puts a client somewhere.
func (c *crowd) subscribe(l *listener, after int64) {
	c.t.Helper()
	var err error
	if l.Reader, err = c.hub().Subscribe(c.t.Context(), c.id, after); err != nil {
		c.t.Fatalf("after %d of %d: %v", after, c.kept*store.FrameStep, err)
	}
}

// place is any that a client can have come to.
func (c *crowd) place() int64 {
	if c.kept == 0 { // tokens come after a frame
		return 0
	}
	tokens := []int64{0, 0, 1, c.Int64N(10), store.FrameStep - 1 - c.Int64N(store.FrameStep/5)}
	return c.Int64N(c.kept+1)*store.FrameStep + tokens[c.IntN(len(tokens))]
}

// happen lets something happen, to others while a client catches up.
func (c *crowd) happen() {
	c.t.Helper()
	turn := fmt.Sprint("turn", c.IntN(3))
	switch c.IntN(10) {
	case 0, 1, 2:
		c.keep(c.id, message(turn, "some"))
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
		if l.begun = c.place(); c.IntN(4) == 0 {
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
			c.hear(l)
		}
	}
}

// hear takes what there is for a client; false means that there was nothing. While it catches up other things happen.
func (c *crowd) hear(l *listener) bool {
	c.t.Helper()
	if _, _, here := l.stream.after(l.at, 1); here {
		lines, more, err := l.now(c.t.Context())
		c.must(err)
		l.take(c.t, lines)
		return more == nil
	}
	_, floor, _ := l.stream.state()
	c.meanwhile(l)
	frames, err := kept(c.t.Context(), c.DB, c.id, l.at)
	c.must(err)
	c.meanwhile(l)
	lines, err := l.caughtUp(frames, floor)
	c.must(err)
	l.take(c.t, lines)
	return true
}

func (c *crowd) meanwhile(l *listener) {
	l.busy = true
	defer func() { l.busy = false }()
	for range c.IntN(4) {
		c.happen()
	}
}

// take is what a client does with what it is told.
func (l *listener) take(t testing.TB, lines []EncodedFrame) {
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

// whole checks that a client has every kept frame after the one with which it began.
func (l *listener) whole(t testing.TB, kept int64) {
	t.Helper()
	var want []int64
	for n := l.begun/store.FrameStep + 1; n <= kept; n++ {
		want = append(want, n*store.FrameStep)
	}
	if !slices.Equal(l.got, want) {
		t.Fatalf("after %d: told %v, want %v", l.begun, l.got, want)
	}
}

// Whatever the order in which frames are committed, noticed and told, and clients catch up and move between servers:
// each gets every kept frame after the one that it had, once, in order.
func TestW12_AnyOrderIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for seed := range uint64(24) {
		c := newCrowd(w, seed)
		for range 80 {
			c.happen()
		}
		for _, h := range c.hubs {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for c.hear(l) { // others may speak meanwhile
			}
		}
		for _, h := range c.hubs {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for l.at < l.stream.last { // nobody speaks any more
				lines, _, err := l.now(t.Context())
				c.must(err)
				l.take(t, lines)
			}
			l.whole(t, c.kept)
			l.Close()
		}
	}
}

// The same, with all of it at once.
func TestW12_AtOnceIsExact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := newCrowd(w, 0)
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
			w.keep(c.id, message("a", "y"))
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
