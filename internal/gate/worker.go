package gate

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reeve"
	"reeve/internal/store"
)

const (
	heartbeatInterval = 5 * time.Second  // time between two heartbeats of a process
	maxConcurrent     = 16               // operations that a worker processes at the same time
	pollInterval      = 15 * time.Second // longest time between two searches for due operations
)

// Run processes due operations until ctx ends. These are approved and asynchronous calls, and calls whose outcome is
// open after a crash or a lost connection. Run returns when all operations that it started have ended.
func (g *Gate) Run(ctx context.Context) error { return (&operationWorker{g}).run(ctx) }

// Step processes the operations that are due now, one after another, and returns their number.
func (g *Gate) Step(ctx context.Context) (int, error) { return (&operationWorker{g}).step(ctx) }

// operationWorker processes due operations and renews the lease of this process.
type operationWorker struct{ *Gate }

func (w *operationWorker) run(ctx context.Context) error {
	detached, stopHeartbeat := context.WithCancel(context.WithoutCancel(ctx))
	heartbeatDone := make(chan struct{})
	// a separate goroutine, because heartbeats must continue while the loop is busy and until all work has ended
	go func() { defer close(heartbeatDone); w.runHeartbeat(detached) }()
	defer func() { stopHeartbeat(); <-heartbeatDone }()
	var work errgroup.Group
	var busy atomic.Int32
	for ctx.Err() == nil {
		free := maxConcurrent - int(busy.Load())
		ops, next, err := w.claim(ctx, free)
		if err != nil && ctx.Err() == nil {
			w.Log.Error("could not claim due operations", "error", err)
		}
		for _, op := range ops {
			busy.Add(1)
			work.Go(func() error {
				w.processOperation(detached, op)
				if busy.Add(-1) == maxConcurrent-1 {
					w.Wakeup() // the worker was at its limit and can claim again
				}
				return nil
			})
		}
		if len(ops) < free || free == 0 {
			w.wakeSignal.Wait(ctx, next)
		}
	}
	return work.Wait()
}

func (w *operationWorker) runHeartbeat(ctx context.Context) {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.sendHeartbeat(ctx)
		}
	}
}

func (w *operationWorker) step(ctx context.Context) (int, error) {
	ops, _, err := w.claim(ctx, maxConcurrent)
	for _, op := range ops {
		w.processOperation(ctx, op)
	}
	return len(ops), err
}

// Close waits until dispatched calls are recorded or ctx ends, then unregisters this process. Calls that are still in
// flight are recovered by another process or after the next start.
func (g *Gate) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { g.inFlight.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	detached := context.WithoutCancel(ctx)
	return g.DB.Update(detached, func(tx *store.Tx) error {
		return tx.System().UnregisterProcess(detached, g.processID)
	})
}

// notifyChange calls OnChange after a commit.
func (g *Gate) notifyChange() {
	if g.OnChange != nil {
		g.OnChange()
	}
}

// Wakeup makes Run look for due operations now.
func (g *Gate) Wakeup() { g.wakeSignal.Notify() }

// sendHeartbeat renews the lease of this process. If other processes have declared this one gone, it registers again
// under the same id. They have taken over its operations, so its late writes to them fail.
func (w *operationWorker) sendHeartbeat(ctx context.Context) {
	at, known := reeve.Now(), false
	err := w.DB.Update(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.System().Heartbeat(ctx, w.processID, w.LeaseTimeout)
		if err == nil && !known {
			err = tx.System().RegisterProcess(ctx, w.processID)
		}
		return err
	})
	switch {
	case err == nil:
		w.lease.renew(at, known)
	case ctx.Err() == nil:
		w.Log.Error("could not write the heartbeat", "error", err)
	}
}

// claim repeats pending writes, closes expired approvals and claims up to n due operations for this process. It also
// returns the time until the next operation is due or the next approval expires.
func (w *operationWorker) claim(ctx context.Context, n int) (ops []reeve.Operation, next time.Duration, err error) {
	next = pollInterval
	if w.pending.flush(ctx) {
		next = heartbeatInterval / 5
	}
	isHeld := false
	if err := w.DB.View(ctx, func(s *store.Snap) (err error) {
		isHeld, err = s.System().IsHeld(ctx)
		return err
	}); err != nil || isHeld {
		return nil, next, err
	}
	if err := w.Inbox.expireApprovals(ctx); err != nil {
		return nil, next, err
	}
	err = w.DB.Update(ctx, func(tx *store.Tx) error {
		waitUntil := func(due int64, found bool, err error) error {
			if found {
				next = min(next, max(10*time.Millisecond, reeve.FromMillis(due).Sub(tx.Now())))
			}
			return err
		}
		if err := waitUntil(tx.Ledger().NextExpiry(ctx)); err != nil || n == 0 {
			return err // the worker is at its limit
		}
		if err := tx.Ledger().DeleteLostReservations(ctx); err != nil {
			return err
		}
		if ops, err = tx.Ledger().ClaimOperations(ctx, w.processID, n); err != nil {
			return err
		}
		return waitUntil(tx.Ledger().NextDue(ctx))
	})
	if err != nil { // the commit failed or is uncertain, so the operations may be owned by this process
		for _, op := range ops {
			w.releaseLater(op)
		}
		return nil, next, err
	}
	return ops, next, nil
}

