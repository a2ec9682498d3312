package store

import (
	"context"
	"encoding/json"

	"reeve"
)

// CancelAwaited closes the calls of an ended run that still wait for an outcome from outside. A call that has not begun
// is denied. A call that only reads fails. The outcome of any other call is unknown, so it becomes unknown and skipped.
// A call that is being sent now is recorded when it completes; see FinishAfterRun.
//
// It locks the rows first. A concurrent transaction that records an outcome therefore commits before this one, or finds
// that the run has ended. Calls that wait for approval are not included, because their approval must be locked first.
func (t LedgerTx) CancelAwaited(ctx context.Context, run reeve.Run) error {
	list, err := queryAll(ctx, t.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE run_id = $1
		AND run_id <> '' AND result_id = '' AND `+inWorkspace+`
		AND state IN ('prepared', 'dispatched', 'unknown') ORDER BY id`+t.db.engine.ShareClause(), run.ID,
		run.WorkspaceID)
	for i := 0; i < len(list) && err == nil; i++ {
		err = t.cancelAwaitedCall(ctx, run, list[i])
	}
	return err
}

// cancelAwaitedCall closes one call for CancelAwaited, unless its outcome does not depend on the run.
func (t LedgerTx) cancelAwaitedCall(ctx context.Context, run reeve.Run, op reeve.Operation) error {
	is, info := op, reeve.ResultInfo{Status: "error", Code: reeve.Canceled, Spent: op.Spent, Attempts: op.Attempts}
	switch {
	case op.State == reeve.Prepared && op.Deferred:
		is.State, info.Message = reeve.DeniedOp, run.DescribeEnd()+" before it began"
	// a call that started a run here ends with that run
	case !op.IsAwaited() || op.Effect == reeve.Local:
		return nil
	case op.Effect == reeve.Read:
		is.State, info.Message = reeve.Failed, run.DescribeEnd()+" before its outcome came"
	default:
		is.State, is.Resolution = reeve.Unknown, reeve.ResolveSkip
		info.Code, info.Message = reeve.Skipped, run.DescribeEnd()+
			" before its outcome came; whether it happened is not known"
	}
	c, err := t.GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return err
	}
	request, err := c.RequestInfo()
	if err != nil {
		return err
	}
	// a script does not wait for such an outcome unless it is cancelled
	if !request.Via.IsFromBrain() || request.Via == reeve.ViaScript && run.State != reeve.RunCancelled {
		return nil
	}
	c.Result = &CallResult{ID: t.NewID(reeve.PrefixMessage), Content: info.Message,
		Info: json.RawMessage(encodeJSON(info))}
	is.Code, is.Message, is.Owner, is.NextAttemptAt, is.TimeoutAt, is.ResultID = info.Code, info.Message, "", nil, nil,
		c.Result.ID
	return firstError(t.Spend(ctx, op.WorkspaceID, nil, op.CallID, reeve.Amount{}),
		t.TransitionOperation(ctx, op, is, c.Result), t.tx.Chat().appendResult(ctx, run, c))
}

// FinishAfterRun completes an operation whose run may have ended, after the operation has changed from was to op. It
// adds the new cost to the run and stores the result frame. If the operation waits for an outcome from outside, it
// cancels the wait. It does nothing while the run is open.
func (t LedgerTx) FinishAfterRun(ctx context.Context, was, op reeve.Operation) error {
	if op.RunID == "" || op.ResultID == "" && !op.IsAwaited() && op.Spent == was.Spent {
		return nil
	}
	run, err := t.tx.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && !run.State.IsFinal() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.tx.Runs().AddLateSpending(ctx, run.ID, op.Spent.Minus(was.Spent)); err != nil || op.ResultID == "" &&
		!op.IsAwaited() {
		return err
	}
	if op.ResultID == "" {
		return t.CancelAwaited(ctx, run)
	}
	c, err := t.GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return err
	}
	return t.tx.Chat().appendResult(ctx, run, c)
}
