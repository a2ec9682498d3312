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

// Run takes up operations that are due, until ctx ends: calls that were approved, and calls whose outcome a crash or a lost
// connection left open. It returns when all that it started has ended.
func (g *Gate) Run(ctx context.Context) error {
	alive, silent := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() { defer close(over); g.keepBeating(alive) }() // on its own: it must go on while the loop is busy, and until the last is done
	defer func() { silent(); <-over }()
	var work errgroup.Group
	var busy atomic.Int32
	for ctx.Err() == nil {
		free := together - int(busy.Load())
		ops, next, err := g.claim(ctx, free)
		if err != nil && ctx.Err() == nil {
			g.Log.Error("could not look for operations that are due", "error", err)
		}
		for _, op := range ops {
			busy.Add(1)
			work.Go(func() error {
				g.takeUp(alive, op)
				if busy.Add(-1) == together-1 {
					g.Nudge() // there was no room for more, and now there is
				}
				return nil
			})
		}
		if len(ops) < free || free == 0 {
			g.nudged.Wait(ctx, next)
		}
	}
	return work.Wait()
}

func (g *Gate) keepBeating(ctx context.Context) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			g.beat(ctx)
		}
	}
}

// Step does once what Run does again and again, and waits for it. It returns how many operations it took up.
func (g *Gate) Step(ctx context.Context) (int, error) {
	ops, _, err := g.claim(ctx, together)
	for _, op := range ops {
		g.takeUp(ctx, op)
	}
	return len(ops), err
}

// Close waits for calls that have left, for a while, and says goodbye. What is still out then is taken up after the next start.
func (g *Gate) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { g.live.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	keep := context.WithoutCancel(ctx)
	return g.DB.Update(keep, func(tx *store.Tx) error { return tx.LeaveProcess(keep, g.process) })
}

// changed says that something was committed that somebody may wait for.
func (g *Gate) changed() {
	if g.OnChange != nil {
		g.OnChange()
	}
}

// Nudge makes the loop look now.
func (g *Gate) Nudge() { g.nudged.Notify() }

// beat says that this process lives. If others gave it up meanwhile, it joins again under its name: what was in its hands has
// been taken, and its late answers will be refused.
func (g *Gate) beat(ctx context.Context) {
	at, known := reeve.Now(), false
	err := g.DB.Update(ctx, func(tx *store.Tx) (err error) {
		known, err = tx.Heartbeat(ctx, g.process, g.Patience)
		if err == nil && !known {
			err = tx.JoinProcess(ctx, g.process)
		}
		return err
	})
	switch {
	case err == nil:
		g.lease.renew(at, known)
	case ctx.Err() == nil:
		g.Log.Error("could not say that this server lives", "error", err)
	}
}

// claim closes what has expired, takes what is due, and says how long until the next.
func (g *Gate) claim(ctx context.Context, n int) (ops []reeve.Operation, next time.Duration, err error) {
	next = poll
	if g.owed.pay(ctx) {
		next = heartbeat / 5
	}
	held := false
	if err := g.DB.View(ctx, func(s *store.Snap) (err error) { held, err = s.Held(ctx); return err }); err != nil || held {
		return nil, next, err
	}
	if err := g.expire(ctx); err != nil {
		return nil, next, err
	}
	err = g.DB.Update(ctx, func(tx *store.Tx) error {
		until := func(due int64, waiting bool, err error) error {
			if waiting {
				next = min(next, max(10*time.Millisecond, reeve.FromMillis(due).Sub(tx.Now())))
			}
			return err
		}
		if err := until(tx.NextExpiry(ctx)); err != nil || n == 0 {
			return err // no operation is due for us while our hands are full
		}
		if err := tx.ReleaseLost(ctx); err != nil {
			return err
		}
		if ops, err = tx.ClaimOperations(ctx, g.process, n); err != nil {
			return err
		}
		return until(tx.NextDue(ctx))
	})
	if err != nil { // they are not ours; or nobody can tell
		for _, op := range ops {
			g.disown(op)
		}
		return nil, next, err
	}
	return ops, next, nil
}

