package gate

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// Recorder writes a call to the ledger: its row, its result, its cost and the changes that it made.
type Recorder struct {
	*Decision
	callID         string
	budget         *reservation
	isRefusal      bool // the call is refused; refusals are recorded even if the run has ended
	hasNoOperation bool // the call was refused or changed nothing, so it leaves no operation
	isDelivery     bool // the outcome was delivered from outside; see Gate.Deliver
}

func newRecorder(d *Decision) *Recorder {
	return &Recorder{Decision: d, callID: d.draftID, budget: newReservation(d)}
}

// assignID gives a new call its id, in the transaction that writes the call. Threads are read in the order of ids, so
// ids must be created in the order in which calls are written and not in the order in which they arrive.
func (r *Recorder) assignID(tx *store.Tx) {
	if r.resumed == nil {
		r.callID = tx.NewID(reeve.PrefixMessage)
	}
}

// operationID returns the id of the call's operation, or an empty string for a call that leaves none.
func (r *Recorder) operationID() string {
	if r.resumed != nil || (r.entry != nil && r.leavesOperation() && !r.hasNoOperation) {
		return r.operation
	}
	return ""
}

// operationIn is Decision.operationIn with the id of the recorded call.
func (r *Recorder) operationIn(s reeve.State) reeve.Operation {
	return r.Decision.operationIn(s, r.callID)
}

// admit makes the first writes of the transaction that admits a call. It assigns the call id, writes the item of a
// script and reserves budget. The later insert or transition checks that the decision is still valid.
func (r *Recorder) admit(ctx context.Context, tx *store.Tx) error {
	r.assignID(tx)
	if r.call.Automation != "" {
		if err := r.g.ItemRule.WriteItems(ctx, tx, r.call); err != nil {
			return err
		}
	}
	return r.budget.claimInTx(ctx, tx, r.callID)
}

// insert writes the row of a new call. It fails with ErrStaleDecision if the decision is out of date.
func (r *Recorder) insert(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	args := r.argsForRecord()
	if r.args == nil { // they are not valid JSON
		args = r.g.sanitizeAndTruncate(r.redact(string(r.call.Args)))
	}
	pre := store.Preconditions{Revision: r.view.ws.Revision}
	needsOpenRun, fromBrain := r.requiresOpenRun && !r.isRefusal, r.call.Via.IsFromBrain()
	if needsOpenRun && fromBrain {
		pre.Run, pre.Automation = r.call.Run, r.call.Agent
	}
	row := store.Call{Operation: op, Args: args, Request: r.requestInfo(ctx), Result: result}
	if err := tx.Ledger().InsertCall(ctx, row, pre); err != nil || !needsOpenRun || fromBrain {
		return err
	}
	// the lock keeps the run from ending before the call is committed
	state, err := tx.Runs().LockRun(ctx, r.call.Workspace, r.call.Run)
	if err == nil && state != "" && state.IsFinal() {
		return store.ErrStaleDecision{}
	}
	return err
}

// insertOrTransition inserts the row of a new call, or updates the operation of a resumed one.
func (r *Recorder) insertOrTransition(ctx context.Context, tx *store.Tx, op reeve.Operation,
	result *store.CallResult) error {
	if r.resumed == nil {
		return r.insert(ctx, tx, op, result)
	}
	return r.transition(ctx, tx, op, result)
}

// transition updates the operation of a resumed call. It fails with ErrStaleDecision if the decision is out of date.
func (r *Recorder) transition(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	if err := r.checkRevision(ctx, tx); err != nil {
		return err
	}
	if result != nil {
		op.ResultID = result.ID
	}
	return tx.Ledger().TransitionOperation(ctx, *r.resumed, op, result)
}

// checkRevision returns ErrStaleDecision if the workspace has changed since the decision. It locks the workspace until
// the transaction ends, so the kill switch takes effect either before or after the transaction.
func (r *Recorder) checkRevision(ctx context.Context, tx *store.Tx) error {
	w, err := tx.Queue().LockWorkspace(ctx, r.call.Workspace)
	if err == nil && w.Revision != r.view.ws.Revision {
		return store.ErrStaleDecision{}
	}
	return err
}

