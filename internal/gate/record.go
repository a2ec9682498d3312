package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// Recorder writes a call to the ledger: its row, its result, what it spent and what it changed.
type Recorder struct {
	*Decision
	callID      string
	budget      *reservation
	refused     bool // a refusal is recorded even if the run of the call has ended
	noOperation bool // the call was refused or changed nothing, so that it leaves no operation
	delivered   bool // the outcome was delivered from outside
}

func newRecorder(d *Decision) *Recorder {
	return &Recorder{Decision: d, callID: d.draftID, budget: newReservation(d)}
}

// assignID gives a new call its id, in the transaction that writes it. A thread is read in the order of ids, so ids
// must be made in the order in which calls are written, not in the order in which they arrive.
func (r *Recorder) assignID(tx *store.Tx) {
	if r.resumed == nil {
		r.callID = tx.NewID(reeve.PrefixMessage)
	}
}

// operationID returns the id of the call's operation. It is empty for calls that change nothing.
func (r *Recorder) operationID() string {
	if r.resumed != nil || (r.entry != nil && r.leavesOperation() && !r.noOperation) {
		return r.operation
	}
	return ""
}

// operationIn returns the operation of the call in a state; see Decision.operationIn.
func (r *Recorder) operationIn(s reeve.State) reeve.Operation {
	return r.Decision.operationIn(s, r.callID)
}

// admit begins the transaction that lets a call go: it assigns the id and claims what the call may spend. The write of
// the row, or move, finds out whether the decision still holds.
func (r *Recorder) admit(ctx context.Context, tx *store.Tx) error {
	r.assignID(tx)
	if r.call.Automation != "" {
		if err := r.g.ItemRule.WriteItems(ctx, tx, r.call); err != nil {
			return err
		}
	}
	return r.budget.claimIn(ctx, tx, r.callID)
}

// insert writes the row of a new call, if what it was decided by still holds.
func (r *Recorder) insert(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	args := r.recordedArgs()
	if r.args == nil { // they could not be read
		args = r.g.readable(r.redact(string(r.call.Args)))
	}
	judged := store.Preconditions{Revision: r.view.ws.Revision}
	inOpenRun, brain := r.inOpenRun && !r.refused, r.call.Via.FromBrain()
	if inOpenRun && brain {
		judged.Run, judged.Automation = r.call.Run, r.call.Agent
	}
	row := store.Call{Operation: op, Args: args, Request: r.requestInfo(), Result: result}
	if err := tx.Ledger().InsertCall(ctx, row, judged); err != nil || !inOpenRun || brain {
		return err
	}
	// keeps the run from ending before the call is committed
	state, err := tx.Runs().LockRun(ctx, r.call.Workspace, r.call.Run)
	if err == nil && state != "" && state.Final() {
		return store.ErrStaleDecision{}
	}
	return err
}

// write inserts the row of a new call, or moves the operation of a resumed one.
func (r *Recorder) write(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	if r.resumed == nil {
		return r.insert(ctx, tx, op, result)
	}
	return r.move(ctx, tx, op, result)
}

// move updates the operation of a resumed call, if the decision still holds.
func (r *Recorder) move(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	if err := r.checkRevision(ctx, tx); err != nil {
		return err
	}
	if result != nil {
		op.ResultID = result.ID
	}
	return tx.Ledger().TransitionOperation(ctx, *r.resumed, op, result)
}

// checkRevision fails if the workspace changed since the decision. It locks the workspace until the transaction ends,
// so that a stop comes either before it or after it.
func (r *Recorder) checkRevision(ctx context.Context, tx *store.Tx) error {
	w, err := tx.Queue().LockWorkspace(ctx, r.call.Workspace)
	if err == nil && w.Revision != r.view.ws.Revision {
		return store.ErrStaleDecision{}
	}
	return err
}

// result returns the result of the call in two forms: the one that the ledger keeps, without its id, and the one that
// the caller gets.
func (r *Recorder) result(o outcome) (store.CallResult, reeve.Result) {
	undo := r.view.workspace.shownUndo(o.undo)
	info := reeve.ResultInfo{Status: "success", Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed,
		Undo:  undo,
		Spent: o.spent, Attempts: o.attempts, ProposalID: o.proposal}
	res := reeve.Result{CallID: r.callID, Content: o.out.content, Size: o.out.size, Truncated: o.out.truncated,
		Changed: o.changed,
		Undo:    undo, Spent: o.spent, OperationID: r.operationID(), ProposalID: o.proposal}
	if o.out.truncated {
		info.Hash = reeve.Hash(o.out.full)
		res.Hash = info.Hash
	}
	if r.call.PreviewOnly && r.Decision.preview != nil {
		info.Base, res.Base, res.Preview = r.Decision.preview.Base, r.Decision.preview.Base, true
	}
	if e := o.err; e != nil {
		info.Status, info.Code, info.Message, info.Hint, info.Fields = "error", e.Code, e.Message, e.Hint, e.Fields
		res.IsError, res.Code, res.Message, res.Hint, res.Fields = true, e.Code, e.Message, e.Hint, e.Fields
		info.Step = r.refusedBy()
	}
	return store.CallResult{Content: o.out.content, Info: mustJSON(info)}, res
}

