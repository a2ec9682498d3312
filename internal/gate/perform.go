package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// attempt runs the handler once and measures it. What it cost is told together with what those before it did.
func (p *pass) attempt(ctx context.Context, n int) outcome {
	o := p.observed(ctx, n, func(ctx context.Context) outcome { return p.try(ctx, n) })
	o.spent = p.spent.Plus(o.spent)
	o.spent.Calls = 1
	return o
}

func (p *pass) try(ctx context.Context, n int) outcome {
	inv := p.invocation(p.earlier + n)
	start := reeve.Monotonic()
	text, err := p.invoke(ctx, inv)
	changed, undo, spent := inv.Close()
	spent.Calls, spent.Millis = 1, max(1, reeve.Since(start).Milliseconds())
	var o outcome
	if e := judgeError(err); e != succeeded {
		o = p.failure(e, err)
		if tx, none := store.TxFrom(ctx); none == nil && reeve.CodeOf(err) == reeve.Timeout && tx.Stalled() {
			err = store.Fault{Kind: store.FaultDown, Err: errors.New(err.Error())}
		}
		if store.Passing(err) {
			o.store = store.Explain(err)
		}
	} else {
		o = outcome{out: p.output(text), changed: p.tokens(changed), undo: undo}
	}
	if o.ending == succeeded || o.ending == ambiguous || o.ending == awaiting && p.tool().Async { // others that are awaited spend for themselves
		spent = p.declared(spent)
	}
	if p.began = nil; o.ending == succeeded || o.ending == awaiting {
		p.began = inv
	}
	if o.ending == awaiting && !p.tool().Async && !p.tool().Awaits {
		o.ending, o.err.Code = ambiguous, reeve.UnknownOutcome // it may come, but nothing here would wait for it
	}
	o.spent, o.attempts = spent, p.earlier+n
	return o
}

// tokens is what a tool says that it changed. What is done outside is done, whatever the tool says of it: what cannot be recorded of that is left out, and logged.
func (p *pass) tokens(said []reeve.Token) []reeve.Token {
	if p.tool().Effect == reeve.Local { // which is taken back instead
		return said
	}
	return slices.DeleteFunc(said, func(k reeve.Token) bool {
		err := k.Check()
		if err != nil {
			p.g.Log.Warn("a tool says of something that it changed what cannot be recorded; nobody is told of it", "tool", p.tool().ID, "operation", p.op, "error", p.redactForLog(err.Error()))
		}
		return err != nil
	})
}

// declared is what an attempt cost: a tool that does not say it cost what it declares.
func (p *pass) declared(spent reeve.Amount) reeve.Amount {
	if spent.Tokens == 0 && spent.Micros == 0 {
		spent.Tokens, spent.Micros = p.tool().Cost.Tokens, p.tool().Cost.Micros
	}
	return spent
}

// attempts runs the handler as often as its retry policy says.
func (p *pass) attempts(ctx context.Context, repeatable bool) outcome {
	return p.repeat(ctx, repeatable, func(n int) outcome { return p.attempt(ctx, n) })
}

// repeat makes attempts as the retry policy says: again after infrastructure errors, never after a refusal, and after an ambiguous
// one only where a second sending can do no harm.
func (p *pass) repeat(ctx context.Context, repeatable bool, once func(n int) outcome) outcome {
	delay := time.Duration(p.tool().Retry.DelayMS) * time.Millisecond
	for n := 1; ; n++ {
		o := once(n)
		p.spent = o.spent
		again := o.ending == unsent || (o.ending == ambiguous && repeatable)
		if !again || !p.timeLeft() || n >= p.tool().Retry.Attempts || !p.pause(ctx, max(delay, o.err.RetryAfter)) {
			return p.weigh(o)
		}
		p.doubt = p.doubt || o.ending == ambiguous
		delay *= 2
	}
}

// pause waits between two attempts. False means that there shall be no other: the caller is gone, of whom that is asked (see dispatch), or what is to be changed must not be any more.
func (p *pass) pause(ctx context.Context, d time.Duration) bool {
	if limit := time.Duration(p.tool().Retry.MaxMS) * time.Millisecond; limit > 0 {
		d = min(d, limit)
	}
	if !notify.Sleep(ctx, min(d, time.Minute)) {
		return false
	}
	return !p.tool().Effect.Mutates() || p.goesOn(ctx)
}

