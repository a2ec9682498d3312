package wake

import (
	"context"
	"errors"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

const (
	maxWakesPerRun   = 1000                   // wakes that one run serves
	maxTimersPerStep = 500                    // timers that one step fires
	pollInterval     = 2 * time.Second        // longest time between two checks for work from other servers
	maxReadAttempts  = 5                      // attempts to read the subscription, timer or entities of a wake
	firstReadDelay   = 250 * time.Millisecond // delay before the second attempt; doubles with each attempt
)

// Step fires due timers, claims runs that no process serves, and starts runs for due wakes, up to n runs in all. It
// returns the runs and the time until there may be more work. The caller must pass every returned run to Serve.
//
// All of this is one transaction. A timer advances together with the wake that it queues, and wakes are marked as
// taken together with the run that serves them.
func (r *Scheduler) Step(ctx context.Context, n int) (runs []reeve.Run, next time.Duration, err error) {
	r.stepMu.Lock()
	defer r.stepMu.Unlock()
	// A commit with an unknown outcome may have inserted a run that was never enqueued.
	uncertain := r.DB.UncertainCommits()
	r.mu.Lock()
	if !r.isLooping.Load() { // otherwise Run serves the enqueued turns
		for run, ok := r.Queue.dequeue(); ok; run, ok = r.Queue.dequeue() {
			r.mayHaveOrphans, r.neverServed[run.ID] = true, true
		}
	}
	findOrphans := r.mayHaveOrphans || uncertain != r.uncertainSeen
	// Cleared before the transaction: an orphan that appears during it is left to the next step.
	r.mayHaveOrphans, r.uncertainSeen = false, uncertain
	r.mu.Unlock()
	var ended []recordedEnd
	for again := true; again; { // repeat without the unreadable wake until all due wakes can be read
		runs, next, ended, err = r.stepInTx(ctx, n, findOrphans)
		var u *unreadableWake
		if again = errors.As(err, &u); again {
			if err = r.delayUnreadable(ctx, u); err != nil {
				break
			}
		}
	}
	if err == nil {
		r.publishEnds(ended)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.releaseClaimed()
		r.mayHaveOrphans = true // the transaction may have been committed despite the error
		return nil, time.Second, err
	}
	for _, run := range runs {
		r.active[run.ID] = &activeRun{}
		delete(r.neverServed, run.ID)
	}
	r.claimedInStep = nil
	if r.mayHaveDueWakes = len(runs) == n; r.mayHaveDueWakes && findOrphans {
		r.mayHaveOrphans = true // there may be more orphans than n
	}
	return runs, next, nil
}

// stepInTx executes one transaction of Step. It also returns the runs that it ended.
func (r *Scheduler) stepInTx(ctx context.Context, n int,
	findOrphans bool) (runs []reeve.Run, next time.Duration, ended []recordedEnd, err error) {
	// Kept in a variable, because the store may replace the error that aborts a transaction.
	var unreadable *unreadableWake
	var now time.Time
	var nextTimer, nextWake []int64 // due times in milliseconds
	hasMoreTimers := false
	err = r.DB.Update(ctx, func(tx *store.Tx) (err error) {
		runs, ended, unreadable, now, nextTimer, nextWake = nil, nil, nil, tx.Now(), nil, nil
		defer func() { errors.As(err, &unreadable) }()
		due, err := tx.Queue().DueWork(ctx, r.Process, maxTimersPerStep, n)
		if err != nil {
			return err
		}
		if due.Held {
			return nil
		}
		if hasMoreTimers, err = r.fireTimers(ctx, tx, due.Timers); err != nil {
			return err
		}
		if runs, ended, err = r.claimRuns(ctx, tx, n, due.HasOtherRuns, findOrphans); err != nil {
			return err
		}
		if len(due.Timers) > 0 && len(runs) < n { // the timers have queued wakes that DueWork did not see
			if due.Wakes, err = tx.Queue().DueWakes(ctx, n-len(runs), nil); err != nil {
				return err
			}
		}
		if runs, err = r.startRuns(ctx, tx, due.Wakes, runs, n); err != nil || hasMoreTimers {
			return err
		}
		// If n runs were started, the next due wake does not matter, because the end of a run causes the next step.
		return tx.Queue().QueueNextDue(ctx, &nextTimer, &nextWake, len(runs) < n)
	})
	if next = pollInterval; hasMoreTimers {
		next = 0
	}
	for _, at := range slices.Concat(nextTimer, nextWake) {
		next = min(next, max(time.Millisecond, reeve.FromMillis(at).Sub(now)))
	}
	if err != nil && unreadable != nil {
		err = unreadable
	}
	return runs, next, ended, err
}

// unreadableWake is the error of a wake whose subscription, timer or entities cannot be read. The failed read aborts
// the transaction of a step, so Step delays the wake and starts over. Otherwise one bad wake would block all others.
type unreadableWake struct {
	key string
	err error
}

func (u *unreadableWake) Error() string {
	return "the subscription, timer or entities of wake " + u.key + " cannot be read: " + u.err.Error()
}
func (u *unreadableWake) Unwrap() error { return u.err }

// delayUnreadable makes a wake due later. After maxReadAttempts it skips the wake. If the store is unavailable or ctx
// has ended, the wake is not the cause, and delayUnreadable returns the error instead.
func (r *Scheduler) delayUnreadable(ctx context.Context, u *unreadableWake) error {
	if code := reeve.CodeOf(store.UserError(u.err)); ctx.Err() != nil || code == reeve.Unavailable {
		return u.err
	}
	r.Log.Error("cannot read the source of a wake", "wake", u.key, "error", u.err)
	return r.DB.Update(ctx, func(tx *store.Tx) error {
		return tx.Queue().DelayWake(ctx, u.key, firstReadDelay, maxReadAttempts, "what changed could not be read")
	})
}
