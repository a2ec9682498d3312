package wake

import (
	"context"
	"maps"

	"reeve"
	"reeve/internal/store"
)

// claimRuns claims up to n unfinished runs that no process serves. They are runs of servers that are gone, parked runs
// whose results have arrived, and orphans, which the store assigns to this process although no goroutine serves them.
// A run that has reached MaxAttempts is failed and returned in ended.
//
// The flag hasUnserved comes from the store. If it is false, every open run belongs to this process and is running, and
// claimRuns does not query for others.
func (r *Scheduler) claimRuns(ctx context.Context, tx *store.Tx, n int,
	hasUnserved, findOrphans bool) (runs []reeve.Run, ended []recordedEnd, err error) {
	if n <= 0 {
		return nil, nil, nil
	}
	if findOrphans {
		if runs, err = r.claimOrphans(ctx, tx, n); err != nil {
			return nil, nil, err
		}
	}
	if !hasUnserved {
		return runs, nil, nil
	}
	claimed, err := tx.Runs().ClaimRuns(ctx, r.Process, n-len(runs))
	if err != nil {
		return nil, nil, err
	}
	for _, run := range claimed {
		if run.Attempts <= r.MaxAttempts {
			runs = append(runs, run)
			continue
		}
		failed, err := r.failCrashedRun(ctx, tx, run)
		if err != nil {
			return nil, nil, err
		}
		ended = append(ended, failed...)
	}
	return runs, ended, nil
}

// claimOrphans claims up to n runs that the store assigns to this process and that are neither active nor enqueued. It
// marks them as active at once, so that a concurrent ServeStarted does not serve them too.
func (r *Scheduler) claimOrphans(ctx context.Context, tx *store.Tx, n int) (runs []reeve.Run, err error) {
	r.mu.Lock()
	r.releaseClaimed() // the transaction may be a retry of one that failed
	activeBefore, unseen := maps.Clone(r.active), maps.Clone(r.neverServed)
	// A run that ends during the query below was active or enqueued before it.
	queuedBefore := r.Queue.listQueuedIDs()
	r.mu.Unlock()
	owned, err := tx.Runs().RunsOwnedBy(ctx, r.Process)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	queued := r.Queue.listQueuedIDs()
	for _, run := range owned {
		isServed := activeBefore[run.ID] != nil || queuedBefore[run.ID] || queued[run.ID]
		if !isServed && len(runs) < n && r.activate(run.ID) {
			run.Resumed = !r.neverServed[run.ID]
			runs = append(runs, run)
			r.claimedInStep = append(r.claimedInStep, run.ID)
		}
		delete(unseen, run.ID)
	}
	for id := range unseen { // the run ended without being served
		delete(r.neverServed, id)
	}
	return runs, nil
}

// activate adds a run to the active runs. It returns false if the run is active already. The caller holds mu.
func (r *Scheduler) activate(run string) bool {
	if r.active[run] != nil {
		return false
	}
	r.active[run] = &activeRun{}
	return true
}

// releaseClaimed removes the orphans that a failed step has claimed from the active runs. The caller holds mu.
func (r *Scheduler) releaseClaimed() {
	for _, id := range r.claimedInStep {
		delete(r.active, id)
	}
	r.claimedInStep = nil
}