// goesOn tells whether a call that was let through may still change something, by what holds now: the kill switch is on for nobody whom it concerns, and the run of a brain is not over.
func (p *pass) goesOn(ctx context.Context) bool {
	all := []string{p.call.Agent}
	for _, b := range p.behalf {
		all = append(all, b.AgentID)
	}
	for _, who := range all {
		now, err := p.g.views.agent(ctx, p.g, p.call.Workspace, who)
		if err == nil {
			now, err = p.g.views.current(ctx, p.g, now, who)
		}
		if err != nil || now.stopped() != nil {
			return false
		}
	}
	if p.call.Run == "" || !p.call.Via.Brain() {
		return true
	}
	var over error
	err := p.g.DB.View(ctx, func(s *store.Snap) (err error) { over, err = ended(ctx, s, p.call.Workspace, p.call.Run); return err })
	return err == nil && over == nil
}

// weigh makes of an attempt what all attempts together prove. Once one may have had its effect, that another was refused or
// never left says nothing of the first.
func (p *pass) weigh(o outcome) outcome {
	if p.doubt && p.tool().Effect.Leaves() && (o.ending == refused || o.ending == unsent) {
		said := o.err.Message
		o.ending, o.err = ambiguous, o.err.Hintf("")
		o.err.Code, o.err.Message = reeve.UnknownOutcome, "an earlier attempt may have had its effect; the last one did not: "+said
	}
	return o
}

// performRead runs a call that changes nothing.
func (p *pass) performRead(ctx context.Context) (reeve.Result, error) {
	o, err := p.runRead(ctx)
	if err != nil {
		return p.notReserved(err)
	}
	return p.recordRead(ctx, o)
}

func (p *pass) runRead(ctx context.Context) (outcome, error) {
	if err := p.reserve(context.WithoutCancel(ctx)); err != nil {
		return outcome{}, err
	}
	return p.attempts(ctx, true), nil
}

// recordRead writes action and result together. If the workspace changed meanwhile the answer is thrown away and the call judged
// again: it had no effect.
func (p *pass) recordRead(ctx context.Context, o outcome) (reeve.Result, error) {
	res, err := p.record(ctx, o)
	if err != nil {
		p.letGo(ctx)
	}
	return res, err
}

// performLocal runs a call whose effect lives in our own database: effect and record are one transaction.
func (p *pass) performLocal(ctx context.Context) (res reeve.Result, err error) {
	keep := context.WithoutCancel(ctx)
	p.ready()
	ran := false
	o := p.repeat(ctx, false, func(n int) (o outcome) {
		err = p.g.DB.Update(keep, func(tx *store.Tx) (err error) {
			o, ran = outcome{}, false
			if err := p.admit(keep, tx); err != nil {
				return err
			}
			ran = true
			o = p.attempt(store.WithTx(ctx, tx), n)
			if o.ending == awaiting {
				res, err = p.recordAwaited(keep, tx, o)
				return err
			}
			if o.err != nil {
				return o.err // takes back whatever the handler wrote
			}
			res, err = p.recordLocal(keep, tx, o, reeve.Committed)
			return err
		})
		return o
	})
	switch code := reeve.CodeOf(err); {
	case err == nil:
		if p.began.Committed(); o.ending == awaiting && p.within(o) < poll {
			p.g.Nudge() // its time is up before the loop would look
		}
		return res, nil
	case o.store != nil: // not the tool's either, though it was told first
		return p.notReserved(o.store)
	case o.err != nil && o.ending != awaiting:
	case !ran, overtaken(err), code == reeve.Unavailable, code == reeve.UnknownOutcome: // the store's, not the tool's
		return p.notReserved(err)
	default: // the handler did not heed a statement of its own that failed
		spent, attempts := o.spent, o.attempts
		o = p.failure(refused, reeve.Errorf(reeve.ToolFailed, "what the tool wrote could not be kept: %s", reeve.AsError(err).Message))
		o.spent, o.attempts = spent, attempts
	}
	// Its transaction was rolled back: it had no effect, whatever went wrong. Whoever went away and comes back uses the same operation id.
	o.ending = refused
	nothing := p.chose && p.resumed == nil && ctx.Err() != nil && o.err.Code == reeve.Canceled
	err = p.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		if err := p.admit(keep, tx); err != nil {
			return err
		}
		if nothing {
			res, err = p.recordNone(keep, tx, o)
			return err
		}
		res, err = p.recordLocal(keep, tx, o, reeve.Failed)
		return err
	})
	if err != nil {
		return p.notReserved(err)
	}
	return res, nil
}