// takeUp brings one operation further. Its failure is logged: the operation stays due.
func (g *Gate) takeUp(ctx context.Context, op reeve.Operation) {
	var err error
	for range rejudge {
		if _, err = g.resume(ctx, op); !overtaken(err) {
			break
		}
		if err := g.catchUp(ctx, op.WorkspaceID, func(*store.Tx) error { return nil }); err != nil {
			break
		}
	}
	if err != nil && g.release(ctx, op) {
		switch reeve.CodeOf(err) {
		case reeve.Stopped, reeve.Canceled: // it waits
		default:
			g.Log.Error("could not take up an operation; it will be tried again", "operation", op.ID, "agent", op.AgentID, "tool", op.Tool, "error", err)
		}
	}
	g.changed()
}

// release puts an operation that could not be taken up back, to be tried again later. False means that somebody has settled it.
func (g *Gate) release(ctx context.Context, op reeve.Operation) bool {
	is := op
	next := reeve.Now().Add(g.Backoff.First)
	is.Owner, is.NextAttemptAt = "", &next
	err := g.DB.Update(ctx, func(tx *store.Tx) error { return tx.MoveOperation(ctx, op, is, nil) })
	if reeve.CodeOf(err) == reeve.Conflict {
		return false
	}
	if err != nil {
		g.disown(op)
	}
	return true
}

// resume takes up an operation from its rows.
func (g *Gate) resume(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	if op.Awaited() && op.Effect == reeve.Local {
		return reeve.Result{CallID: op.CallID, OperationID: op.ID}, g.overdue(ctx, op)
	}
	if op.State != reeve.Prepared { // which is judged, and so found out
		g.views.doubt(op.WorkspaceID)
	}
	p, err := g.recall(ctx, op)
	switch reeve.CodeOf(err) {
	case "":
	case reeve.NotFound:
		return g.orphan(ctx, op, errGone)
	case reeve.Denied: // which the agent's being gone is for those whom it had called
		return g.orphan(ctx, op, reeve.AsError(err))
	default:
		return reeve.Result{}, err
	}
	if op.State == reeve.Prepared {
		return p.settle(ctx, p.judge(ctx))
	}
	if stop := p.stopped(); stop != nil && op.Effect != reeve.Unsafe {
		return reeve.Result{}, stop // nothing is sent while the kill switch is on
	}
	if !p.known() {
		p.held = op.CallID
		return p.conclude(ctx, op, p.failure(ambiguous, reeve.Errorf(reeve.UnknownOutcome, "the tool is gone, so nobody can tell what happened")))
	}
	p.earlier, p.held = op.Tries+1, op.CallID
	lost := p.failure(ambiguous, reeve.Errorf(reeve.UnknownOutcome, "the server stopped before the outcome was recorded"))
	if lost.attempts = p.earlier; op.Message != "" {
		lost.err.Message = op.Message
	}
	if op.Awaited() {
		lost = p.failure(ambiguous, reeve.Errorf(reeve.Timeout, "its outcome did not come from outside within %s", p.tool().Timeout()))
		lost.attempts = p.earlier
		return p.conclude(ctx, op, lost)
	}
	if op.ToolVersion != p.entry.fingerprint && (op.Effect == reeve.Keyed || op.Effect == reeve.Verifiable) {
		lost.last = true // it will not be any other
		lost.err.Message = "the tool has changed since it was sent: whoever it would be sent to now may know nothing of it"
		return p.conclude(ctx, op, lost)
	}
	switch op.Effect {
	case reeve.Read:
		return p.send(ctx, op)
	case reeve.Keyed:
		p.doubt = true
		return p.send(ctx, op)
	case reeve.Verifiable:
		return p.takeUpVerifiable(ctx, op, lost)
	case reeve.Local, reeve.Unsafe:
	}
	return p.conclude(ctx, op, lost)
}

