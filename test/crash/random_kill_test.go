package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
)

const (
	clients  = 8
	anywhere = "any, at random"
	longest  = 400 * time.Millisecond // of a server's life in the storm, from its start or from when it is ready
)

// currentServer is where clients find the server that runs now.
type currentServer struct {
	mu   sync.Mutex
	now  *process
	next chan struct{} // closed when there is another
}

func (s *currentServer) set(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
	}
	s.now, s.next = p, make(chan struct{})
}

func (s *currentServer) get() (*process, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.next
}

// killDuringCalls kills servers at random moments while clients make calls of all classes, and checks every call at the
// end.
func (r *rig) killDuringCalls(e *engine) {
	kills, patience := 20, 2*time.Minute
	if *crashFull {
		kills, patience = 1000, 30*time.Minute
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	w, err := e.newPreparedWorld()
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() {
		if err := w.remove(); err != nil {
			r.t.Error(err)
		}
	}()
	var on currentServer
	var over atomic.Bool
	var group sync.WaitGroup
	calls := make([][]stormCall, clients)
	last, err := r.serve(w)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() { last.kill() }()
	on.set(last)
	for i := range clients {
		group.Go(func() {
			for !over.Load() && ctx.Err() == nil {
				c := stormCall{scenario: scenarios[rand.N(len(scenarios))],
					told: &callOutcome{key: fmt.Sprintf("call-%d", r.keys.Add(1))}}
				if err := r.finishCall(ctx, w, &on, c); err != nil {
					r.t.Errorf("%s, at random, %s %s: %v", e.name, c.scenario.name, c.told.key, err)
				}
				calls[i] = append(calls[i], c)
			}
		})
	}
	for range kills {
		if rand.N(2) == 0 {
			_ = last.waitUntilReady(ctx) // half of them die while they start, half while they serve
		}
		select {
		case <-time.After(rand.N(longest)):
		case <-last.gone:
			r.t.Errorf("%s, at random: the server ended by itself: %v: %s", e.name, last.err, &last.log)
			over.Store(true)
		case <-ctx.Done():
		}
		last.kill()
		r.count(e, anywhere, func(l *row) { l.kills++ })
		if err = errors.Join(w.forgetDeadServers(ctx), err); err == nil {
			last, err = r.serve(w)
		}
		if err != nil || over.Load() {
			break
		}
		on.set(last)
	}
	over.Store(true)
	if err != nil {
		r.t.Error(err)
		cancel() // nobody will answer the clients
	}
	group.Wait()
	if err == nil {
		if err = r.checkCalls(ctx, e, w, last, calls); err != nil {
			r.t.Errorf("%s, after %d kills at random: %v\nserver's log: %s", e.name, kills, err, &last.log)
		}
	}
}

// stormCall is one call of killDuringCalls.
type stormCall struct {
	scenario scenario
	told     *callOutcome
}

// finishCall drives a call to its end through as many servers as it takes. One request in eight also fails at the
// witness.
func (r *rig) finishCall(ctx context.Context, w world, on *currentServer, c stormCall) error {
	if rand.N(8) == 0 {
		when := []string{"before", "counted"}[rand.N(2)]
		if err := r.witness.do(ctx, "PUT", "/plans/"+c.told.key, []witnessPlan{{Do: "drop", When: when}}, nil); err != nil {
			return err
		}
	}
	for {
		p, next := on.get()
		err := p.waitUntilReady(ctx)
		if err == nil {
			err = r.driveCall(ctx, w, p, c.scenario, c.told)
		}
		if !errors.Is(err, errGone) {
			return err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// checkCalls checks every call on the last server, and then the ledger.
func (r *rig) checkCalls(ctx context.Context, e *engine, w world, p *process, calls [][]stormCall) error {
	if err := p.waitUntilReady(ctx); err != nil {
		return err
	}
	var counts []struct {
		Key     string
		Effects int
	}
	if err := r.witness.do(ctx, "GET", "/effects", nil, &counts); err != nil {
		return err
	}
	effects := map[string]int{}
	for _, c := range counts {
		effects[c.Key] = c.Effects
	}
	var wrong []error
	least, most := int64(0), int64(0) // calls that draw on budgets
	for _, list := range calls {
		for _, c := range list {
			if c.scenario.workspace == limited {
				least++
				most += c.told.maxSends()
			}
		}
	}
	wrong = append(wrong, r.checkBudgets(ctx, w, p, least, most)) // before our own reading draws on them
	for _, list := range calls {
		for _, c := range list {
			n := effects[c.told.op.ID]
			if c.scenario.class == reeve.Local {
				n = 0
				if body, err := r.readFile(ctx, w, p, c.scenario, c.told.key); err != nil {
					wrong = append(wrong, err)
				} else if body == c.told.key {
					n = 1
				}
			}
			r.count(e, anywhere, func(l *row) {
				l.calls++
				if n == 0 {
					l.lost++
				}
				if n > 1 {
					l.doubled++
				}
				if c.told.surfaced {
					l.surfaced++
				}
			})
			if n != 1 || c.told.op.State != reeve.Committed {
				wrong = append(wrong, fmt.Errorf("%s: operation %s is %s (%s), and the witness saw %d effects",
					c.scenario.name, c.told.op.ID, c.told.op.State, c.told.op.Message, n))
			}
		}
	}
	wrong = append(wrong, p.stop(), w.checkLedger(ctx))
	return errors.Join(wrong...)
}
