package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// A request of a verifiable tool may arrive and take effect until the call's time limit ends, even if the server that
// sent it has crashed. The operation stores that time as InFlightUntil. If Verify finds the effect, the result counts
// at once. If Verify does not find the effect, that counts only if Verify was called after InFlightUntil.

// setInFlight sets the time until which a request of a verifiable tool may be in flight.
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

// sendVerifiable makes the attempts of a verifiable tool and returns the stored operation. An attempt may take effect
// until InFlightUntil. Before each further attempt, sendVerifiable stores a new InFlightUntil.
func (a *Attempt) sendVerifiable(ctx context.Context, op reeve.Operation) (reeve.Operation, outcome) {
	o := a.retry(ctx, false, func(n int) outcome {
		if n > 1 {
			next, err := a.renewInFlight(ctx, op)
			if err != nil {
				o := a.newFailure(unsent, reeve.Errorf(reeve.Unavailable,
					"another attempt was not made because it could not be recorded"))
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

// renewInFlight stores a new InFlightUntil before another request is sent. It fails if another process owns the
// operation.
func (a *Attempt) renewInFlight(ctx context.Context, was reeve.Operation) (is reeve.Operation, err error) {
	err = a.g.DB.Update(ctx, func(tx *store.Tx) error {
		is = was
		a.setInFlight(&is, tx.Now())
		return tx.Ledger().TransitionOperation(ctx, was, is, nil)
	})
	return is, err
}

// resumeVerifiable determines the outcome of a request whose outcome was not recorded. It sends the request again if
// the first one provably had no effect. Lost is the outcome to record if that cannot be determined.
func (a *Attempt) resumeVerifiable(ctx context.Context, op reeve.Operation, lost outcome) (reeve.Result, error) {
	if op.InFlightUntil == nil { // the row is older than the column
		until := op.UpdatedAt.Add(a.tool().Timeout())
		op.InFlightUntil = &until
	}
	verifiedAt := reeve.Now()
	o := a.verify(ctx, op, lost)
	switch {
	case o.status != unsent:
		return a.rec.recordOutcome(ctx, op, o)
	case verifiedAt.Before(*op.InFlightUntil):
		return a.verifyLater(ctx, op)
	case op.Code == reeve.Internal: // the tool crashed and would crash again
		return a.rec.recordOutcome(ctx, op, o)
	}
	op, err := a.renewInFlight(ctx, op)
	if err != nil {
		return reeve.Result{}, err
	}
	return a.send(ctx, op)
}

// verifyLater makes the operation due again, at InFlightUntil at the latest. This does not count as a try.
func (a *Attempt) verifyLater(ctx context.Context, was reeve.Operation) (reeve.Result, error) {
	is, next := was, reeve.Now().Add(a.g.Backoff.After(max(1, was.Attempts)))
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
