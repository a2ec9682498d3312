package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// executeRead runs a call that changes nothing, then records it.
func (a *Attempt) executeRead(ctx context.Context) (reeve.Result, error) {
	o, err := a.runRead(ctx)
	if err != nil {
		return reeve.Result{}, asStale(err)
	}
	return a.recordRead(ctx, o)
}

func (a *Attempt) runRead(ctx context.Context) (outcome, error) {
	if err := a.rec.budget.claim(context.WithoutCancel(ctx)); err != nil {
		return outcome{}, err
	}
	return a.repeatHandler(ctx, true), nil
}

// recordRead writes the call with its result. If the workspace changed meanwhile, the answer is thrown away and the
// call decided again: it had no effect.
func (a *Attempt) recordRead(ctx context.Context, o outcome) (reeve.Result, error) {
	res, err := a.rec.record(ctx, o)
	if err != nil {
		a.rec.budget.release(ctx)
	}
	return res, err
}

// executeLocal runs a call whose effect is in Reeve's own database. Effect and record are one transaction.
func (a *Attempt) executeLocal(ctx context.Context) (res reeve.Result, err error) {
	keep, ran := context.WithoutCancel(ctx), false
	o := a.repeat(ctx, false, func(n int) (o outcome) {
		err = a.g.DB.Update(keep, func(tx *store.Tx) (err error) {
			o, ran = outcome{}, false
			if err := a.rec.admit(keep, tx); err != nil {
				return err
			}
			ran = true
			o = a.run(store.WithTx(ctx, tx), n)
			if o.ending == awaiting {
				res, err = a.rec.recordAwaited(keep, tx, o)
				return err
			}
			if o.err != nil {
				return o.err // rolls back what the handler wrote
			}
			res, err = a.rec.recordLocal(keep, tx, o, reeve.Committed)
			return err
		})
		return o
	})
	switch code := reeve.CodeOf(err); {
	case err == nil:
		a.began.RunAfterCommit()
		return res, nil
	case o.store != nil: // a fault of the store, though the tool reported it first
		return reeve.Result{}, asStale(o.store)
	case o.err != nil && o.ending != awaiting:
	case !ran, overtaken(err), code == reeve.Unavailable, code == reeve.UnknownOutcome: // a fault of the store
		return reeve.Result{}, asStale(err)
	default: // the handler ignored a failed statement of its own
		spent, attempts := o.spent, o.attempts
		o = a.failure(refused, reeve.Errorf(reeve.ToolFailed, "what the tool wrote could not be kept: %s",
			reeve.AsError(err).Message))
		o.spent, o.attempts = spent, attempts
	}
	return a.rec.recordRolledBack(ctx, o)
}

// dispatch executes a call whose effect is outside: first the row, then the request, then the outcome. Once the row is
// written, the call goes on even if its caller goes away.
func (a *Attempt) dispatch(ctx context.Context) (reeve.Result, error) {
	keep := context.WithoutCancel(ctx)
	a.g.live.Add(1)
	defer a.g.live.Done()
	op, err := a.rec.recordDispatched(keep)
	if err != nil {
		if reeve.CodeOf(err) == reeve.UnknownOutcome {
			a.g.releaseLater(op)
		}
		return reeve.Result{}, asStale(err)
	}
	return a.send(keep, op)
}

// send makes the request and records its outcome.
func (a *Attempt) send(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	if a.leaseLost() {
		a.g.releaseLater(op)
		return pendingResult(op), nil
	}
	if op.Effect != reeve.Verifiable {
		return a.rec.conclude(ctx, op, a.repeatHandler(ctx, a.tool().Effect == reeve.Keyed))
	}
	op, o := a.sendVerifiable(ctx, op)
	if o.ending == ambiguous {
		o = a.verify(ctx, op, o)
		if o.ending == unsent {
			o.ending = ambiguous // the request may still be on its way: the loop looks again, see resumeVerifiable
		}
	}
	return a.rec.conclude(ctx, op, o)
}

// verify asks a verifiable tool whether an attempt was applied. If the tool cannot tell, the outcome stays as it was.
func (a *Attempt) verify(ctx context.Context, op reeve.Operation, doubt outcome) outcome {
	inv := a.invocation(a.rec.callID, doubt.attempts)
	type answer struct {
		what reeve.Outcome
		text string
	}
	found, err := guard(ctx, a.limit(), func(ctx context.Context) (found answer, err error) {
		what, v, err := a.tool().Verify(ctx, inv)
		return answer{what, a.g.text(v)}, err
	})
	changed, undo, _ := inv.Close()
	if err != nil {
		a.g.Log.Warn("a tool could not look up what happened", "tool", a.tool().ID, "operation", op.ID, "error",
			a.redactForLog(err.Error()))
		return doubt
	}
	switch found.what {
	case reeve.Applied:
		return outcome{out: a.output(found.text), changed: a.recordable(changed), undo: undo, spent: doubt.spent,
			attempts: doubt.attempts}
	case reeve.NotApplied:
		doubt.ending = unsent
	case reeve.CannotTell:
	}
	return doubt
}

// limit returns how long the next attempt may take.
func (a *Attempt) limit() time.Duration { return a.rec.budget.limit(a.took()) }

// pendingResult is the result of a call whose outcome is not recorded yet.
func pendingResult(op reeve.Operation) reeve.Result {
	res := reeve.Result{CallID: op.CallID, OperationID: op.ID, State: op.State, Spent: op.Spent, IsError: true}
	switch op.State {
	case reeve.Unknown:
		res.Code, res.Message = reeve.UnknownOutcome, "it may or may not have happened: "+op.Message
		res.Hint = "a person must say, in the inbox, whether it happened"
	case reeve.Parked:
		res.IsError, res.Code, res.Message = false, reeve.ApprovalRequired, "a person must approve this call first"
		res.Hint = "it will run by itself, once, when it is approved"
	case reeve.Prepared, reeve.Dispatched, reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
		if op.Deferred {
			res.IsError, res.Deferred, res.Code, res.Message = false, true, reeve.InProgress,
				"it has been started; its result comes later"
			return res
		}
		if res.IsError, res.Code = false, reeve.InProgress; op.IsAwaited() {
			res.Message, res.Hint = "it has been started; its outcome comes later", "look at the operation later"
			return res
		}
		res.Message = "the outcome is not known yet; Reeve is finding out"
		res.Hint = "look at the operation later"
	}
	return res
}
