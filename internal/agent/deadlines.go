package agent

import (
	"context"
	"log/slog"
	"time"

	"reeve"
	"reeve/internal/store"
)

// RunEnder ends runs.
type RunEnder interface {
	End(ctx context.Context, workspace, run string, why *reeve.Error) (reeve.Run, error)
}

// RunWaker wakes the scheduler, which resumes runs.
type RunWaker interface{ Wakeup() }

const (
	deadlineBatch = 16               // calls per step
	deadlinePoll  = 5 * time.Second  // delay until a deadline that another process set is noticed
	deadlineRetry = 10 * time.Second // delay after a failed attempt
	// delay between checks of an overdue call whose run waits for a person
	personRecheck = 30 * time.Second
)

// Deadlines resolves calls between agents that have timed out, or whose run ended without reporting. Such a call
// belongs to no process. If several processes resolve it, the store accepts only the first write.
type Deadlines struct {
	calls *Delegation
	runs  RunEnder
	queue RunWaker
	log   *slog.Logger
}

// NewDeadlines returns the deadlines of a Delegation.
func NewDeadlines(calls *Delegation, runs RunEnder, queue RunWaker, log *slog.Logger) *Deadlines {
	return &Deadlines{calls: calls, runs: runs, queue: queue, log: log}
}

// Run resolves overdue calls until ctx ends.
func (d *Deadlines) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, next, err := d.Step(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("overdue call check failed", "error", err)
		}
		if n < deadlineBatch {
			d.calls.changed.Wait(ctx, next)
		}
	}
	return nil
}

// Step resolves the overdue calls once. It returns their number and the time until the next is due.
func (d *Deadlines) Step(ctx context.Context) (n int, next time.Duration, err error) {
	var due []reeve.Operation
	next = deadlinePoll
	err = d.calls.DB.View(ctx, func(s *store.Snap) error {
		held, err := s.System().IsHeld(ctx)
		if err != nil || held {
			return err
		}
		if due, err = s.Ledger().OverdueOperations(ctx, deadlineBatch); err != nil {
			return err
		}
		at, waits, err := s.Ledger().NextOverdue(ctx)
		if waits {
			next = min(next, max(10*time.Millisecond, reeve.FromMillis(at).Sub(s.Now())))
		}
		return err
	})
	for _, op := range due {
		d.resolveCall(ctx, op)
	}
	return len(due), next, err
}

// resolveCall resolves one overdue call. If that fails, it logs the error and postpones the call.
func (d *Deadlines) resolveCall(ctx context.Context, op reeve.Operation) {
	err := d.tryResolveCall(ctx, op)
	if err == nil || reeve.CodeOf(err) == reeve.Conflict { // another process resolved it
		d.queue.Wakeup() // its caller may resume
		return
	}
	if ctx.Err() != nil {
		return
	}
	d.log.Error("overdue call not resolved; will retry", "operation", op.ID, "error", err)
	if err := d.postpone(ctx, op, deadlineRetry); err != nil && reeve.CodeOf(err) != reeve.Conflict {
		d.log.Error("overdue call not postponed", "operation", op.ID, "error", err)
	}
}

// tryResolveCall ends the run that a call waits for, or stores the result of the call. While the run waits for a
// person, it postpones the call, because that time does not count.
func (d *Deadlines) tryResolveCall(ctx context.Context, op reeve.Operation) error {
	var run reeve.Run
	var begun, goesOn bool
	err := d.calls.DB.View(ctx, func(s *store.Snap) (err error) {
		if run, begun, err = s.Runs().FindDelegatedRun(ctx, op.ID); err != nil {
			return err
		}
		goesOn, err = s.Runs().ResumesWithoutPerson(ctx, run)
		return err
	})
	switch {
	case err != nil:
		return err
	case begun && run.State == reeve.RunParked && !goesOn:
		return d.postpone(ctx, op, personRecheck)
	case begun && !run.State.IsFinal():
		_, err = d.runs.End(ctx, run.WorkspaceID, run.ID,
			reeve.Errorf(reeve.Timeout, "the agent did not answer in time"))
		return err
	}
	return d.calls.DB.Update(ctx, func(tx *store.Tx) error {
		if !begun {
			gone := reeve.CallOutcome{Err: reeve.Errorf(reeve.ToolFailed, "the run of this call was deleted")}
			return d.calls.Gate.CompleteAwaited(ctx, tx, op.WorkspaceID, op.ID, gone)
		}
		return d.calls.OnRunEnd(ctx, tx, run)
	})
}

// postpone sets the time at which a call is checked again.
func (d *Deadlines) postpone(ctx context.Context, op reeve.Operation, wait time.Duration) error {
	return d.calls.DB.Update(ctx, func(tx *store.Tx) error {
		is, next := op, tx.Now().Add(wait)
		is.Owner, is.NextAttemptAt = "", &next
		return tx.Ledger().TransitionOperation(ctx, op, is, nil)
	})
}
