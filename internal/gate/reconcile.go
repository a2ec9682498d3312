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
	heartbeat = 5 * time.Second  // how often a process says that it lives
	together  = 16               // how many operations are taken up at once
	poll      = 15 * time.Second // how long work of other processes may wait for us to look
)

// Run takes up operations that are due, until ctx ends: calls that were approved, and calls whose outcome a crash or a
// lost connection left open. It returns when all that it started has ended.
func (g *Gate) Run(ctx context.Context) error { return (&operationWorker{g}).run(ctx) }

// Step does once what Run does again and again, and waits for it. It returns how many operations it took up.
func (g *Gate) Step(ctx context.Context) (int, error) { return (&operationWorker{g}).step(ctx) }

// operationWorker takes up operations that are due. It also keeps this process's lease alive.
type operationWorker struct{ *Gate }

func (l *operationWorker) run(ctx context.Context) error {
	alive, silent := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	// on its own: it must go on while the loop is busy, and until the last is done
	go func() { defer close(over); l.keepBeating(alive) }()
	defer func() { silent(); <-over }()
	var work errgroup.Group
	var busy atomic.Int32
	for ctx.Err() == nil {
		free := together - int(busy.Load())
		ops, next, err := l.claim(ctx, free)
		if err != nil && ctx.Err() == nil {
			l.Log.Error("could not look for operations that are due", "error", err)
		}
		for _, op := range ops {
			busy.Add(1)
			work.Go(func() error {
				l.takeUp(alive, op)
				if busy.Add(-1) == together-1 {
					l.Wakeup() // there was no room for more, and now there is
				}
				return nil
			})
		}
		if len(ops) < free || free == 0 {
			l.nudged.Wait(ctx, next)
		}
	}
	return work.Wait()
}

func (l *operationWorker) keepBeating(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			l.beat(ctx)
		}
	}
}

func (l *operationWorker) step(ctx context.Context) (int, error) {
	ops, _, err := l.claim(ctx, together)
	for _, op := range ops {
		l.takeUp(ctx, op)
	}
	return len(ops), err
}

// Close waits for calls that have left, for a while, and says goodbye. What is still out then is taken up after the
// next start.
func (g *Gate) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { g.live.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	keep := context.WithoutCancel(ctx)
	return g.DB.Update(keep, func(tx *store.Tx) error { return tx.System().UnregisterProcess(keep, g.process) })
}

// changed says that something was committed that somebody may wait for.
func (g *Gate) changed() {
	if g.OnChange != nil {
		g.OnChange()
	}
}

// Wakeup makes the loop look now.
func (g *Gate) Wakeup() { g.nudged.Notify() }

// beat says that this process lives. If others gave it up meanwhile, it joins again under its name: what was in its
// hands has been taken, and its late answers will be refused.
func (l *operationWorker) beat(ctx context.Context) {
	at, known := reeve.Now(), false
	err := l.DB.Update(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.System().Heartbeat(ctx, l.process, l.Patience)
		if err == nil && !known {
			err = tx.System().RegisterProcess(ctx, l.process)
		}
		return err
	})
	switch {
	case err == nil:
		l.lease.renew(at, known)
	case ctx.Err() == nil:
		l.Log.Error("could not say that this server lives", "error", err)
	}
}

// claim closes what has expired, takes what is due, and says how long until the next.
func (l *operationWorker) claim(ctx context.Context, n int) (ops []reeve.Operation, next time.Duration, err error) {
	next = poll
	if l.pending.flush(ctx) {
		next = heartbeat / 5
	}
	held := false
	if err := l.DB.View(ctx, func(s *store.Snap) (err error) {
		held, err = s.System().
			Held(ctx)
		return err
	}); err != nil || held {
		return nil, next, err
	}
	if err := l.Inbox.expire(ctx); err != nil {
		return nil, next, err
	}
	err = l.DB.Update(ctx, func(tx *store.Tx) error {
		until := func(due int64, waiting bool, err error) error {
			if waiting {
				next = min(next, max(10*time.Millisecond, reeve.FromMillis(due).Sub(tx.Now())))
			}
			return err
		}
		if err := until(tx.Ledger().NextExpiry(ctx)); err != nil || n == 0 {
			return err // no operation is due for us while our hands are full
		}
		if err := tx.Ledger().ReleaseLost(ctx); err != nil {
			return err
		}
		if ops, err = tx.Ledger().ClaimOperations(ctx, l.process, n); err != nil {
			return err
		}
		return until(tx.Ledger().NextDue(ctx))
	})
	if err != nil { // they are not ours; or nobody can tell
		for _, op := range ops {
			l.releaseLater(op)
		}
		return nil, next, err
	}
	return ops, next, nil
}