// processOperation resumes one operation. It logs an error, and the operation stays due.
func (w *operationWorker) processOperation(ctx context.Context, op reeve.Operation) {
	var err error
	for range maxDecisions {
		if _, err = w.resume(ctx, op); !mustDecideAgain(err) {
			break
		}
		if err := w.syncCommits(ctx, op.WorkspaceID, func(*store.Tx) error { return nil }); err != nil {
			break
		}
	}
	if err != nil && w.release(ctx, op) {
		switch reeve.CodeOf(err) {
		case reeve.Stopped, reeve.Canceled: // expected; the operation stays due
		default:
			w.Log.Error("could not process an operation; will retry", "operation", op.ID, "agent", op.AgentID,
				"tool", op.Tool, "error", err)
		}
	}
	w.notifyChange()
}

// release makes an operation due again after a delay. It returns false if the operation has changed meanwhile.
func (w *operationWorker) release(ctx context.Context, op reeve.Operation) bool {
	is := op
	next := reeve.Now().Add(w.Backoff.First)
	is.Owner, is.NextAttemptAt = "", &next
	err := w.DB.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().TransitionOperation(ctx, op, is, nil) })
	if reeve.CodeOf(err) == reeve.Conflict {
		return false
	}
	if err != nil {
		w.releaseLater(op)
	}
	return true
}

// resume continues an operation from its stored rows. It decides again on a prepared operation. It determines the
// outcome of a dispatched one.
func (w *operationWorker) resume(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	// A prepared operation needs no check here, because the write after the decision detects an old view.
	if op.State != reeve.Prepared {
		w.viewCache.invalidateAgents(op.WorkspaceID)
	}
	req, err := w.loadRequest(ctx, op)
	switch reeve.CodeOf(err) {
	case "":
	case reeve.NotFound:
		return w.endOrphan(ctx, op, errAgentGone)
	case reeve.Denied: // a principal of the call was deleted
		return w.endOrphan(ctx, op, reeve.AsError(err))
	default:
		return reeve.Result{}, err
	}
	if op.State == reeve.Prepared {
		return w.execute(ctx, w.decide(ctx, req))
	}
	if stop := req.checkNotStopped(); stop != nil && op.Effect != reeve.Unsafe {
		return reeve.Result{}, stop // send nothing while the kill switch is on
	}
	d, callable := req.resumeDecision()
	a := newAttempt(newRecorder(d))
	a.rec.budget.reservationKey = op.CallID
	if !callable {
		return a.rec.recordOutcome(ctx, op,
			d.newFailure(ambiguous, reeve.Errorf(reeve.UnknownOutcome,
				"the tool no longer exists, so the outcome cannot be determined")))
	}
	a.earlierAttempts = op.Attempts + 1
	return a.resume(ctx, op)
}

// resume determines the outcome of a dispatched operation whose outcome was not recorded, according to its effect
// class.
func (a *Attempt) resume(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	lost := a.newFailure(ambiguous,
		reeve.Errorf(reeve.UnknownOutcome, "the server stopped before the outcome was recorded"))
	if lost.attempts = a.earlierAttempts; op.Message != "" {
		lost.err.Message = op.Message
	}
	if op.IsAwaited() {
		lost = a.newFailure(ambiguous, reeve.Errorf(reeve.Timeout, "no outcome arrived from outside within %s",
			a.tool().Timeout()))
		lost.attempts = a.earlierAttempts
		return a.rec.recordOutcome(ctx, op, lost)
	}
	if op.ToolVersion != a.entry.fingerprint && (op.Effect == reeve.Keyed || op.Effect == reeve.Verifiable) {
		lost.isFinal = true // later tries would find the same
		lost.err.Message = "the tool has changed since the call was sent, so sending or verifying it again proves " +
			"nothing"
		return a.rec.recordOutcome(ctx, op, lost)
	}
	switch op.Effect {
	case reeve.Read:
		return a.send(ctx, op)
	case reeve.Keyed:
		a.mayHaveTakenEffect = true
		return a.send(ctx, op)
	case reeve.Verifiable:
		return a.resumeVerifiable(ctx, op, lost)
	case reeve.Local, reeve.Unsafe:
	}
	return a.rec.recordOutcome(ctx, op, lost)
}

// resumeDecision returns the decision on a recorded call that passed the gate before. It returns false if the tool of
// the call can no longer be called.
func (r *request) resumeDecision() (d *Decision, callable bool) {
	d = newDecision(r)
	d.args, d.argsHash = r.call.Args, r.resumed.ArgsHash
	e, ok := r.view.workspace.tools[r.call.Tool]
	if !ok || e.tool.Broken != "" {
		d.entry = &entry{tool: reeve.Tool{ID: r.call.Tool, Effect: r.resumed.Effect}.WithDefaults()}
		return d, false
	}
	d.entry, d.config = e, r.view.attached[e.tool.ID]
	return d, true
}

// errAgentGone is the reason for denying operations of a deleted agent.
var errAgentGone = reeve.Errorf(reeve.Denied, "the agent no longer exists").Hintf("use another agent")

// endOrphan ends an operation whose agent or principal was deleted. A prepared operation is denied. A dispatched one
// becomes unknown, because it may have taken effect.
func (w *operationWorker) endOrphan(ctx context.Context, op reeve.Operation, why *reeve.Error) (reeve.Result, error) {
	err := w.DB.Update(ctx, func(tx *store.Tx) error {
		if op.State == reeve.Prepared {
			return cancelOperation(ctx, tx, op, why, reeve.Step{Name: "lookup", Verdict: reeve.Refused,
				Why: why.Message})
		}
		return w.setUnknown(ctx, tx, op, why.Message+", so the outcome cannot be determined")
	})
	return reeve.Result{CallID: op.CallID, OperationID: op.ID}, err
}