// admit begins the transaction that lets a call go: it names it, and reserves what it may spend. That it was judged by what still holds is found out when its action is written, or by move.
func (p *pass) admit(ctx context.Context, tx *store.Tx) error {
	p.name(tx)
	if p.call.Automation != "" {
		if err := p.g.ItemRule.Admit(ctx, tx, p.call); err != nil {
			return err
		}
	}
	return p.reserveIn(ctx, tx)
}

// recordLocal writes the operation in its final state, with its result.
func (p *pass) recordLocal(ctx context.Context, tx *store.Tx, o outcome, s reeve.State) (res reeve.Result, err error) {
	op := p.operation(s)
	op.Undo, op.Spent, op.Tries = o.undo, o.spent, 1
	if o.err != nil {
		op.Code, op.Message = o.err.Code, o.err.Message
	}
	r, res, err := p.conclusion(ctx, tx, o)
	if err != nil {
		return res, err
	}
	res.State = s
	if p.resumed == nil {
		err = p.insert(ctx, tx, op, r)
	} else {
		err = p.move(ctx, tx, op, r)
	}
	if err != nil {
		return res, err
	}
	return res, p.spend(ctx, tx, o.spent)
}

// dispatch runs a call whose effect is outside: first the row, then the request, then the outcome. Once the row is written the
// caller's going away changes nothing.
func (p *pass) dispatch(ctx context.Context) (reeve.Result, error) {
	keep := context.WithoutCancel(ctx)
	p.g.live.Add(1)
	defer p.g.live.Done()
	var op reeve.Operation
	err := p.g.DB.Update(keep, func(tx *store.Tx) error {
		if err := p.admit(keep, tx); err != nil {
			return err
		}
		op = p.operation(reeve.Dispatched)
		op.Owner = p.g.process
		p.putInFlight(&op, tx.Now())
		if p.resumed != nil {
			op.Resolution, op.ResolvedBy, op.Spent, op.Tries, op.Deferred = p.resumed.Resolution, p.resumed.ResolvedBy, p.resumed.Spent, p.resumed.Tries, p.resumed.Deferred
			return p.move(keep, tx, op, nil)
		}
		return p.insert(keep, tx, op, nil)
	})
	if err != nil {
		if reeve.CodeOf(err) == reeve.UnknownOutcome {
			p.g.disown(op)
		}
		return p.notReserved(err)
	}
	p.resumed = &op
	return p.send(keep, op)
}

// send makes the request and records what became of it.
func (p *pass) send(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	if p.lapsed() {
		p.g.disown(op)
		return pending(op), nil
	}
	if op.Effect != reeve.Verifiable {
		return p.conclude(ctx, op, p.attempts(ctx, p.tool().Effect == reeve.Keyed))
	}
	op, o := p.sendVerifiable(ctx, op)
	if o.ending == ambiguous {
		o = p.verify(ctx, op, o)
		if o.ending == unsent {
			o.ending = ambiguous // the request may still be on its way: the loop looks again, see takeUpVerifiable
		}
	}
	return p.conclude(ctx, op, o)
}

// verify asks a verifiable tool what became of an attempt. An attempt that did not happen is proven not to have.
func (p *pass) verify(ctx context.Context, op reeve.Operation, doubt outcome) outcome {
	inv := p.invocation(doubt.attempts)
	type answer struct {
		what reeve.Outcome
		text string
	}
	a, err := guard(ctx, p, func(ctx context.Context) (a answer, err error) {
		what, v, err := p.tool().Verify(ctx, inv)
		return answer{what, p.g.text(v)}, err
	})
	changed, undo, _ := inv.Close()
	if err != nil {
		p.g.Log.Warn("a tool could not look up what happened", "tool", p.tool().ID, "operation", op.ID, "error", p.redactForLog(err.Error()))
		return doubt
	}
	switch a.what {
	case reeve.Applied:
		return outcome{out: p.output(a.text), changed: p.tokens(changed), undo: undo, spent: doubt.spent, attempts: doubt.attempts}
	case reeve.NotApplied:
		doubt.ending = unsent
	case reeve.CannotTell:
	}
	return doubt
}

