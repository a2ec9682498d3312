package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// A request to a verifiable tool may reach the far side, or be worked on there, until the call's time limit is over,
// even if the server that sent it is gone. The row of the operation says when that is. A look-up that finds the effect
// counts at once. A look-up that does not find it counts only if it was asked after that time.

// setInFlight notes in the row that a request of a verifiable tool is about to be sent.
func (d *Decision) setInFlight(op *reeve.Operation, now time.Time) {
	if op.Effect != reeve.Verifiable {
		return
	}
	until := now.Add(d.tool().Timeout())
	if d.resumed != nil && d.resumed.InFlightUntil != nil && d.resumed.InFlightUntil.After(until) {
		until = *d.resumed.InFlightUntil // an earlier request had a longer time limit
	}
	op.InFlightUntil = &until
}

// sendVerifiable makes the attempts of a verifiable tool. Each of them ends when the row says, and the row is written
// again before each further one. It returns the operation as it is stored then.
func (a *Attempt) sendVerifiable(ctx context.Context, op reeve.Operation) (reeve.Operation, outcome) {
	o := a.retry(ctx, false, func(n int) outcome {
		if n > 1 {
			next, err := a.renewInFlight(ctx, op)
			if err != nil {
				o := a.newFailure(unsent, reeve.Errorf(reeve.Unavailable,
					"another attempt could not be recorded, so it was not made"))
				o.spent, o.attempts = a.spent, a.earlierAttempts+n-1
				return o
			}
			op = next
		}
		ctx, cancel := context.WithDeadline(ctx, *op.InFlightUntil)
		defer cancel()
		return a.runTraced(ctx, n)
	})
	return op, o
}

// renewInFlight writes the row before another request is sent. It fails if another server has taken the operation.
func (a *Attempt) renewInFlight(ctx context.Context, was reeve.Operation) (is reeve.Operation, err error) {
	err = a.g.DB.Update(ctx, func(tx *store.Tx) error {
		is = was
		a.setInFlight(&is, tx.Now())
		return tx.Ledger().TransitionOperation(ctx, was, is, nil)
	})
	return is, err
}

// resumeVerifiable finds out what became of a request whose outcome was not recorded, and sends it again if it is
// proven not to have happened. Lost is the outcome if nobody can tell.
func (a *Attempt) resumeVerifiable(ctx context.Context, op reeve.Operation, lost outcome) (reeve.Result, error) {
	if op.InFlightUntil == nil { // a row from before the column: its time limit counts from now
		until := op.UpdatedAt.Add(a.tool().Timeout())
		op.InFlightUntil = &until
	}
	asked := reeve.Now()
	o := a.verify(ctx, op, lost)
	switch {
	case o.status != unsent:
		return a.rec.recordOutcome(ctx, op, o)
	case asked.Before(*op.InFlightUntil):
		return a.verifyLater(ctx, op)
	case op.Code == reeve.Internal: // the tool itself crashed, and would again
		return a.rec.recordOutcome(ctx, op, o)
	}
	op, err := a.renewInFlight(ctx, op)
	if err != nil {
		return reeve.Result{}, err
	}
	return a.send(ctx, op)
}

// verifyLater has the loop look again, at the latest when the time limit is over. It does not count as a try.
func (a *Attempt) verifyLater(ctx context.Context, was reeve.Operation) (reeve.Result, error) {
	is, next := was, reeve.Now().Add(a.g.Backoff.After(max(1, was.Tries)))
	if next.After(*was.InFlightUntil) {
		next = *was.InFlightUntil
	}
	is.Owner, is.NextAttemptAt = "", &next
	err := a.g.DB.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().TransitionOperation(ctx, was, is, nil) })
	if err != nil {
		return reeve.Result{}, err
	}
	a.g.Wakeup()
	return pendingResult(is), nil
}
