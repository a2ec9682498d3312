package postgres

import (
	"context"
	"runtime"
	"sync"

	"reeve/internal/store"
)

const (
	maxGroup   = 64 // transactions that share a commit
	maxSenders = 2  // groups under way at once; while they wait for the disk, the next ones gather
)

// group commits transactions that only write, and so were held back whole, together: their statements go as one batch, which
// PostgreSQL runs as one transaction. A commit costs the same for one as for many. If one of them is refused, each is sent alone.
type group struct {
	engine  *Engine
	mu      sync.Mutex
	waiting []*member
	senders int
}

// member is one transaction on its way.
type member struct {
	held []statement
	turn chan []*member // it is its turn to send these, and itself among them
	done chan error
}

func (g *group) commit(ctx context.Context, held []statement) error {
	if len(held) == 0 {
		return nil
	}
	m := &member{held: held, turn: make(chan []*member, 1), done: make(chan error, 1)}
	g.mu.Lock()
	g.waiting = append(g.waiting, m)
	if g.senders < maxSenders {
		g.senders++
		g.next()
	}
	g.mu.Unlock()
	select {
	case batch := <-m.turn:
		defer g.pass()
		g.send(context.WithoutCancel(ctx), g.gather(batch))
		return <-m.done
	case err := <-m.done:
		return err
	}
}

// next gives those who wait to the first of them to send, so that nobody else will. The caller holds g.mu.
func (g *group) next() {
	batch := g.take(maxGroup)
	batch[0].turn <- batch
}

// take takes some of those who wait. The caller holds g.mu.
func (g *group) take(most int) []*member {
	n := min(len(g.waiting), most)
	batch := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	return batch
}

// pass lets the next ones be sent. While nobody waits there is one sender less.
func (g *group) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		g.next()
	} else {
		g.senders--
	}
}

// gather lets those who are about to commit come along: whoever can run now runs first. Where nobody can, it takes no time.
func (g *group) gather(batch []*member) []*member {
	for n := 0; n < len(batch) && len(batch) < min(maxGroup, int(g.engine.open.Load())); {
		n = len(batch)
		runtime.Gosched()
		g.mu.Lock()
		batch = append(batch, g.take(maxGroup-n)...)
		g.mu.Unlock()
	}
	return batch
}

// send commits a batch and tells each member how it went.
func (g *group) send(ctx context.Context, batch []*member) {
	var all []statement
	for _, m := range batch {
		all = append(all, m.held...)
	}
	err := g.engine.transact(ctx, all)
	if f, ok := faultOf(err); err == nil || len(batch) == 1 || ok && (f.Kind == store.FaultUnsure || f.Kind == store.FaultDown) {
		for _, m := range batch {
			m.done <- err
		}
		return
	}
	for _, m := range batch {
		m.done <- g.engine.transact(ctx, m.held)
	}
}

// transact runs statements as one transaction in one round trip.
func (e *Engine) transact(ctx context.Context, held []statement) error {
	t := &conn{engine: e, held: held}
	defer t.release(ctx)
	e.cfg.Hook.Before()
	if err := t.commit(ctx); err != nil {
		return err
	}
	e.cfg.Hook.After()
	return nil
}