// conclude records the outcome of a request that may have left: committed, failed when that is proven, and otherwise to be
// looked into again or, at the end of all tries, unknown.
func (p *pass) conclude(ctx context.Context, was reeve.Operation, o outcome) (res reeve.Result, err error) {
	o.spent.Calls = 1
	if was.Spent.Calls > 0 {
		o.spent.Calls = 0 // however often it is sent, it is one call
	}
	is := was
	is.Owner, is.NextAttemptAt, is.TimeoutAt = "", nil, nil
	is.Spent = was.Spent.Plus(o.spent)
	if o.ending != awaiting { // which counts when it has come
		is.Tries++
	}
	if o.err != nil {
		is.Code, is.Message = o.err.Code, o.err.Message
	}
	switch {
	case o.ending == succeeded:
		is.State, is.Code, is.Message = reeve.Committed, "", ""
	case o.ending == refused || o.ending == unsent || o.ending == ambiguous && is.Effect == reeve.Read:
		is.State = reeve.Failed
	case o.ending == awaiting:
		is.TimeoutAt = p.until(o)
		is.NextAttemptAt, is.Code, is.Message = is.TimeoutAt, reeve.InProgress, "its outcome comes from outside"
	case is.Effect == reeve.Unsafe || o.last || is.Tries%p.g.Backoff.Tries == 0: // as often again, when a person has it run again
		is.State, is.Code, is.Resolution = reeve.Unknown, reeve.UnknownOutcome, ""
	default:
		next := reeve.Now().Add(p.g.Backoff.After(is.Tries % p.g.Backoff.Tries))
		is.NextAttemptAt = &next
	}
	write := func(ctx context.Context, o outcome) error {
		return p.g.DB.Update(ctx, func(tx *store.Tx) (err error) {
			var r *store.CallResult
			is.Undo = o.undo
			if is.State == reeve.Committed || is.State == reeve.Failed {
				all := o
				all.spent = is.Spent // the result says what the whole of it cost; the budgets have had a part of that before
				if r, res, err = p.conclusion(ctx, tx, all); err != nil {
					return err
				}
				is.ResultID = r.ID
			}
			if err := p.spend(ctx, tx, o.spent); err != nil {
				return err
			}
			if is.State == reeve.Dispatched {
				if err := p.hold(ctx, tx); err != nil {
					return err
				}
			}
			if err := tx.MoveOperation(ctx, was, is, r); err != nil {
				return err
			}
			if is.State == reeve.Unknown {
				if err := p.g.tellUnknown(ctx, tx, is); err != nil {
					return err
				}
			}
			if err := tx.Late(ctx, was, is); err != nil || !p.brought {
				return err
			}
			now, err := tx.GetOperation(ctx, was.WorkspaceID, was.ID)
			if err != nil {
				return err
			}
			return tx.Answer(ctx, now)
		})
	}
	record := func(ctx context.Context) error {
		err := write(ctx, o)
		if forGood(err) {
			p.g.Log.Error("what a tool gave cannot be recorded; its outcome is, without that", "tool", p.tool().ID, "operation", was.ID, "error", err)
			err = write(ctx, p.bare(o))
		}
		if reeve.CodeOf(err) == reeve.Conflict && !p.brought { // whoever brings an outcome too late is told so
			is, res, err = p.answered(ctx, was)
		}
		return err
	}
	if err := record(ctx); err != nil {
		if p.brought { // whoever has it is told, and brings it again: kept here, it would be gone with this process
			return reeve.Result{}, err
		}
		return p.owe(was, record, err)
	}
	if is.State == reeve.Dispatched {
		p.g.Nudge()
	}
	if res.CallID == "" {
		res = pending(is)
	}
	res.State = is.State
	return res, nil
}

// pending is the answer for a call whose outcome is not recorded yet.
func pending(op reeve.Operation) reeve.Result {
	res := reeve.Result{CallID: op.CallID, OperationID: op.ID, State: op.State, Spent: op.Spent, IsError: true}
	switch op.State {
	case reeve.Unknown:
		res.Code, res.Message = reeve.UnknownOutcome, "it may or may not have happened: "+op.Message
		res.Hint = "a person must say, in the inbox, whether it happened"
	case reeve.Parked:
		res.IsError, res.Code, res.Message = false, reeve.ApprovalRequired, "a person must approve this call first"
		res.Hint = "it will run by itself, once, when it is approved"
	case reeve.Prepared, reeve.Dispatched, reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
		if op.Deferred {
			res.IsError, res.Deferred, res.Code, res.Message = false, true, reeve.InProgress, "it has been started; its result comes later"
			return res
		}
		if res.IsError, res.Code = false, reeve.InProgress; op.Awaited() {
			res.Message, res.Hint = "it has been started; its outcome comes later", "look at the operation later"
			return res
		}
		res.Message = "the outcome is not known yet; Reeve is finding out"
		res.Hint = "look at the operation later"
	}
	return res
}