// buildResult returns the result of the call in two forms: the row for the ledger, still without an id, and the result
// for the caller.
func (r *Recorder) buildResult(o outcome) (store.CallResult, reeve.Result) {
	undo := r.view.workspace.redactUndo(o.undo)
	info := reeve.ResultInfo{Status: "success", Size: o.out.size, Truncated: o.out.truncated, Changed: o.changed,
		Undo: undo, Spent: o.spent, Attempts: o.attempts, ProposalID: o.proposalID, Warnings: o.warnings,
		Untrusted: o.untrusted || o.attempts > 0 && r.tool().ReturnsOutsideText()}
	res := reeve.Result{CallID: r.callID, Content: o.out.content, Size: o.out.size, Truncated: o.out.truncated,
		Changed: o.changed, Undo: undo, Spent: o.spent, OperationID: r.operationID(), ProposalID: o.proposalID,
		Warnings: o.warnings}
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

// writeResult builds the result of an outcome. It stores the full text of a truncated output and records the changes.
func (r *Recorder) writeResult(ctx context.Context, tx *store.Tx, o outcome) (*store.CallResult, reeve.Result, error) {
	row, res := r.buildResult(o)
	row.ID = tx.NewID(reeve.PrefixMessage)
	if err := r.storeOutput(ctx, tx, o.out); err != nil {
		return nil, res, err
	}
	return &row, res, r.recordChanges(ctx, tx, res.OperationID, o.changed)
}

// storeOutput stores the full text of a truncated output.
func (r *Recorder) storeOutput(ctx context.Context, tx *store.Tx, out output) error {
	if !out.truncated {
		return nil
	}
	_, err := tx.Ledger().PutOutput(ctx, r.call.Workspace, r.privateTo(), out.full)
	return err
}

// recordChanges writes an event for each change and, if the workspace has subscriptions, wakes the subscribers.
func (r *Recorder) recordChanges(ctx context.Context, tx *store.Tx, operation string, changed []reeve.Token) error {
	if !r.view.workspace.isWatched {
		return tx.Ledger().InsertEvents(ctx, r.call.Workspace, r.call.Agent, operation, changed)
	}
	return tx.Queue().RecordChange(ctx, store.Change{Workspace: r.call.Workspace, Agent: r.call.Agent, Run: r.call.Run,
		Operation: operation, Tokens: changed, Window: r.g.Window})
}

// recordCall writes a call that leaves no operation.
func (r *Recorder) recordCall(ctx context.Context, o outcome) (res reeve.Result, err error) {
	detached := context.WithoutCancel(ctx)
	err = r.g.DB.Update(detached, func(tx *store.Tx) (err error) {
		r.assignID(tx)
		res, err = r.recordCallIn(detached, tx, o)
		return err
	})
	if err != nil {
		return reeve.Result{}, err // the result must not name a call that does not exist
	}
	return res, nil
}

// recordCallIn is recordCall within a transaction.
func (r *Recorder) recordCallIn(ctx context.Context, tx *store.Tx, o outcome) (reeve.Result, error) {
	r.hasNoOperation = true
	row, res, err := r.writeResult(ctx, tx, o)
	if err != nil {
		return res, err
	}
	op := r.operationIn("")
	op.Spent = o.spent
	if err := r.insert(ctx, tx, op, row); err != nil {
		return res, err
	}
	return res, r.budget.spendInTx(ctx, tx, o.spent.Minus(o.charged))
}

// recordRefusal records a refused call and returns the refusal as an error. An internal error is returned and not
// recorded.
func (r *Recorder) recordRefusal(ctx context.Context, refusal error) (reeve.Result, error) {
	if reeve.CodeOf(refusal) == reeve.Internal {
		return reeve.Result{}, refusal // a defect of the gate, not a decision
	}
	if r.resumed != nil {
		return r.denyResumed(ctx, refusal)
	}
	r.isRefusal = true
	o := r.newFailure(refused, refusal)
	res, err := r.recordCall(ctx, o)
	if err != nil {
		return reeve.Result{}, err
	}
	r.traceRefusal(ctx, o.err)
	return res, o.err
}

// denyResumed ends a prepared operation that the gate refuses when it is resumed. The operation stays prepared if the
// refusal is temporary.
func (r *Recorder) denyResumed(ctx context.Context, refusal error) (reeve.Result, error) {
	switch reeve.CodeOf(refusal) {
	case reeve.Stopped, reeve.Canceled:
		return reeve.Result{}, refusal // temporary: the operation stays due
	default:
	}
	op, why := *r.resumed, r.newFailure(refused, refusal).err
	detached := context.WithoutCancel(ctx)
	err := r.g.DB.Update(detached, func(tx *store.Tx) error {
		if err := r.checkRevision(detached, tx); err != nil { // after another process changed it, the call may pass
			return err
		}
		return cancelOperation(detached, tx, op, why, r.refusedBy())
	})
	if err == nil {
		r.traceRefusal(ctx, why)
	}
	return reeve.Result{CallID: op.CallID, OperationID: op.ID, State: reeve.DeniedOp, IsError: true, Code: why.Code,
		Message: why.Message}, err
}

// recordPreview records a call that only shows what it would change.
func (r *Recorder) recordPreview(ctx context.Context) (reeve.Result, error) {
	return r.recordCall(ctx, outcome{out: r.output(r.Decision.preview.Change)})
}

// enqueue writes an asynchronous call as prepared and returns at once. A worker of this or another process executes the
// call and records its result. Because the row exists first, a crash neither loses the call nor sends it twice.
func (r *Recorder) enqueue(ctx context.Context) (res reeve.Result, err error) {
	detached := context.WithoutCancel(ctx)
	err = r.g.DB.Update(detached, func(tx *store.Tx) error {
		r.assignID(tx)
		op, now := r.operationIn(reeve.Prepared), tx.Now()
		op.Deferred, op.NextAttemptAt = true, &now
		res = pendingResult(op)
		return r.insert(detached, tx, op, nil)
	})
	if err != nil {
		return reeve.Result{}, err
	}
	r.g.Wakeup()
	return res, nil
}

// recordDispatched writes the operation as dispatched, before the handler runs.
func (r *Recorder) recordDispatched(ctx context.Context) (op reeve.Operation, err error) {
	err = r.g.DB.Update(ctx, func(tx *store.Tx) error {
		if err := r.admit(ctx, tx); err != nil {
			return err
		}
		op = r.operationIn(reeve.Dispatched)
		op.Owner = r.g.processID
		r.setInFlight(&op, tx.Now())
		if was := r.resumed; was != nil {
			op.Resolution, op.ResolvedBy, op.Spent, op.Attempts, op.Deferred = was.Resolution, was.ResolvedBy,
				was.Spent,
				was.Attempts, was.Deferred
		}
		return r.insertOrTransition(ctx, tx, op, nil)
	})
	return op, err
}

// recordLocal writes the operation of a local call in its final state, with its result.
func (r *Recorder) recordLocal(ctx context.Context, tx *store.Tx, o outcome, s reeve.State) (reeve.Result, error) {
	op := r.operationIn(s)
	op.Undo, op.Spent, op.Attempts = o.undo, o.spent, 1
	if o.err != nil {
		op.Code, op.Message = o.err.Code, o.err.Message
	}
	row, res, err := r.writeResult(ctx, tx, o)
	if err != nil {
		return res, err
	}
	res.State = s
	if err := r.insertOrTransition(ctx, tx, op, row); err != nil {
		return res, err
	}
	return res, r.budget.spendInTx(ctx, tx, o.spent)
}

// recordRolledBack writes a local call whose transaction was rolled back, so that it had no effect. If the caller
// cancelled the call, no operation is written, so that the caller can use the same operation id again.
func (r *Recorder) recordRolledBack(ctx context.Context, o outcome) (res reeve.Result, err error) {
	o.status = refused
	noOperation := r.hasCallerID && r.resumed == nil && ctx.Err() != nil && o.err.Code == reeve.Canceled
	detached := context.WithoutCancel(ctx)
	err = r.g.DB.Update(detached, func(tx *store.Tx) (err error) {
		if err := r.admit(detached, tx); err != nil {
			return err
		}
		if noOperation {
			res, err = r.recordCallIn(detached, tx, o)
			return err
		}
		res, err = r.recordLocal(detached, tx, o, reeve.Failed)
		return err
	})
	if err != nil {
		return reeve.Result{}, staleIfExhausted(err)
	}
	return res, nil
}

// recordAwaited writes the operation of a local call whose handler started work that is awaited. It runs in the
// handler's transaction, so the work and the waiting operation exist together or not at all. The operation reserves no
// budget, because the work is charged separately.
func (r *Recorder) recordAwaited(ctx context.Context, tx *store.Tx, o outcome) (reeve.Result, error) {
	op := r.operationIn(reeve.Dispatched)
	op.TimeoutAt = r.awaitDeadline(o)
	op.NextAttemptAt, op.Code, op.Message, op.Spent, op.Attempts = op.TimeoutAt, reeve.InProgress, o.err.Message,
		o.spent,
		o.attempts
	res := pendingResult(op)
	if err := r.budget.spendInTx(ctx, tx, o.spent); err != nil {
		return res, err
	}
	if r.resumed != nil {
		op.Resolution, op.ResolvedBy = r.resumed.Resolution, r.resumed.ResolvedBy
	}
	return res, r.insertOrTransition(ctx, tx, op, nil)
}

// newFailure returns the outcome of an error. Its texts are redacted and truncated like any output.
func (d *Decision) newFailure(e attemptStatus, err error) outcome {
	shown := d.publicError(err)
	text := d.redact(shown.Message)
	o := outcome{status: e, err: shown, out: d.g.truncateOutput(text)}
	shown.Message = truncateText(text, 4000) // the output holds the full text
	shown.Hint, shown.Fields = d.redactAndTruncate(shown.Hint), d.redactFields(shown.Fields)
	return o
}

func (d *Decision) redactFields(fields []reeve.Field) []reeve.Field {
	out := make([]reeve.Field, 0, min(len(fields), maxFields))
	for _, f := range fields[:min(len(fields), maxFields)] {
		out = append(out, reeve.Field{Path: d.redactAndTruncate(f.Path), Message: d.redactAndTruncate(f.Message),
			Expected: d.redactAndTruncate(f.Expected)})
	}
	return out
}