// takeUp brings one operation further. Its failure is logged: the operation stays due.
func (l *operationWorker) takeUp(ctx context.Context, op reeve.Operation) {
	var err error
	for range maxDecisions {
		if _, err = l.resume(ctx, op); !overtaken(err) {
			break
		}
		if err := l.catchUp(ctx, op.WorkspaceID, func(*store.Tx) error { return nil }); err != nil {
			break
		}
	}
	if err != nil && l.release(ctx, op) {
		switch reeve.CodeOf(err) {
		case reeve.Stopped, reeve.Canceled: // it waits
		default:
			l.Log.Error("could not take up an operation; it will be tried again", "operation", op.ID, "agent",
				op.AgentID, "tool", op.Tool, "error", err)
		}
	}
	l.changed()
}

// release puts an operation that could not be taken up back, to be tried again later. False means that somebody has
// settled it.
func (l *operationWorker) release(ctx context.Context, op reeve.Operation) bool {
	is := op
	next := reeve.Now().Add(l.Backoff.First)
	is.Owner, is.NextAttemptAt = "", &next
	err := l.DB.Update(ctx, func(tx *store.Tx) error { return tx.Ledger().TransitionOperation(ctx, op, is, nil) })
	if reeve.CodeOf(err) == reeve.Conflict {
		return false
	}
	if err != nil {
		l.releaseLater(op)
	}
	return true
}

// resume takes up an operation from its rows.
func (l *operationWorker) resume(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	if op.State != reeve.Prepared { // which is judged, and so found out
		l.views.doubt(op.WorkspaceID)
	}
	req, err := l.recall(ctx, op)
	switch reeve.CodeOf(err) {
	case "":
	case reeve.NotFound:
		return l.orphan(ctx, op, errGone)
	case reeve.Denied: // an agent on whose behalf the call was made is gone
		return l.orphan(ctx, op, reeve.AsError(err))
	default:
		return reeve.Result{}, err
	}
	if op.State == reeve.Prepared {
		return l.carryOut(ctx, l.decide(ctx, req))
	}
	if stop := req.stopped(); stop != nil && op.Effect != reeve.Unsafe {
		return reeve.Result{}, stop // nothing is sent while the kill switch is on
	}
	d, callable := req.asDecided()
	a := newAttempt(newRecorder(d))
	a.rec.budget.key = op.CallID
	if !callable {
		return a.rec.conclude(ctx, op,
			d.failure(ambiguous, reeve.Errorf(reeve.UnknownOutcome,
				"the tool is gone, so nobody can tell what happened")))
	}
	a.earlier = op.Tries + 1
	return a.resume(ctx, op)
}

// resume settles an operation that was sent and whose outcome was not recorded, by its effect class.
func (a *Attempt) resume(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	lost := a.failure(ambiguous,
		reeve.Errorf(reeve.UnknownOutcome, "the server stopped before the outcome was recorded"))
	if lost.attempts = a.earlier; op.Message != "" {
		lost.err.Message = op.Message
	}
	if op.IsAwaited() {
		lost = a.failure(ambiguous, reeve.Errorf(reeve.Timeout, "its outcome did not come from outside within %s",
			a.tool().Timeout()))
		lost.attempts = a.earlier
		return a.rec.conclude(ctx, op, lost)
	}
	if op.ToolVersion != a.entry.fingerprint && (op.Effect == reeve.Keyed || op.Effect == reeve.Verifiable) {
		lost.last = true // the tool will not change back
		lost.err.Message = "the tool has changed since it was sent: whoever it would be sent to now may know nothing " +
			"of it"
		return a.rec.conclude(ctx, op, lost)
	}
	switch op.Effect {
	case reeve.Read:
		return a.send(ctx, op)
	case reeve.Keyed:
		a.doubt = true
		return a.send(ctx, op)
	case reeve.Verifiable:
		return a.resumeVerifiable(ctx, op, lost)
	case reeve.Local, reeve.Unsafe:
	}
	return a.rec.conclude(ctx, op, lost)
}

// asDecided returns the decision on a recorded call that was let through before. False means that its tool cannot be
// called any more.
func (r *request) asDecided() (d *Decision, callable bool) {
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

// errGone is why nothing is done for an agent that was removed.
var errGone = reeve.Errorf(reeve.Denied, "the agent is gone").Hintf("another agent must do it")

// orphan ends an operation whose agent is gone, or one on whose behalf it runs: one that may have left is unknown, one
// that has not is denied.
func (l *operationWorker) orphan(ctx context.Context, op reeve.Operation, why *reeve.Error) (reeve.Result, error) {
	err := l.DB.Update(ctx, func(tx *store.Tx) error {
		if op.State == reeve.Prepared {
			return takeBack(ctx, tx, op, why, reeve.Step{Name: "lookup", Verdict: reeve.Refused, Why: why.Message})
		}
		return l.setUnknown(ctx, tx, op, why.Message+", so nobody can tell what happened")
	})
	return reeve.Result{CallID: op.CallID, OperationID: op.ID}, err
}
