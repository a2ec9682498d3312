package wake

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/store"
)

// Run starts and serves runs as they become due, until ctx ends. It then interrupts the active runs and releases them,
// so that this or another server resumes them later.
func (r *Scheduler) Run(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	r.stepMu.Lock()
	r.releaseErr = nil
	r.stepMu.Unlock()
	r.isStopping.Store(false)
	defer context.AfterFunc(ctx, func() { r.isStopping.Store(true) })()
	r.isLooping.Store(true)
	defer r.isLooping.Store(false)
	work.Go(func() error { return r.serveTurns(inner) })
	work.Go(func() error { return r.watchEndedRuns(inner) })
	var busy atomic.Int64 // brains that are running; a run whose end is only being recorded does not count
	for ctx.Err() == nil {
		waitUntilStable(func() int { return int(busy.Load()) })
		runs, next, err := r.Step(ctx, r.countFreeSlots(int(busy.Load())))
		if err != nil && ctx.Err() == nil {
			r.Log.Error("cannot start due runs", "error", err)
		}
		for _, run := range runs {
			busy.Add(1)
			work.Go(func() error {
				r.serve(inner, run, func() { busy.Add(-1); r.notifyFreeSlot() })
				return nil
			})
		}
		r.Queue.wakesChanged.Wait(ctx, next)
	}
	return work.Wait()
}

// countFreeSlots returns the number of runs that may start while busy brains are running. Runs whose end is being
// recorded take no slot. However, at most 2*MaxRuns runs are unfinished in the store, which bounds the number of runs
// that a crash interrupts.
func (r *Scheduler) countFreeSlots(busy int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, min(r.MaxRuns-busy, 2*r.MaxRuns-r.unrecordedEnds-busy))
}

// notifyFreeSlot makes the loop step again if due wakes may be waiting for a slot.
func (r *Scheduler) notifyFreeSlot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mayHaveDueWakes {
		r.Queue.Wakeup()
	}
}

// serveTurns serves enqueued turns as they arrive, until ctx ends.
func (r *Scheduler) serveTurns(ctx context.Context) error {
	work, inner := errgroup.WithContext(ctx)
	work.SetLimit(r.MaxTurns)
	for ctx.Err() == nil {
		for run, ok := r.dequeueTurn(); ok; run, ok = r.dequeueTurn() {
			work.Go(func() error { r.Serve(inner, run); return nil })
		}
		r.Queue.turnEnqueued.Wait(ctx, time.Hour)
	}
	return work.Wait()
}

// dequeueTurn removes the oldest enqueued turn and marks it as active. It drops turns that are active already, because
// a step has claimed them as orphans.
func (r *Scheduler) dequeueTurn() (run reeve.Run, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if run, ok = r.Queue.dequeue(); !ok || r.activate(run.ID) {
			return run, ok
		}
	}
}

// endedCheckInterval is the longest time until a brain is interrupted after another server has ended its run.
const endedCheckInterval = 400 * time.Millisecond

// watchEndedRuns interrupts brains whose runs another server has ended, until ctx ends.
func (r *Scheduler) watchEndedRuns(ctx context.Context) error {
	tick := time.NewTicker(endedCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := r.InterruptEnded(ctx); err != nil && ctx.Err() == nil {
				r.Log.Warn("cannot check for runs ended by other servers", "error", err)
			}
		}
	}
}

// InterruptEnded checks once which active runs have ended in the store, and interrupts their brains. Run calls it
// periodically.
func (r *Scheduler) InterruptEnded(ctx context.Context) error {
	r.mu.Lock()
	ids := make([]string, 0, len(r.active))
	for id, a := range r.active {
		if a.cancel != nil {
			ids = append(ids, id)
		}
	}
	r.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	return r.DB.View(ctx, func(s *store.Snap) error {
		ended, err := s.Runs().EndedRuns(ctx, ids)
		for _, id := range ended {
			r.interruptRun(id)
		}
		return err
	})
}

// waitUntilStable yields the processor until two consecutive counts are equal. Brains often end in bursts, and one
// transaction can handle a whole burst.
func waitUntilStable(count func() int) {
	for before, now := -1, 0; before != now; before, now = now, count() {
		runtime.Gosched()
	}
}
