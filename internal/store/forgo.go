package store

import (
	"context"
	"encoding/json"

	"reeve"
)

// CancelAwaited settles what the calls of a run that is over still wait for from outside: nobody takes an outcome any
// more. A call that has not begun is denied, one that only reads has failed, and of any other nobody can tell whether
// it happens, so it is left as by a person who skips it. What is being sent at this moment is recorded when it is over,
// and told by Late.
//
// The rows are held first. Whoever records an outcome at the same moment comes before this, or finds the run over. What
// waits for an approval is not held: whoever answers that holds the approval first.
func (t LedgerTx) CancelAwaited(ctx context.Context, run reeve.Run) error {
	list, err := all(ctx, t.Snap, scanOperation, `SELECT `+operationColumns+` FROM calls WHERE run_id = $1 AND run_id <> '' AND result_id = '' AND `+ofWorkspace+`
		AND state IN ('prepared', 'dispatched', 'unknown') ORDER BY id`+t.db.engine.ShareClause(), run.ID, run.WorkspaceID)
	for i := 0; i < len(list) && err == nil; i++ {
		err = t.cancelAwaited(ctx, run, list[i])
	}
	return err
}

func (t LedgerTx) cancelAwaited(ctx context.Context, run reeve.Run, op reeve.Operation) error {
	is, info := op, reeve.ResultInfo{Status: "error", Code: reeve.Canceled, Spent: op.Spent, Attempts: op.Tries}
	switch {
	case op.State == reeve.Prepared && op.Deferred:
		is.State, info.Message = reeve.DeniedOp, run.DescribeEnd()+" before it began"
	// that waits for what it began here, and which says itself how it ends
	case !op.IsAwaited() || op.Effect == reeve.Local:
		return nil
	case op.Effect == reeve.Read:
		is.State, info.Message = reeve.Failed, run.DescribeEnd()+" before its outcome came"
	default:
		is.State, is.Resolution = reeve.Unknown, reeve.SkipIt
		info.Code, info.Message = reeve.Skipped, run.DescribeEnd()+
			" before its outcome came; whether it happened is not known"
	}
	c, err := t.GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return err
	}
	asked, err := c.RequestInfo()
	if err != nil {
		return err
	}
	// a script never waits for such an outcome: that it is done changes nothing
	if !asked.Via.FromBrain() || asked.Via == reeve.ViaScript && run.State != reeve.RunCancelled {
		return nil
	}
	c.Result = &CallResult{ID: t.NewID(reeve.PrefixMessage), Content: info.Message, Info: json.RawMessage(text(info))}
	is.Code, is.Message, is.Owner, is.NextAttemptAt, is.TimeoutAt, is.ResultID = info.Code, info.Message, "", nil, nil,
		c.Result.ID
	return first(t.Spend(ctx, op.WorkspaceID, nil, op.CallID, reeve.Amount{}),
		t.TransitionOperation(ctx, op, is, c.Result), t.tx.Chat().tellResult(ctx, run, c))
}

// FinishAfterRun does what is left to do for a call whose run may be over by now, after its row was moved: its brain is
// not there any more. What it cost since is added to what the run spent. Clients are told what it came to; an outcome
// that is to come from outside is not waited for.
func (t LedgerTx) FinishAfterRun(ctx context.Context, was, op reeve.Operation) error {
	if op.RunID == "" || op.ResultID == "" && !op.IsAwaited() && op.Spent == was.Spent {
		return nil
	}
	run, err := t.tx.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && !run.State.Final() {
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
	return t.tx.Chat().tellResult(ctx, run, c)
}
