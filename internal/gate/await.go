package gate

import (
	"context"
	"encoding/json"

	"reeve"
	"reeve/internal/store"
)

// CompleteAwaited records what a waiting call came to, in the transaction that ends what it waits for. One that does
// not wait any more is left alone: late and second outcomes are ignored, and logged.
func (g *Gate) CompleteAwaited(ctx context.Context, tx *store.Tx, workspace, id string, o reeve.CallOutcome) error {
	was, found, err := tx.Ledger().FindOperation(ctx, workspace, id)
	if err != nil {
		return err
	}
	if !found || !was.IsAwaited() {
		g.Log.Warn("an outcome came that nobody waits for", "operation", id, "state", was.State)
		return nil
	}
	view, err := g.views.workspace(ctx, g, &tx.Snap, workspace)
	if err != nil {
		return err
	}
	is := was
	is.State, is.Code, is.Message, is.Owner, is.NextAttemptAt, is.TimeoutAt = reeve.Committed, "", "", "", nil, nil
	is.Spent = was.Spent.Plus(o.Spent)
	redactor := view.redactorFor(was.Tool)
	out := g.cut(redactor.Text(o.Content))
	info := reeve.ResultInfo{Status: "success", Size: out.size, Truncated: out.truncated, Spent: is.Spent,
		Attempts: max(1, was.Tries)}
	if out.truncated {
		if info.Hash, err = tx.Ledger().PutPayload(ctx, workspace, store.Output, out.full); err != nil {
			return err
		}
	}
	if e := o.Err; e != nil {
		out = g.cut(redactor.Text(e.Message))
		is.State, is.Code, is.Message = reeve.Failed, e.Code, clip(out.content, 4000)
		info = reeve.ResultInfo{Status: "error", Code: is.Code, Message: is.Message,
			Hint: clip(redactor.Text(e.Hint), 1000), Size: out.size, Spent: is.Spent, Attempts: info.Attempts}
	}
	r := personResult(tx, out.content, info)
	is.ResultID = r.ID
	if err := tx.Ledger().TransitionOperation(ctx, was, is, r); err != nil {
		if reeve.CodeOf(err) == reeve.Conflict {
			return nil // somebody was faster
		}
		return err
	}
	return tx.Ledger().FinishAfterRun(ctx, was, is)
}

// tellUnknown tells the clients of the conversation that a call was made in that a person must say what became of it:
// with the row that says so, because its turn may be parked by then, with nobody there to tell.
func (g *Gate) tellUnknown(ctx context.Context, tx *store.Tx, op reeve.Operation) error {
	if op.RunID == "" {
		return nil
	}
	run, err := tx.Runs().GetRun(ctx, op.WorkspaceID, op.RunID)
	if reeve.CodeOf(err) == reeve.NotFound || err == nil && (run.Reason != reeve.ReasonUser || run.State.Final()) {
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
