package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// awaitDeadline returns the time after which an outcome from outside is too late.
func (d *Decision) awaitDeadline(o outcome) *time.Time {
	at := reeve.Now().Add(d.awaitTimeout(o))
	return &at
}

// awaitTimeout returns how long an outcome from outside may take.
func (d *Decision) awaitTimeout(o outcome) time.Duration {
	return cmp.Or(o.err.RetryAfter, d.tool().Timeout())
}

// Delivery is the outcome of an operation that arrives from outside.
type Delivery struct {
	Content any
	Failure string // the reason of a failure; empty for a success
}

// Deliver records the outcome of an operation whose tool announced an outcome from outside. An outcome may also arrive
// while the handler of an asynchronous tool still runs. Deliver returns a conflict and changes nothing if the operation
// does not await an outcome. If it returns another error, the sender must deliver the outcome again.
func (g *Gate) Deliver(ctx context.Context, workspace, id string, delivery Delivery) (op reeve.Operation, err error) {
	for range maxDecisions {
		err := g.DB.View(ctx, func(s *store.Snap) (err error) {
			op, err = s.Ledger().GetOperation(ctx, workspace, id)
			return err
		})
		if err != nil {
			return op, err
		}
		if op.IsAwaited() && op.Effect == reeve.Local {
			return op, reeve.Errorf(reeve.Conflict,
				"the operation awaits work inside Reeve and accepts no outcome from outside").
				Hintf("to end it, cancel the work that it started")
		}
		if op.State != reeve.Dispatched {
			break
		}
		req, err := g.loadRequest(ctx, op)
		if err != nil {
			return op, err
		}
		d, _ := req.resumeDecision()
		if !op.IsAwaited() && !d.tool().Async {
			break
		}
		rec := newRecorder(d)
		rec.budget.reservationKey, rec.isDelivery = op.CallID, true
		o := outcome{out: d.output(g.renderValue(delivery.Content)), attempts: max(1, op.Attempts)}
		if delivery.Failure != "" {
			o = d.newFailure(refused, reeve.Errorf(reeve.ToolFailed, "%s", delivery.Failure))
			o.attempts = max(1, op.Attempts)
		}
		if !op.IsAwaited() { // the handler still runs, and its cost cannot be charged after this
			o.spent = d.withDeclaredCost(o.spent)
		}
		if _, err = rec.recordOutcome(context.WithoutCancel(ctx), op, o); reeve.CodeOf(err) == reeve.Conflict {
			continue // the handler has returned, or the operation has ended
		} else if err != nil {
			return op, err
		}
		g.notifyChange()
		return op, g.DB.View(ctx, func(s *store.Snap) (err error) {
			op, err = s.Ledger().GetOperation(ctx, workspace, id)
			return err
		})
	}
	return op, g.explainNotAwaited(ctx, op)
}

// explainNotAwaited returns the conflict for an outcome of an operation that awaits none.
func (g *Gate) explainNotAwaited(ctx context.Context, op reeve.Operation) error {
	why := fmt.Sprintf("it is %s", op.State)
	if err := g.DB.View(ctx, func(s *store.Snap) error {
		run, err := s.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
		if err == nil && run.State.IsFinal() {
			why = fmt.Sprintf("%s, and %s", run.DescribeEnd(), why)
		}
		if reeve.CodeOf(err) == reeve.NotFound {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	g.Log.Warn("ignored an outcome that is not awaited", "operation", op.ID, "state", op.State)
	hint := "the outcome arrived too late or twice and was ignored"
	if op.State == reeve.Prepared || op.State == reeve.Parked {
		hint = "the call has not been made yet; the outcome was ignored"
	}
	return reeve.Errorf(reeve.Conflict, "the operation awaits no outcome: %s", why).Hintf("%s", hint)
}