// recall rebuilds a pass from what was recorded.
func (g *Gate) recall(ctx context.Context, op reeve.Operation) (*pass, error) {
	var c store.Call
	var a reeve.Approval
	var asked bool
	err := g.DB.View(ctx, func(s *store.Snap) (err error) {
		if c, err = s.GetCall(ctx, op.WorkspaceID, op.CallID); err != nil {
			return err
		}
		a, asked, err = s.LastApproval(ctx, op.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	info, err := c.Asked()
	if err != nil {
		return nil, err
	}
	item, err := g.itemOf(ctx, op, info)
	if err != nil {
		return nil, err
	}
	args, err := g.trueArgs(ctx, op, info, c.Args)
	if err != nil {
		return nil, err
	}
	p, err := g.begin(ctx, reeve.Call{Workspace: op.WorkspaceID, Agent: op.AgentID, Tool: op.Tool, Args: args, Session: info.Session,
		Run: op.RunID, User: info.User, Via: info.Via, Tools: info.Tools, Base: info.Base, Reason: info.Reason, Ref: info.Ref})
	if err != nil {
		return nil, err
	}
	p.id, p.op, p.undoes, p.resumed = op.CallID, op.ID, info.Undoes, &op
	p.home = op.ThreadID
	p.args, p.argsHash, p.proposal = args, op.ArgsHash, item
	if asked {
		p.approval = &a
	}
	return p, nil
}

// itemOf gives the proposal that an operation applies, if it does.
func (g *Gate) itemOf(ctx context.Context, op reeve.Operation, info reeve.ActionInfo) (*reeve.Proposal, error) {
	if info.ProposalID == "" {
		return nil, nil
	}
	var item reeve.Proposal
	return &item, g.DB.View(ctx, func(s *store.Snap) (err error) {
		item, err = s.GetProposal(ctx, op.WorkspaceID, info.ProposalID)
		return err
	})
}

// known fills in the tool of an operation that was let through before; false means that it cannot be called any more.
func (p *pass) known() bool {
	e, ok := p.view.workspace.tools[p.call.Tool]
	if !ok || e.tool.Broken != "" {
		p.entry = &entry{tool: reeve.Tool{ID: p.call.Tool, Effect: p.resumed.Effect}.WithDefaults()}
		return false
	}
	p.entry, p.config = e, p.view.attached[e.tool.ID]
	return true
}

// move lets an operation go on whose call is written already.
func (p *pass) move(ctx context.Context, tx *store.Tx, op reeve.Operation, result *store.CallResult) error {
	if err := p.stillJudged(ctx, tx); err != nil {
		return err
	}
	if result != nil {
		op.ResultID = result.ID
	}
	return tx.MoveOperation(ctx, *p.resumed, op, result)
}

// stillJudged checks, for an operation whose action is written already, that the workspace is as it was judged, and keeps it so until the transaction ends: a stop comes before it, or after it.
func (p *pass) stillJudged(ctx context.Context, tx *store.Tx) error {
	w, err := tx.HoldWorkspace(ctx, p.call.Workspace)
	if err == nil && w.Revision != p.view.ws.Revision {
		return store.Stale{}
	}
	return err
}

// abandon ends a prepared operation that the gate now refuses.
func (p *pass) abandon(ctx context.Context, refusal error) (reeve.Result, error) {
	switch reeve.CodeOf(refusal) {
	case reeve.Stopped, reeve.Canceled:
		return reeve.Result{}, refusal // it waits
	default:
	}
	op, why := *p.resumed, p.failure(refused, refusal).err
	keep := context.WithoutCancel(ctx)
	err := p.g.DB.Update(keep, func(tx *store.Tx) error {
		if err := p.stillJudged(keep, tx); err != nil { // by what another server has changed since, it may not be refused
			return err
		}
		return p.g.takeBack(keep, tx, op, why, p.refusedBy())
	})
	if err == nil {
		p.spanRefusal(ctx, why)
	}
	return reeve.Result{CallID: op.CallID, OperationID: op.ID, State: reeve.DeniedOp, IsError: true, Code: why.Code, Message: why.Message}, err
}

// errGone is why nothing is done for an agent that was removed.
var errGone = reeve.Errorf(reeve.Denied, "the agent is gone").Hintf("another agent must do it")

// orphan ends an operation whose agent is gone, or one on whose behalf it runs: one that may have left is unknown, one that has not is denied.
func (g *Gate) orphan(ctx context.Context, op reeve.Operation, why *reeve.Error) (reeve.Result, error) {
	err := g.DB.Update(ctx, func(tx *store.Tx) error {
		if op.State == reeve.Prepared {
			return g.takeBack(ctx, tx, op, why, reeve.Step{Name: "lookup", Verdict: reeve.Refused, Why: why.Message})
		}
		return g.setUnknown(ctx, tx, op, why.Message+", so nobody can tell what happened")
	})
	return reeve.Result{CallID: op.CallID, OperationID: op.ID}, err
}