// resultIn makes the result of an outcome, in the transaction that writes it. It stores the whole of an output that was
// cut, and wakes watchers of what changed.
func (r *Recorder) resultIn(ctx context.Context, tx *store.Tx, o outcome) (*store.CallResult, reeve.Result, error) {
	row, res := r.result(o)
	row.ID = tx.NewID(reeve.PrefixMessage)
	if err := r.keepOutput(ctx, tx, o.out); err != nil {
		return nil, res, err
	}
	return &row, res, r.notify(ctx, tx, res.OperationID, o.changed)
}

// keepOutput stores the whole of an output that was cut.
func (r *Recorder) keepOutput(ctx context.Context, tx *store.Tx, out output) error {
	if !out.truncated {
		return nil
	}
	_, err := tx.Ledger().PutPayload(ctx, r.call.Workspace, store.OutputPayload, out.full)
	return err
}

// notify writes the events of what changed, and wakes watchers if there are any.
func (r *Recorder) notify(ctx context.Context, tx *store.Tx, operation string, changed []reeve.Token) error {
	if !r.view.workspace.watched {
		return tx.Ledger().InsertEvents(ctx, r.call.Workspace, r.call.Agent, operation, changed)
	}
	return tx.Queue().RecordChange(ctx, store.Change{Workspace: r.call.Workspace, Agent: r.call.Agent, Run: r.call.Run,
		Operation: operation,
		Tokens:    changed, Window: r.g.Window})
}

// record writes a call that leaves no operation.
func (r *Recorder) record(ctx context.Context, o outcome) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	err = r.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		r.assignID(tx)
		res, err = r.recordIn(keep, tx, o)
		return err
	})
	if err != nil {
		return reeve.Result{}, err // a call that was not recorded has no id
	}
	return res, nil
}

// recordIn is record within a transaction.
func (r *Recorder) recordIn(ctx context.Context, tx *store.Tx, o outcome) (reeve.Result, error) {
	r.noOperation = true
	row, res, err := r.resultIn(ctx, tx, o)
	if err != nil {
		return res, err
	}
	op := r.operationIn("")
	op.Spent = o.spent
	if err := r.insert(ctx, tx, op, row); err != nil {
		return res, err
	}
	return res, r.budget.spendIn(ctx, tx, o.spent)
}

// refuse records a refusal.
func (r *Recorder) refuse(ctx context.Context, refusal error) (reeve.Result, error) {
	if reeve.CodeOf(refusal) == reeve.Internal {
		return reeve.Result{}, refusal // the gate itself is at fault
	}
	if r.resumed != nil {
		return r.abandon(ctx, refusal)
	}
	r.refused = true
	o := r.failure(refused, refusal)
	res, err := r.record(ctx, o)
	if err != nil {
		return reeve.Result{}, err
	}
	r.observeRefusal(ctx, o.err)
	return res, o.err
}

// abandon ends a prepared operation that the gate now refuses.
func (r *Recorder) abandon(ctx context.Context, refusal error) (reeve.Result, error) {
	switch reeve.CodeOf(refusal) {
	case reeve.Stopped, reeve.Canceled:
		return reeve.Result{}, refusal // the operation waits
	default:
	}
	op, why := *r.resumed, r.failure(refused, refusal).err
	keep := context.WithoutCancel(ctx)
	err := r.g.DB.Update(keep, func(tx *store.Tx) error {
		if err := r.checkRevision(keep, tx); err != nil { // a change by another server may let it pass
			return err
		}
		return takeBack(keep, tx, op, why, r.refusedBy())
	})
	if err == nil {
		r.observeRefusal(ctx, why)
	}
	return reeve.Result{CallID: op.CallID, OperationID: op.ID, State: reeve.DeniedOp, IsError: true, Code: why.Code,
		Message: why.Message}, err
}

// preview records what a call would change.
func (r *Recorder) preview(ctx context.Context) (reeve.Result, error) {
	return r.record(ctx, outcome{out: r.output(r.Decision.preview.Change)})
}

