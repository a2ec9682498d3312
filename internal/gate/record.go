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

// result is what came of the call: as the ledger keeps it, without its id, and as the caller is shown it.
func (p *pass) result(o outcome) (store.CallResult, reeve.Result) {
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
	return store.CallResult{Content: o.out.content, Info: mustJSON(info)}, res
}

// failure makes the outcome of an error: redacted and cut like any output.
func (p *pass) failure(e ending, err error) outcome {
	shown := p.shown(err)
	text := p.redact(shown.Message)
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

// conclusion makes the result of an outcome, in the transaction that writes it. It stores the whole of an output that was cut, and notifies of
// what changed.
func (p *pass) conclusion(ctx context.Context, tx *store.Tx, o outcome) (*store.CallResult, reeve.Result, error) {
	r, res := p.result(o)
	r.ID = tx.NewID(reeve.PrefixMessage)
	if err := p.keep(ctx, tx, o.out); err != nil {
		return nil, res, err
	}
	return &r, res, p.tell(ctx, tx, res.OperationID, o.changed)
}

// keep stores the whole of an output that was cut.
func (p *pass) keep(ctx context.Context, tx *store.Tx, out output) error {
	if !out.truncated {
		return nil
	}
	_, err := tx.PutPayload(ctx, p.call.Workspace, store.Output, out.full)
	return err
}

// record writes a call that leaves no operation.
func (p *pass) record(ctx context.Context, o outcome) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	err = p.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		p.name(tx)
		res, err = p.recordNone(keep, tx, o)
		return err
	})
	if err != nil {
		return reeve.Result{}, err // what was not recorded names no call
	}
	return res, nil
}

// recordNone writes a call that leaves no operation, and what it cost.
func (p *pass) recordNone(ctx context.Context, tx *store.Tx, o outcome) (reeve.Result, error) {
	p.nothing = true
	r, res, err := p.conclusion(ctx, tx, o)
	if err != nil {
		return res, err
	}
	op := p.operation("")
	op.Spent = o.spent
	if err := p.insert(ctx, tx, op, r); err != nil {
		return res, err
	}
	return res, p.spend(ctx, tx, o.spent)
}

// refuse records a refusal.
func (p *pass) refuse(ctx context.Context, refusal error) (reeve.Result, error) {
	if reeve.CodeOf(refusal) == reeve.Internal {
		return reeve.Result{}, refusal // the gate itself is at fault
	}
	if p.resumed != nil {
		return p.abandon(ctx, refusal)
	}
	p.guarded = false // the refusal is recorded, also of a call in a run that has ended
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
