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
	last     bool   // however often it may be tried, it is not tried again
	proposal string // the item of a change set that it became
	store    error  // what went wrong was the store's, and passes
}

// result is the message that answers the call, without its id, and what the caller is shown.
func (p *pass) result(o outcome) (reeve.Message, reeve.Result) {
	undo := p.view.workspace.shownUndo(o.undo)
	info := reeve.ResultInfo{Status: "success", Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed, Undo: undo, Spent: o.spent,
		Attempts: o.attempts, ProposalID: o.proposal}
	res := reeve.Result{CallID: p.id, Content: o.out.content, Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed, Undo: undo,
		Spent: o.spent, OperationID: p.operationID(), ProposalID: o.proposal}
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
		info.Step = p.refusedBy()
	}
	m := reeve.Message{WorkspaceID: p.call.Workspace, ThreadID: p.thread(), AgentID: p.call.Agent, RunID: p.call.Run,
		Kind: reeve.ToolResult, ActionID: p.id, OperationID: res.OperationID, Content: o.out.content, Metadata: mustJSON(info)}
	return m, res
}

// failure makes the outcome of an error: scrubbed and cut like any output.
func (p *pass) failure(e ending, err error) outcome {
	shown := p.shown(err)
	text := p.scrub(shown.Message)
	o := outcome{ending: e, err: shown, out: p.g.cut(text)}
	shown.Message = clip(text, 4000) // the content says the rest
	shown.Hint, shown.Fields = p.brief(shown.Hint), p.briefly(shown.Fields)
	return o
}

func (p *pass) briefly(fields []reeve.Field) []reeve.Field {
	out := make([]reeve.Field, 0, min(len(fields), maxFields))
	for _, f := range fields[:min(len(fields), maxFields)] {
		out = append(out, reeve.Field{Path: p.brief(f.Path), Message: p.brief(f.Message), Expected: p.brief(f.Expected)})
	}
	return out
}

// appendResult writes the result and what was spent, and the operation if the call leaves one that is over.
func (p *pass) appendResult(ctx context.Context, tx *store.Tx, o outcome, over *reeve.Operation) (reeve.Message, reeve.Result, error) {
	m, res, err := p.appendMessage(ctx, tx, o, over)
	if err != nil {
		return m, res, err
	}
	return m, res, p.spend(ctx, tx, o.spent)
}

// appendMessage writes the result, after the action unless that was written before, the whole output where it was cut, and what is
// notified.
func (p *pass) appendMessage(ctx context.Context, tx *store.Tx, o outcome, over *reeve.Operation) (reeve.Message, reeve.Result, error) {
	m, res := p.result(o)
	if err := p.keep(ctx, tx, o.out); err != nil {
		return m, res, err
	}
	if err := p.appendTo(ctx, tx, &m, over); err != nil {
		return m, res, err
	}
	return m, res, p.tell(ctx, tx, m.OperationID, o.changed)
}

// appendTo gives the result its id and writes it to the thread, and the action before it unless it is there already.
func (p *pass) appendTo(ctx context.Context, tx *store.Tx, result *reeve.Message, over *reeve.Operation) error {
	acted := p.resumed != nil || p.acted
	if !acted && over != nil {
		if err := tx.RecordCall(ctx, p.action(), result, p.said, *over, p.judged()); err != nil {
			return err
		}
		return p.holdRun(ctx, tx)
	}
	result.ID = p.g.DB.NewID(reeve.PrefixMessage)
	if acted {
		return tx.AppendResult(ctx, *result)
	}
	if err := tx.AppendCall(ctx, p.action(), *result, p.judged()); err != nil {
		return err
	}
	return p.holdRun(ctx, tx)
}

// keep stores the whole of an output that was cut.
func (p *pass) keep(ctx context.Context, tx *store.Tx, out output) error {
	if !out.truncated {
		return nil
	}
	_, err := tx.PutPayload(ctx, p.call.Workspace, store.Output, out.full)
	return err
}

// record writes a call that left no operation: action and result, and nothing else.
func (p *pass) record(ctx context.Context, o outcome) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	err = p.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		p.name(tx)
		_, res, err = p.appendResult(keep, tx, o, nil)
		return err
	})
	if err != nil {
		return reeve.Result{}, err // what was not recorded names no call
	}
	return res, nil
}

// refuse records a refusal.
func (p *pass) refuse(ctx context.Context, refusal error) (reeve.Result, error) {
	if reeve.CodeOf(refusal) == reeve.Internal {
		return reeve.Result{}, refusal // the gate itself is at fault
	}
	if p.resumed != nil {
		return p.abandon(ctx, refusal)
	}
	p.guarded = false                                       // the refusal is recorded, also of a call in a run that has ended
	p.nothing = p.call.Automation != "" || ctx.Err() != nil // a script that runs again, and whoever comes back, uses the same operation id
	o := p.failure(refused, refusal)
	res, err := p.record(ctx, o)
	if err != nil {
		return reeve.Result{}, err
	}
	p.spanRefusal(ctx, o.err)
	return res, o.err
}

// showPreview records what a call would change.
func (p *pass) showPreview(ctx context.Context) (reeve.Result, error) {
	return p.record(ctx, outcome{out: p.output(p.preview.Change)})
}

// tell notifies of what changed. Where nobody watches anything, the events are all there is to write.
func (p *pass) tell(ctx context.Context, tx *store.Tx, operation string, changed []reeve.Token) error {
	if !p.view.workspace.watched {
		return tx.InsertEvents(ctx, p.call.Workspace, p.call.Agent, operation, changed)
	}
	return tx.Notify(ctx, store.Change{Workspace: p.call.Workspace, Agent: p.call.Agent, Run: p.call.Run, Operation: operation, Tokens: changed, Window: p.g.Window})
}

// told is called once what the pass changed is committed.
func (p *pass) told() {
	if p.view.workspace.watched && p.g.OnChange != nil {
		p.g.OnChange()
	}
}
