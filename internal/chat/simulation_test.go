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
	servers [2]*Broadcaster
	stored  int64 // number of committed frames
	clients []*testClient
}

// testClient is a client with the positions of the stored frames that it has received.
type testClient struct {
	*Reader
	start      int64   // position of the first subscription
	last       int64   // position of the last received frame
	received   []int64 // positions of the received stored frames
	catchingUp bool
}

func newSimulation(w *harness, seed uint64) *simulation {
	c := &simulation{harness: w, Rand: rand.New(rand.NewPCG(seed, 12)), id: w.openConversation().ID}
	for i := range c.servers {
		c.servers[i] = NewBroadcaster(w.DB, slog.New(slog.DiscardHandler))
		c.servers[i].getStream(c.id, 0)
		c.servers[i].streamShare.Store(1000) // a few frames, so that many clients must catch up
	}
	if c.IntN(4) == 0 { // more than one page
		c.stored = pageSize + 30
		w.update(func(tx *store.Tx) error {
			for i := range c.stored {
				if err := tx.Chat().AppendFrame(w.t.Context(), c.id, fmt.Sprint("before:", i),
					messageFrame("old", "before")); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c
}

func (c *simulation) randomServer() *Broadcaster { return c.servers[c.IntN(len(c.servers))] }

func (c *simulation) subscribe(l *testClient, after int64) {
	c.t.Helper()
	var err error
	if l.Reader, err = c.randomServer().Subscribe(c.t.Context(), c.id, after); err != nil {
		c.t.Fatalf("after %d of %d: %v", after, c.stored*store.FrameStep, err)
	}
}

// randomPosition returns a position that a client can have reached.
func (c *simulation) randomPosition() int64 {
	if c.stored == 0 { // there are no tokens before the first stored frame
		return 0
	}
	tokens := []int64{0, 0, 1, c.Int64N(10), store.FrameStep - 1 - c.Int64N(store.FrameStep/5)}
	return c.Int64N(c.stored+1)*store.FrameStep + tokens[c.IntN(len(tokens))]
}

// performStep performs a random action. It does not touch clients that are catching up.
func (c *simulation) performStep() {
	c.t.Helper()
	turn := fmt.Sprint("turn", c.IntN(3))
	switch c.IntN(10) {
	case 0, 1, 2:
		c.appendFrame(c.id, messageFrame(turn, "some"))
		c.stored++
	case 3:
		c.must(c.randomServer().Step(c.t.Context()))
	case 4:
		c.randomServer().Changed(c.id)
	case 5:
		if c.stored > 0 {
			c.randomServer().Token(c.id, tokenFrame(turn, "some"))
		}
	case 6:
		l := &testClient{}
		if l.start = c.randomPosition(); c.IntN(4) == 0 {
			c.subscribe(l, -1)
			l.start = c.stored * store.FrameStep
		} else {
			c.subscribe(l, l.start)
		}
		l.last = l.start
		c.clients = append(c.clients, l)
	default:
		if len(c.clients) == 0 {
			return
		}
		if l := c.clients[c.IntN(len(c.clients))]; l.catchingUp {
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
func (c *simulation) readOnce(l *testClient) bool {
	c.t.Helper()
	if _, _, here := l.stream.listAfter(l.position, 1); here {
		lines, more, err := l.readAvailable(c.t.Context())
		c.must(err)
		l.receive(c.t, lines)
		return more == nil
	}
	_, floor, _ := l.stream.getState()
	c.performSteps(l)
	frames, err := listStoredFrames(c.t.Context(), c.DB, c.id, l.position)
	c.must(err)
	c.performSteps(l)
	lines, err := l.acceptStored(frames, floor)
	c.must(err)
	l.receive(c.t, lines)
	return true
}

// performSteps performs up to three random actions while a client is catching up.
func (c *simulation) performSteps(l *testClient) {
	l.catchingUp = true
	defer func() { l.catchingUp = false }()
	for range c.IntN(4) {
		c.performStep()
	}
}

// receive checks that sequence numbers increase, and records stored frames.
func (l *testClient) receive(t testing.TB, lines []EncodedFrame) {
	t.Helper()
	for _, f := range lines {
		if f.Seq <= l.last {
			t.Fatalf("received %d after %d", f.Seq, l.last)
		}
		if l.last = f.Seq; f.Type != reeve.FrameToken {
			l.received = append(l.received, f.Seq)
		}
	}
}

// checkComplete checks that a client has received every stored frame after its first position.
func (l *testClient) checkComplete(t testing.TB, stored int64) {
	t.Helper()
	var want []int64
	for n := l.start/store.FrameStep + 1; n <= stored; n++ {
		want = append(want, n*store.FrameStep)
	}
	if !slices.Equal(l.received, want) {
		t.Fatalf("after %d: received %v, want %v", l.start, l.received, want)
	}
}

// Each client gets every stored frame after its position once and in order, for random orders of commits, publications
// and changes of the server.
func TestW12_RandomOrder(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for seed := range uint64(24) {
		c := newSimulation(w, seed)
		for range 80 {
			c.performStep()
		}
		for _, h := range c.servers {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for c.readOnce(l) { // other actions may happen in between
			}
		}
		for _, h := range c.servers {
			c.must(h.Step(t.Context()))
		}
		for _, l := range c.clients {
			for l.position < l.stream.lastStored { // without other actions
				lines, _, err := l.readAvailable(t.Context())
				c.must(err)
				l.receive(t, lines)
			}
			l.checkComplete(t, c.stored)
			l.Close()
		}
	}
}

// Each client gets every stored frame once and in order even if commits, publications and reads are concurrent.
func TestW12_Concurrent(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	c := newSimulation(w, 0)
	first, total := c.stored, c.stored+120
	ctx, done := context.WithTimeout(t.Context(), time.Minute) // a client without frames must not wait forever
	defer done()
	var group, polls sync.WaitGroup
	for _, h := range c.servers {
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
			w.appendFrame(c.id, messageFrame("a", "y"))
			if i%2 == 0 {
				c.servers[0].Changed(c.id)
			}
			c.servers[0].Token(c.id, tokenFrame("a", "x"))
		}
	})
	for n := range uint64(4) {
		group.Go(func() {
			l, draw := &testClient{}, rand.New(rand.NewPCG(n, 12))
			for l.last < total*store.FrameStep {
				r, err := c.servers[draw.IntN(2)].Subscribe(ctx, c.id, l.last)
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
				for _, f := range lines[:1+draw.IntN(len(lines))] { // the client disconnects at a random frame
					if f.Seq <= l.last {
						t.Errorf("received %d after %d", f.Seq, l.last)
						return
					}
					if l.last = f.Seq; f.Type != reeve.FrameToken {
						l.received = append(l.received, f.Seq)
					}
				}
			}
			if len(l.received) != int(total) {
				t.Errorf("received %d of %d stored frames", len(l.received), total)
			}
		})
	}
	group.Wait()
	done()
	polls.Wait()
}
