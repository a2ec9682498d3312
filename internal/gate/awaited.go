package gate

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// CompleteAwaited records the outcome of a call that awaits work inside Reeve, in the transaction that ends this work.
// If the call does not wait any more, the outcome is ignored and logged.
func (g *Gate) CompleteAwaited(ctx context.Context, tx *store.Tx, workspace, id string, o reeve.CallOutcome) error {
	was, found, err := tx.Ledger().FindOperation(ctx, workspace, id)
	if err != nil {
		return err
	}
	if !found || !was.IsAwaited() {
		g.Log.Warn("ignored an outcome that is not awaited", "operation", id, "state", was.State)
		return nil
	}
	view, err := g.viewCache.getWorkspace(ctx, g, &tx.Snap, workspace)
	if err != nil {
		return err
	}
	is := was
	is.State, is.Code, is.Message, is.Owner, is.NextAttemptAt, is.TimeoutAt = reeve.Committed, "", "", "", nil, nil
	is.Spent = was.Spent.Plus(o.Spent)
	redactor := view.redactorFor(was.Tool)
	out := g.truncateOutput(redactor.Text(o.Content))
	info := reeve.ResultInfo{Status: "success", Size: out.size, Truncated: out.truncated, Spent: is.Spent,
		Attempts: max(1, was.Attempts), Untrusted: o.Untrusted}
	if out.truncated {
		if info.Hash, err = tx.Ledger().PutOutput(ctx, workspace, was.PrivateTo, out.full); err != nil {
			return err
		}
	}
	if e := o.Err; e != nil {
		out = g.truncateOutput(redactor.Text(e.Message))
		is.State, is.Code, is.Message = reeve.Failed, e.Code, truncateText(out.content, 4000)
		info = reeve.ResultInfo{Status: "error", Code: is.Code, Message: is.Message,
			Hint: truncateText(redactor.Text(e.Hint), 1000), Size: out.size, Spent: is.Spent, Attempts: info.Attempts,
			Untrusted: o.Untrusted}
	}
	r := newResult(tx, out.content, info)
	is.ResultID = r.ID
	if err := tx.Ledger().TransitionOperation(ctx, was, is, r); err != nil {
		if reeve.CodeOf(err) == reeve.Conflict {
			return nil // another write ended the operation first
		}
		return err
	}
	return tx.Ledger().FinishAfterRun(ctx, was, is)
}

// notifyUnknown sends the clients of the call's conversation a frame which says that a person must resolve the
// operation. The frame is written with the state of the operation, because the turn may be parked and not running any
// more.
func (g *Gate) notifyUnknown(ctx context.Context, tx *store.Tx, op reeve.Operation) error {
	if op.RunID == "" {
		return nil
	}
	run, err := tx.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && (run.Reason != reeve.ReasonUser || run.State.IsFinal()) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := tx.Ledger().GetCall(ctx, op.WorkspaceID, op.CallID)
	if err != nil {
		return err
	}
	info, err := c.RequestInfo()
	if err != nil {
		return err
	}
	r := pendingResult(op)
	return tx.Chat().AppendFrame(ctx, run.SessionID, "unknown:"+tx.NewID(reeve.PrefixMessage),
		reeve.Frame{Type: reeve.FrameApproval, TurnID: run.ID, AgentID: op.AgentID, MessageID: op.CallID,
			ToolCallID: info.Ref, Tool: op.Tool, Args: json.RawMessage(c.Args), OperationID: op.ID, Code: r.Code,
			Message: r.Message, Hint: r.Hint})
}
