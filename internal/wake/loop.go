package wake

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Run starts runs as they become due, until ctx ends. Runs under way are then told to stop; what they leave is taken up
// after the next start.
func (r *Scheduler) Run(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	r.stepping.Lock()
	r.mute = nil
	r.stepping.Unlock()
	r.stopping.Store(false)
	defer context.AfterFunc(ctx, func() { r.stopping.Store(true) })()
	r.looping.Store(true)
	defer r.looping.Store(false)
	work.Go(func() error { return r.turns(inner) })
	work.Go(func() error { return r.watch(inner) })
	var busy atomic.Int64 // brains that run: one whose end is not recorded yet takes no place
	for ctx.Err() == nil {
		settle(func() int { return int(busy.Load()) })
		runs, next, err := r.Step(ctx, r.places(int(busy.Load())))
		if err != nil && ctx.Err() == nil {
			r.Log.Error("could not look for agents to wake", "error", err)
		}
		for _, run := range runs {
			busy.Add(1)
			work.Go(func() error {
				r.serve(inner, run, func() { busy.Add(-1); r.vacate() })
				return nil
			})
		}
		r.Queue.nudged.Wait(ctx, next)
	}
	return work.Wait()
}

// places is how many runs may be started while some are busy. Those whose end is on its way into the store take none,
// but never are more than twice as many as run at once begun and not ended there: that is what a crash has taken up
// again.
func (r *Scheduler) places(busy int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, min(r.Concurrent-busy, 2*r.Concurrent-r.ending-busy))
}

// vacate has the loop look, if somebody may wait for the place of a brain that is done.
func (r *Scheduler) vacate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.eager {
		r.Queue.Wakeup()
	}
}

// turns serves turns that were begun here as they come.
func (r *Scheduler) turns(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(r.Turns)
	for ctx.Err() == nil {
		for run, ok := r.nextBegun(); ok; run, ok = r.nextBegun() {
			work.Go(func() error { r.Serve(inner, run); return nil })
		}
		r.Queue.arrived.Wait(ctx, time.Hour)
	}
	return work.Wait()
}

// nextBegun takes the next run of the queue into our hands. A run that a step has found first is left to that step.
func (r *Scheduler) nextBegun() (run reeve.Run, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if run, ok = r.Queue.next(); !ok || r.grab(run.ID) {
			return run, ok
		}
	}
}

// lookEvery is how soon a run notices that it was ended on another server.
const lookEvery = 400 * time.Millisecond

// watch tells brains whose runs were ended elsewhere that they are over: the rows say so.
func (r *Scheduler) watch(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.InterruptEnded(ctx); err != nil && ctx.Err() == nil {
				r.Log.Warn("could not look whether runs were ended elsewhere", "error", err)
			}
		}
	}
}

// InterruptEnded does once what Run does again and again: it interrupts the brains here whose runs have been ended.
func (r *Scheduler) InterruptEnded(ctx context.Context) error {
	r.mu.Lock()
	ids := make([]string, 0, len(r.held))
	for id, g := range r.held {
		if g.cancel != nil {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	return r.DB.View(ctx, func(s *store.Snap) error {
		over, err := s.Runs().EndedRuns(ctx, ids)
		for _, id := range over {
			r.interrupt(id)
		}
		return err
	})
}

// Serve hands a run to the brain and records how it ended. A run whose server is stopping is let go of, to be taken up.
func (r *Scheduler) Serve(ctx context.Context, run reeve.Run) { r.serve(ctx, run, func() {}) }

// ServeBegun serves a run that was begun here and is ours by the store, for somebody who waits for it. One that a step
// found first, which looked for what is in nobody's hands, is served by that.
func (r *Scheduler) ServeBegun(ctx context.Context, run reeve.Run) {
	r.mu.Lock()
	taken := r.grab(run.ID)
	r.mu.Unlock()
	if taken {
		r.Serve(ctx, run)
	}
}

// serve is Serve for somebody who wants to know when the brain is done, and its end, if it has one, on its way into the
// store.
func (r *Scheduler) serve(ctx context.Context, run reeve.Run, done func()) {
	done = sync.OnceFunc(done)
	defer done()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := &activeRun{run: run, cancel: cancel}
	r.mu.Lock()
	r.held[run.ID] = g
	r.mu.Unlock()
	end := r.think(inner, run)
	keep := context.WithoutCancel(ctx)
	if ctx.Err() != nil && end.State != reeve.RunCompleted {
		r.release(keep, g)
		return
	}
	if end.State == reeve.RunFailed && end.Err != nil && store.IsTransient(end.Err) && r.stumble(run.ID) {
		done()
		r.Log.Warn("the store failed a run; it goes on when that is over", "run", run.ID, "error", end.Err)
		notify.Sleep(ctx, stumbleFor)
		r.drop(g, true)
		r.Queue.Wakeup()
		return
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.record(keep, run, end, done)
		if err == nil {
			r.drop(g, false)
			r.stood(run.ID)
			return
		}
		r.Log.Error("could not record the end of a run", "run", run.ID, "error", err)
		// whoever serves a step of another run has a context that does not end
		if !notify.Sleep(ctx, wait) || r.stopping.Load() {
			r.drop(g, true)
			return
		}
	}
}

const (
	stumbleFor   = time.Second // before a run that the store failed goes on
	mostStumbles = 20          // of one run; the next ends it
)

// stumble counts how often the store failed a run. False means that it was too often.
func (r *Scheduler) stumble(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stumbles[run]++
	return r.stumbles[run] <= mostStumbles
}

func (r *Scheduler) stood(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.stumbles, run)
}

// release lets go of a run whose server is stopping. That is no crash, and does not count as one. No step looks
// meanwhile: the run is in our hands, or free, and never in between.
func (r *Scheduler) release(ctx context.Context, g *activeRun) {
	r.stepping.Lock()
	defer r.stepping.Unlock()
	err := r.mute
	if err == nil {
		err = r.DB.Update(ctx, func(tx *store.Tx) error { return tx.Runs().ReleaseRun(ctx, g.run) })
		if store.IsTransient(err) {
			r.mute = err // the others do not wait for it as long, one after the other
		}
	}
	if err != nil {
		r.Log.Warn("could not let go of a run; it counts as left by a crash", "run", g.run.ID, "error", err)
	}
	r.drop(g, err != nil)
}

// drop takes a run out of our hands, unless it is in them again. Where there is doubt, the next step looks whether it
// is still ours by the store.
func (r *Scheduler) drop(g *activeRun, doubt bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[g.run.ID] == g {
		delete(r.held, g.run.ID)
	}
	r.doubt = r.doubt || doubt
}

// think runs the brain. One that panics harms its own run and nobody else.
func (r *Scheduler) think(ctx context.Context, run reeve.Run) (end reeve.RunEnd) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("a brain panicked", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.Internal, "the agent's brain failed")}
		}
	}()
	return r.Brain.Run(ctx, run, r)
}
