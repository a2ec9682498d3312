package gate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// awaitUntil returns when an outcome that comes from outside is too late.
func (d *Decision) awaitUntil(o outcome) *time.Time {
	at := reeve.Now().Add(d.awaitTime(o))
	return &at
}

// awaitTime returns how long such an outcome may take.
func (d *Decision) awaitTime(o outcome) time.Duration {
	return cmp.Or(o.err.RetryAfter, d.tool().Timeout())
}

// Delivery is the outcome of an operation, as it comes from outside.
type Delivery struct {
	Content any
	Failure string // why it failed; empty means that it did not
}

// Deliver records the outcome of an operation whose tool said that it would come from outside, or is just being asked:
// whoever does the work may be done before its request is answered. Too late or a second time, it is refused and
// changes nothing. What could not be recorded must be delivered again.
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
				"the operation waits for what it began here, and for nobody outside").
				Hintf("cancel what it began to end it")
		}
		if op.State != reeve.Dispatched {
			break
		}
		req, err := g.recall(ctx, op)
		if err != nil {
			return op, err
		}
		d, _ := req.asDecided()
		if !op.IsAwaited() && !d.tool().Async {
			break
		}
		rec := newRecorder(d)
		rec.budget.key, rec.delivered = op.CallID, true
		o := outcome{out: d.output(g.text(delivery.Content)), attempts: max(1, op.Tries)}
		if delivery.Failure != "" {
			o = d.failure(refused, reeve.Errorf(reeve.ToolFailed, "%s", delivery.Failure))
			o.attempts = max(1, op.Tries)
		}
		if !op.IsAwaited() { // its request, which is yet to be answered, cannot be charged any more
			o.spent = d.declaredCost(o.spent)
		}
		if _, err = rec.conclude(context.WithoutCancel(ctx), op, o); reeve.CodeOf(err) == reeve.Conflict {
			continue // its request was answered meanwhile, or something else ended it
		} else if err != nil {
			return op, err
		}
		g.changed()
		return op, g.DB.View(ctx, func(s *store.Snap) (err error) {
			op, err = s.Ledger().GetOperation(ctx, workspace, id)
			return err
		})
	}
	return op, g.unawaited(ctx, op)
}

// unawaited refuses an outcome that nobody waits for, and says why not.
func (g *Gate) unawaited(ctx context.Context, op reeve.Operation) error {
	why := fmt.Sprintf("it is %s", op.State)
	if err := g.DB.View(ctx, func(s *store.Snap) error {
		run, err := s.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
		if err == nil && run.State.Final() {
			why = fmt.Sprintf("%s, and %s", run.DescribeEnd(), why)
		}
		if reeve.CodeOf(err) == reeve.NotFound {
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	g.Log.Warn("an outcome came that nobody waits for", "operation", op.ID, "state", op.State)
	hint := "it came too late, or a second time; it was ignored"
	if op.State == reeve.Prepared || op.State == reeve.Parked {
		hint = "the call is yet to be made; what came was ignored"
	}
	return reeve.Errorf(reeve.Conflict, "nobody waits for an outcome of this operation: %s", why).Hintf("%s", hint)
}
