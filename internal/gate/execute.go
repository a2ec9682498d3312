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
		return reeve.Result{}, staleIfExhausted(err)
	}
	return a.recordRead(ctx, o)
}

func (a *Attempt) runRead(ctx context.Context) (outcome, error) {
	if err := a.rec.budget.claim(context.WithoutCancel(ctx)); err != nil {
		return outcome{}, err
	}
	return a.runWithRetries(ctx, true), nil
}

// recordRead writes the call with its result. If the workspace has changed since the decision, the write fails and the
// caller decides again. The discarded result does no harm, because the call had no effect.
func (a *Attempt) recordRead(ctx context.Context, o outcome) (reeve.Result, error) {
	res, err := a.rec.recordCall(ctx, o)
	if err != nil {
		a.rec.budget.release(ctx)
	}
	return res, err
}

// executeLocal runs a call whose effect is in Reeve's own database. The effect and the record are one transaction.
func (a *Attempt) executeLocal(ctx context.Context) (reeve.Result, error) {
	var last localTry
	o := a.retry(ctx, false, func(n int) outcome {
		last = a.tryLocal(ctx, n)
		return last.outcome
	})
	err := last.err
	switch code := reeve.CodeOf(err); {
	case err == nil:
		a.successfulInvocation.RunAfterCommit()
		return last.result, nil
	case o.storeErr != nil: // an error of the store that the tool returned
		return reeve.Result{}, staleIfExhausted(o.storeErr)
	case o.err != nil && o.status != awaiting:
	// an error of the store
	case !last.ran, mustDecideAgain(err), code == reeve.Unavailable, code == reeve.UnknownOutcome:
		return reeve.Result{}, staleIfExhausted(err)
	default: // the handler ignored a failed statement of its own
		spent, attempts := o.spent, o.attempts
		o = a.newFailure(refused, reeve.Errorf(reeve.ToolFailed, "the tool's changes could not be committed: %s",
			reeve.AsError(err).Message))
		o.spent, o.attempts = spent, attempts
	}
	return a.rec.recordRolledBack(ctx, o)
}

// localTry is one attempt at a local call.
type localTry struct {
	outcome outcome
	result  reeve.Result
	ran     bool  // the handler ran
	err     error // why the transaction was rolled back
}

// tryLocal makes one attempt at a local call. One transaction admits the call, runs the handler and writes the row.
func (a *Attempt) tryLocal(ctx context.Context, n int) (t localTry) {
	detached := context.WithoutCancel(ctx)
	t.err = a.g.DB.Update(detached, func(tx *store.Tx) (err error) {
		t = localTry{} // the database may repeat the transaction
		if err := a.rec.admit(detached, tx); err != nil {
			return err
		}
		t.ran = true
		t.outcome = a.runTraced(store.WithTx(ctx, tx), n)
		if t.outcome.status == awaiting {
			t.result, err = a.rec.recordAwaited(detached, tx, t.outcome)
			return err
		}
		if t.outcome.err != nil {
			return t.outcome.err // rolls back what the handler wrote
		}
		t.result, err = a.rec.recordLocal(detached, tx, t.outcome, reeve.Committed)
		return err
	})
	return t
}

// dispatch executes a call with an effect outside of the database. It writes the call as dispatched, runs the handler,
// then writes the outcome. Once the call is written, it is executed even if its caller cancels.
func (a *Attempt) dispatch(ctx context.Context) (reeve.Result, error) {
	detached := context.WithoutCancel(ctx)
	a.g.inFlight.Add(1)
	defer a.g.inFlight.Done()
	op, err := a.rec.recordDispatched(detached)
	if err != nil {
		if reeve.CodeOf(err) == reeve.UnknownOutcome {
			a.g.releaseLater(op)
		}
		return reeve.Result{}, staleIfExhausted(err)
	}
	return a.send(detached, op)
}

// send runs the handler of a dispatched call and records the outcome.
func (a *Attempt) send(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	if a.hasLostLease() {
		a.g.releaseLater(op)
		return pendingResult(op), nil
	}
	if op.Effect != reeve.Verifiable {
		return a.rec.recordOutcome(ctx, op, a.runWithRetries(ctx, a.tool().Effect == reeve.Keyed))
	}
	op, o := a.sendVerifiable(ctx, op)
	if o.status == ambiguous {
		o = a.verify(ctx, op, o)
		if o.status == unsent {
			o.status = ambiguous // the request may still arrive; the worker verifies again in resumeVerifiable
		}
	}
	return a.rec.recordOutcome(ctx, op, o)
}

// verify calls the Verify function of a verifiable tool to find out whether an attempt took effect. If Verify fails or
// cannot tell, verify returns the ambiguous outcome unchanged.
func (a *Attempt) verify(ctx context.Context, op reeve.Operation, ambiguousOutcome outcome) outcome {
	inv := a.invocation(a.rec.callID, ambiguousOutcome.attempts)
	type answer struct {
		what reeve.Outcome
		text string
	}
	found, err := runWithTimeout(ctx, a.timeLimit(), func(ctx context.Context) (found answer, err error) {
		what, v, err := a.tool().Verify(ctx, inv)
		return answer{what, a.g.renderValue(v)}, err
	})
	changed, undo, _ := inv.Close()
	if err != nil {
		a.g.Log.Warn("tool failed to verify an operation", "tool", a.tool().ID, "operation", op.ID, "error",
			a.redactForLog(err.Error()))
		return ambiguousOutcome
	}
	switch found.what {
	case reeve.Applied:
		return outcome{out: a.output(found.text), changed: a.dropInvalidChanges(changed), undo: undo,
			spent: ambiguousOutcome.spent, attempts: ambiguousOutcome.attempts, untrusted: inv.IsUntrusted()}
	case reeve.NotApplied:
		ambiguousOutcome.status = unsent
	case reeve.CannotTell:
	}
	return ambiguousOutcome
}

// timeLimit returns how long the next attempt may take.
func (a *Attempt) timeLimit() time.Duration { return a.rec.budget.timeLimit(a.elapsed()) }

// pendingResult returns the result of a call whose outcome is not recorded yet.
func pendingResult(op reeve.Operation) reeve.Result {
	res := reeve.Result{CallID: op.CallID, OperationID: op.ID, State: op.State, Spent: op.Spent, IsError: true}
	switch op.State {
	case reeve.Unknown:
		res.Code, res.Message = reeve.UnknownOutcome, "the call may or may not have taken effect: "+op.Message
		res.Hint = "a person must resolve the operation in the inbox"
	case reeve.Parked:
		res.IsError, res.Code, res.Message = false, reeve.ApprovalRequired, "a person must approve this call first"
		res.Hint = "the call runs once, automatically, when it is approved"
	case reeve.Prepared, reeve.Dispatched, reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
		if op.Deferred {
			res.IsError, res.Deferred, res.Code, res.Message = false, true, reeve.InProgress,
				"the call has been started; its result follows"
			return res
		}
		if res.IsError, res.Code = false, reeve.InProgress; op.IsAwaited() {
			res.Message, res.Hint = "the call has been started; its outcome follows", "check the operation later"
			return res
		}
		res.Message = "the outcome is not known yet; Reeve is determining it"
		res.Hint = "check the operation later"
	}
	return res
}