// enqueue writes the row of an asynchronous call and answers at once. The loop makes the call, here or on another
// server, and its result comes when it has run. A crash loses nothing and sends nothing twice.
func (r *Recorder) enqueue(ctx context.Context) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	err = r.g.DB.Update(keep, func(tx *store.Tx) error {
		r.assignID(tx)
		op, now := r.operationIn(reeve.Prepared), tx.Now()
		op.Deferred, op.NextAttemptAt = true, &now
		res = pendingResult(op)
		return r.insert(keep, tx, op, nil)
	})
	if err != nil {
		return reeve.Result{}, err
	}
	r.g.Wakeup()
	return res, nil
}

// recordDispatched writes the operation before the request is sent.
func (r *Recorder) recordDispatched(ctx context.Context) (op reeve.Operation, err error) {
	err = r.g.DB.Update(ctx, func(tx *store.Tx) error {
		if err := r.admit(ctx, tx); err != nil {
			return err
		}
		op = r.operationIn(reeve.Dispatched)
		op.Owner = r.g.process
		r.setInFlight(&op, tx.Now())
		if was := r.resumed; was != nil {
			op.Resolution, op.ResolvedBy, op.Spent, op.Tries, op.Deferred = was.Resolution, was.ResolvedBy, was.Spent,
				was.Tries, was.Deferred
		}
		return r.write(ctx, tx, op, nil)
	})
	return op, err
}

// recordLocal writes the operation of a local call in its final state, with its result.
func (r *Recorder) recordLocal(ctx context.Context, tx *store.Tx, o outcome, s reeve.State) (reeve.Result, error) {
	op := r.operationIn(s)
	op.Undo, op.Spent, op.Tries = o.undo, o.spent, 1
	if o.err != nil {
		op.Code, op.Message = o.err.Code, o.err.Message
	}
	row, res, err := r.resultIn(ctx, tx, o)
	if err != nil {
		return res, err
	}
	res.State = s
	if err := r.write(ctx, tx, op, row); err != nil {
		return res, err
	}
	return res, r.budget.spendIn(ctx, tx, o.spent)
}

// recordRolledBack writes a local call whose transaction was rolled back, so that it had no effect. A caller that went
// away and comes back may use the same operation id.
func (r *Recorder) recordRolledBack(ctx context.Context, o outcome) (res reeve.Result, err error) {
	o.ending = refused
	noOperation := r.chosen && r.resumed == nil && ctx.Err() != nil && o.err.Code == reeve.Canceled
	keep := context.WithoutCancel(ctx)
	err = r.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		if err := r.admit(keep, tx); err != nil {
			return err
		}
		if noOperation {
			res, err = r.recordIn(keep, tx, o)
			return err
		}
		res, err = r.recordLocal(keep, tx, o, reeve.Failed)
		return err
	})
	if err != nil {
		return reeve.Result{}, asStale(err)
	}
	return res, nil
}

// recordAwaited writes the row that waits for what the handler began, in the same transaction: neither is there without
// the other. It claims no budget meanwhile: what was begun spends for itself.
func (r *Recorder) recordAwaited(ctx context.Context, tx *store.Tx, o outcome) (reeve.Result, error) {
	op := r.operationIn(reeve.Dispatched)
	op.TimeoutAt = r.awaitUntil(o)
	op.NextAttemptAt, op.Code, op.Message, op.Spent, op.Tries = op.TimeoutAt, reeve.InProgress, o.err.Message, o.spent,
		o.attempts
	res := pendingResult(op)
	if err := r.budget.spendIn(ctx, tx, o.spent); err != nil {
		return res, err
	}
	if r.resumed != nil {
		op.Resolution, op.ResolvedBy = r.resumed.Resolution, r.resumed.ResolvedBy
	}
	return res, r.write(ctx, tx, op, nil)
}

// failure makes the outcome of an error. Its texts are redacted and cut like any output.
func (d *Decision) failure(e ending, err error) outcome {
	shown := d.publicError(err)
	text := d.redact(shown.Message)
	o := outcome{ending: e, err: shown, out: d.g.cut(text)}
	shown.Message = clip(text, 4000) // the content holds the rest
	shown.Hint, shown.Fields = d.brief(shown.Hint), d.briefFields(shown.Fields)
	return o
}

func (d *Decision) briefFields(fields []reeve.Field) []reeve.Field {
	out := make([]reeve.Field, 0, min(len(fields), maxFields))
	for _, f := range fields[:min(len(fields), maxFields)] {
		out = append(out, reeve.Field{Path: d.brief(f.Path), Message: d.brief(f.Message),
			Expected: d.brief(f.Expected)})
	}
	return out
}
