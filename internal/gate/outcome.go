package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// recordOutcome records the outcome of a dispatched call. If the write fails, the worker repeats it until it succeeds,
// and the caller gets a pending result, because the call may have taken effect.
func (r *Recorder) recordOutcome(ctx context.Context, was reeve.Operation, o outcome) (res reeve.Result, err error) {
	o.spent.Calls = 1
	if was.Spent.Calls > 0 {
		o.spent.Calls = 0 // all attempts count as one call
	}
	next := r.operationAfter(was, o)
	is := next
	record := func(ctx context.Context) (err error) {
		is, res, err = r.tryRecordOutcome(ctx, was, next, o)
		return err
	}
	if err := record(ctx); err != nil {
		// a delivery that fails is repeated by its sender
		if r.isDelivery || reeve.CodeOf(err) == reeve.Conflict {
			return reeve.Result{}, err
		}
		r.g.Log.Error("could not record the outcome of an operation; will retry", "operation", was.ID, "error", err)
		r.g.pending.add(was.ID, record)
		r.g.Wakeup()
		return pendingResult(was), nil
	}
	if is.State == reeve.Dispatched {
		r.g.Wakeup()
	}
	if res.CallID == "" {
		res = pendingResult(is)
	}
	res.State = is.State
	return res, nil
}

// operationAfter returns the operation in the state that an outcome leads to. The state is committed after a success
// and failed if the call provably had no effect. Otherwise the operation is due again or, after the last try, unknown.
func (r *Recorder) operationAfter(was reeve.Operation, o outcome) reeve.Operation {
	is := was
	is.Owner, is.NextAttemptAt, is.TimeoutAt = "", nil, nil
	is.Spent = was.Spent.Plus(o.spent)
	if o.status != awaiting { // an awaited outcome counts as an attempt when it arrives
		is.Attempts++
	}
	if o.err != nil {
		is.Code, is.Message = o.err.Code, o.err.Message
	}
	attempts := r.g.Backoff.Attempts // after each such number of attempts a person must decide
	switch {
	case o.status == succeeded:
		is.State, is.Code, is.Message = reeve.Committed, "", ""
	case o.status == refused || o.status == unsent || o.status == ambiguous && is.Effect == reeve.Read:
		is.State = reeve.Failed
	case o.status == awaiting:
		is.TimeoutAt = r.awaitDeadline(o)
		is.NextAttemptAt, is.Code, is.Message = is.TimeoutAt, reeve.InProgress, "waiting for an outcome from outside"
	case is.Effect == reeve.Unsafe || o.isFinal || is.Attempts%attempts == 0:
		is.State, is.Code, is.Resolution = reeve.Unknown, reeve.UnknownOutcome, ""
	default:
		next := reeve.Now().Add(r.g.Backoff.After(is.Attempts % attempts))
		is.NextAttemptAt = &next
	}
	return is
}

// tryRecordOutcome writes an outcome once. If the store can never accept the tool's result, it writes the outcome
// without the result. If the operation has ended meanwhile, for example with its run, it returns the result that is
// stored.
func (r *Recorder) tryRecordOutcome(ctx context.Context, was, is reeve.Operation,
	o outcome) (reeve.Operation, reeve.Result, error) {
	res, err := r.writeOutcome(ctx, was, is, o)
	if isPermanentStoreError(err) {
		r.g.Log.Error("tool result cannot be stored; recording the outcome without it", "tool", r.tool().ID,
			"operation", was.ID, "error", err)
		res, err = r.writeOutcome(ctx, was, is, r.withoutToolOutput(o))
	}
	if reeve.CodeOf(err) == reeve.Conflict && !r.isDelivery {
		return r.getEndedOperation(ctx, was)
	}
	return is, res, err
}

func (r *Recorder) writeOutcome(ctx context.Context, was, is reeve.Operation,
	o outcome) (res reeve.Result, err error) {
	err = r.g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		var row *store.CallResult
		is.Undo = o.undo
		if is.State == reeve.Committed || is.State == reeve.Failed {
			all := o
			all.spent = is.Spent // the result shows the cost of all attempts; budgets are charged for the latest only
			if row, res, err = r.writeResult(ctx, tx, all); err != nil {
				return err
			}
			is.ResultID = row.ID
		}
		if err := r.budget.spendInTx(ctx, tx, o.spent); err != nil {
			return err
		}
		if is.State == reeve.Dispatched {
			if err := r.budget.renewInTx(ctx, tx, r.callID); err != nil {
				return err
			}
		}
		if err := tx.Ledger().TransitionOperation(ctx, was, is, row); err != nil {
			return err
		}
		if is.State == reeve.Unknown {
			if err := r.g.notifyUnknown(ctx, tx, is); err != nil {
				return err
			}
		}
		if err := tx.Ledger().FinishAfterRun(ctx, was, is); err != nil || !r.isDelivery {
			return err
		}
		now, err := tx.Ledger().GetOperation(ctx, was.WorkspaceID, was.ID)
		if err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, now)
	})
	return res, err
}

// isPermanentStoreError reports whether repeating a write is useless. It is false if the store is unavailable or full,
// or if another write was faster.
func isPermanentStoreError(err error) bool {
	switch reeve.CodeOf(err) {
	case reeve.Validation, reeve.TooLarge, reeve.Internal, reeve.Corrupt:
		return true
	default:
		return false
	}
}

// withoutToolOutput returns an outcome without the data that the tool returned.
func (r *Recorder) withoutToolOutput(o outcome) outcome {
	o.changed, o.undo = nil, nil
	if o.err == nil {
		o.out = r.g.truncateOutput("The call succeeded; its output could not be recorded.")
	}
	return o
}

// getEndedOperation returns an operation that something else has ended, and its stored result. Its cost has been
// charged already. It returns a conflict if the operation is still open, because then another process owns it.
func (r *Recorder) getEndedOperation(ctx context.Context,
	was reeve.Operation) (is reeve.Operation, res reeve.Result, err error) {
	err = r.g.DB.View(ctx, func(s *store.Snap) error {
		c, err := s.Ledger().GetCall(ctx, was.WorkspaceID, was.CallID)
		if err != nil {
			return err
		}
		if c.Result == nil {
			return reeve.Errorf(reeve.Conflict, "operation %s belongs to another process", was.ID)
		}
		is = c.Operation
		res, err = storedResult(c)
		return err
	})
	return is, res, err
}
