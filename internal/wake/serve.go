package wake

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

const (
	storeRetryDelay  = time.Second // wait before a run is resumed after a store failure
	maxStoreFailures = 20          // store failures of one run; the next failure ends the run
)

// Serve runs the brain for a run and records the end. If ctx ends first, Serve releases the run, so that a server can
// resume it.
func (r *Scheduler) Serve(ctx context.Context, run reeve.Run) { r.serve(ctx, run, func() {}) }

// ServeStarted serves a run that this process has inserted and owns in the store. It returns at once if a step has
// claimed the run as an orphan, because the caller of that step serves it.
func (r *Scheduler) ServeStarted(ctx context.Context, run reeve.Run) {
	r.mu.Lock()
	isFree := r.activate(run.ID)
	r.mu.Unlock()
	if isFree {
		r.Serve(ctx, run)
	}
}

// serve is Serve with a callback. It calls brainDone once, when the brain has returned and the end of the run, if there
// is one, is about to be recorded.
func (r *Scheduler) serve(ctx context.Context, run reeve.Run, brainDone func()) {
	brainDone = sync.OnceFunc(brainDone)
	defer brainDone()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &activeRun{run: run, cancel: cancel}
	r.mu.Lock()
	r.active[run.ID] = a
	r.mu.Unlock()
	end := r.runBrain(inner, run)
	detached := context.WithoutCancel(ctx)
	if ctx.Err() != nil && end.State != reeve.RunCompleted {
		r.releaseRun(detached, a)
		return
	}
	failedByStore := end.State == reeve.RunFailed && end.Err != nil && store.IsTransient(end.Err)
	if failedByStore && r.countStoreFailure(run.ID) {
		brainDone()
		r.Log.Warn("store failed during a run; the run is resumed", "run", run.ID, "error", end.Err)
		notify.Sleep(ctx, storeRetryDelay)
		r.deactivate(a, true)
		r.Queue.Wakeup()
		return
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := r.recordEnd(detached, run, end, brainDone)
		if err == nil {
			r.deactivate(a, false)
			r.clearStoreFailures(run.ID)
			return
		}
		r.Log.Error("cannot record the end of a run", "run", run.ID, "error", err)
		// ctx may not end when the server stops, so isStopping is checked too.
		if !notify.Sleep(ctx, wait) || r.isStopping.Load() {
			r.deactivate(a, true)
			return
		}
	}
}

// runBrain runs the brain. A panic of the brain fails the run.
func (r *Scheduler) runBrain(ctx context.Context, run reeve.Run) (end reeve.RunEnd) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("brain panicked", "run", run.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			end = reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.Internal, "the agent's brain failed")}
		}
	}()
	return r.Brain.Run(ctx, run, r)
}

// countStoreFailure counts a store failure of a run. It reports whether the run may be resumed.
func (r *Scheduler) countStoreFailure(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.storeFailures[run]++
	return r.storeFailures[run] <= maxStoreFailures
}

func (r *Scheduler) clearStoreFailures(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.storeFailures, run)
}

// releaseRun releases a run because the server stops. The release does not count as a crash. No step runs meanwhile, so
// a step sees the run either as active or as released.
func (r *Scheduler) releaseRun(ctx context.Context, a *activeRun) {
	r.stepMu.Lock()
	defer r.stepMu.Unlock()
	err := r.releaseErr
	if err == nil {
		err = r.DB.Update(ctx, func(tx *store.Tx) error { return tx.Runs().ReleaseRun(ctx, a.run) })
		if store.IsTransient(err) {
			r.releaseErr = err // the store is down; later releases fail at once instead of waiting one after the other
		}
	}
	if err != nil {
		r.Log.Warn("cannot release a run; it counts as crashed", "run", a.run.ID, "error", err)
	}
	r.deactivate(a, err != nil)
}

// deactivate removes a run from the active runs, unless the run was activated again in the meantime. If mayBeOrphan is
// set, the next step checks whether the store still assigns the run to this process.
func (r *Scheduler) deactivate(a *activeRun, mayBeOrphan bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active[a.run.ID] == a {
		delete(r.active, a.run.ID)
	}
	r.mayHaveOrphans = r.mayHaveOrphans || mayBeOrphan
}
