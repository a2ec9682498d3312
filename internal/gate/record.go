package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// outcome is what an attempt, or a refusal, came to.
type outcome struct {
	ending   ending
	err      *reeve.Error // nil when it succeeded
	out      output
	changed  []reeve.Token
	undo     *reeve.Undo
	spent    reeve.Amount
	attempts int
}

// result is the message that answers the call, and what the caller is shown.
func (p *pass) result(o outcome) (reeve.Message, reeve.Result) {
	info := reeve.ResultInfo{Status: "success", Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed, Undo: o.undo, Spent: o.spent,
		Attempts: o.attempts}
	res := reeve.Result{CallID: p.id, Content: o.out.content, Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed, Undo: o.undo,
		Spent: o.spent, OperationID: p.operationID()}
	if o.out.truncated {
		info.Hash = reeve.Hash(o.out.full)
		res.Hash = info.Hash
	}
	if p.call.PreviewOnly && p.preview != nil {
		info.Base, res.Base, res.Preview = p.preview.Base, p.preview.Base, true
	}
	if e := o.err; e != nil {
		info.Status, info.Code, info.Message, info.Hint, info.Fields = "error", e.Code, e.Message, e.Hint, e.Fields
		res.IsError, res.Code, res.Message, res.Hint, res.Fields = true, e.Code, e.Message, e.Hint, e.Fields
		if last := len(p.trail) - 1; last >= 0 && p.trail[last].Verdict == reeve.Refused {
			info.Step = p.trail[last]
		}
	}
	m := reeve.Message{ID: p.g.DB.NewID(reeve.PrefixMessage), WorkspaceID: p.call.Workspace, ThreadID: p.thread(), AgentID: p.call.Agent,
		Kind: reeve.ToolResult, ActionID: p.id, OperationID: res.OperationID, Content: o.out.content, Metadata: mustJSON(info)}
	return m, res
}

// failure makes the outcome of an error: scrubbed and cut like any output.
func (p *pass) failure(e ending, err error) outcome {
	shown := p.shown(err)
	s := p.view.workspace.scrubber
	shown.Message, shown.Hint = s.scrub(shown.Message), s.scrub(shown.Hint)
	o := outcome{ending: e, err: shown, out: p.g.cut(shown.Message)}
	if o.out.truncated {
		shown.Message = o.out.content
	}
	shown.Message, shown.Hint = storable(shown.Message), storable(shown.Hint)
	return o
}

// appendResult writes the result, the whole output where it was cut, what was notified and what was spent.
func (p *pass) appendResult(ctx context.Context, tx *store.Tx, o outcome) (reeve.Message, reeve.Result, error) {
	m, res := p.result(o)
	if o.out.truncated {
		if _, err := tx.PutPayload(ctx, p.call.Workspace, o.out.full); err != nil {
			return m, res, err
		}
	}
	if err := tx.AppendResult(ctx, m); err != nil {
		return m, res, err
	}
	if err := tx.InsertEvents(ctx, p.call.Workspace, p.call.Agent, m.OperationID, o.changed); err != nil {
		return m, res, err
	}
	return m, res, p.spend(ctx, tx, o.spent)
}

// refuse records a refusal: action and result, and nothing else.
func (p *pass) refuse(ctx context.Context, refusal error) (reeve.Result, error) {
	if err := ctx.Err(); err != nil {
		return reeve.Result{}, reeve.Errorf(reeve.Canceled, "the call was cancelled")
	}
	if reeve.CodeOf(refusal) == reeve.Internal || reeve.CodeOf(refusal) == reeve.Unavailable && p.entry == nil {
		return reeve.Result{}, refusal // the gate itself is at fault
	}
	if p.resumed != nil {
		return p.abandon(ctx, refusal)
	}
	o := p.failure(refused, refusal)
	var res reeve.Result
	err := p.g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if err := p.appendAction(ctx, tx); err != nil {
			return err
		}
		_, res, err = p.appendResult(ctx, tx, o)
		return err
	})
	if err != nil {
		return res, err
	}
	return res, o.err
}

// showPreview records what a call would change.
func (p *pass) showPreview(ctx context.Context) (res reeve.Result, err error) {
	o := outcome{out: p.output(p.preview.Change)}
	err = p.g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		if err := p.appendAction(ctx, tx); err != nil {
			return err
		}
		_, res, err = p.appendResult(ctx, tx, o)
		return err
	})
	return res, err
}
