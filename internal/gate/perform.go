package gate

import (
	"context"
	"time"

	"reeve"
	"reeve/internal/store"
)

// attempt runs the handler once and measures it.
func (p *pass) attempt(ctx context.Context, n int) outcome {
	inv := p.invocation(n)
	start := reeve.Monotonic()
	v, err := p.invoke(ctx, inv)
	changed, undo, spent := inv.Close()
	spent.Calls, spent.Millis = 1, max(1, reeve.Since(start).Milliseconds())
	var o outcome
	if e := judgeError(err); e != succeeded {
		o = p.failure(e, err)
	} else {
		o = outcome{out: p.output(v), changed: changed, undo: undo}
	}
	o.spent, o.attempts = spent, n
	return o
}

// attempts runs the handler as often as its retry policy says: after infrastructure errors, never after a refusal, and after
// an ambiguous one only where a second sending can do no harm.
func (p *pass) attempts(ctx context.Context, repeatable bool) outcome {
	retry := p.tool().Retry
	delay := time.Duration(retry.DelayMS) * time.Millisecond
	var spent reeve.Amount
	for n := 1; ; n++ {
		o := p.attempt(ctx, n)
		spent.Tokens += o.spent.Tokens
		spent.Micros += o.spent.Micros
		spent.Millis += o.spent.Millis
		spent.Calls = 1
		o.spent = spent
		again := o.ending == unsent || (o.ending == ambiguous && repeatable)
		if !again || n >= retry.Attempts {
			return o
		}
		if o.err.RetryAfter > delay {
			delay = o.err.RetryAfter
		}
		if limit := time.Duration(retry.MaxMS) * time.Millisecond; limit > 0 {
			delay = min(delay, limit)
		}
		if !wait(ctx, min(delay, time.Minute)) {
			return o
		}
		delay *= 2
	}
}

// wait sleeps a short while between attempts of one call; false means the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// runRead runs a call that changes nothing.
func (p *pass) runRead(ctx context.Context) outcome {
	if err := p.reserve(ctx); err != nil {
		return p.failure(refused, err)
	}
	return p.attempts(ctx, true)
}

// recordRead writes action and result together. If the workspace changed meanwhile the answer is thrown away and the call judged
// again: it had no effect.
func (p *pass) recordRead(ctx context.Context, o outcome) (res reeve.Result, err error) {
	err = p.g.DB.Update(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		if err := p.appendAction(ctx, tx); err != nil {
			return err
		}
		_, res, err = p.appendResult(context.WithoutCancel(ctx), tx, o)
		return err
	})
	return res, err
}

// performLocal runs a call whose effect lives in our own database: effect and record are one transaction.
func (p *pass) performLocal(ctx context.Context) (res reeve.Result, err error) {
	var o outcome
	for n := 1; ; n++ {
		err = p.g.DB.Update(ctx, func(tx *store.Tx) (err error) {
			if err := p.reserveIn(ctx, tx); err != nil {
				return err
			}
			if o = p.attempt(store.WithTx(ctx, tx), n); o.err != nil {
				return o.err // takes back whatever the handler wrote
			}
			res, err = p.recordLocal(ctx, tx, o, reeve.Committed)
			return err
		})
		if o.err == nil || o.ending != unsent || n >= p.tool().Retry.Attempts {
			break
		}
		if !wait(ctx, time.Duration(p.tool().Retry.DelayMS)*time.Millisecond) {
			break
		}
	}
	if err == nil {
		return res, nil
	}
	if o.err == nil {
		return p.notReserved(err)
	}
	o.ending = refused // its transaction was rolled back: it had no effect, whatever went wrong
	keep := context.WithoutCancel(ctx)
	err = p.g.DB.Update(keep, func(tx *store.Tx) (err error) {
		res, err = p.recordLocal(keep, tx, o, reeve.Failed)
		return err
	})
	return res, err
}

// recordLocal writes the operation in its final state, and the messages.
func (p *pass) recordLocal(ctx context.Context, tx *store.Tx, o outcome, s reeve.State) (res reeve.Result, err error) {
	if p.resumed == nil {
		if err := p.appendAction(ctx, tx); err != nil {
			return res, err
		}
	}
	m, res, err := p.appendResult(ctx, tx, o)
	if err != nil {
		return res, err
	}
	op := p.operation(s)
	op.ResultID, op.Undo, op.Spent, op.Tries = m.ID, o.undo, o.spent, o.attempts
	if o.err != nil {
		op.Code, op.Message = o.err.Code, o.err.Message
	}
	res.State = s
	if p.resumed == nil {
		return res, tx.InsertOperation(ctx, op)
	}
	return res, tx.MoveOperation(ctx, *p.resumed, op)
}

// dispatch runs a call whose effect is outside: first the row, then the request, then the outcome. Once the row is written the
// caller's going away changes nothing.
func (p *pass) dispatch(ctx context.Context) (reeve.Result, error) {
	op := p.operation(reeve.Dispatched)
	op.Owner = p.g.process
	if p.resumed != nil {
		op.ResolvedBy = p.resumed.ResolvedBy
	}
	p.g.live.Add(1)
	defer p.g.live.Done()
	err := p.g.DB.Update(ctx, func(tx *store.Tx) error {
		if err := p.reserveIn(ctx, tx); err != nil {
			return err
		}
		if p.resumed != nil {
			if err := p.stillJudged(ctx, tx); err != nil {
				return err
			}
			return tx.MoveOperation(ctx, *p.resumed, op)
		}
		if err := p.appendAction(ctx, tx); err != nil {
			return err
		}
		return tx.InsertOperation(ctx, op)
	})
	if err != nil {
		return p.notReserved(err)
	}
	p.resumed = &op
	return p.send(context.WithoutCancel(ctx), op)
}

// send makes the request and records what became of it.
func (p *pass) send(ctx context.Context, op reeve.Operation) (reeve.Result, error) {
	o := p.attempts(ctx, p.tool().Effect == reeve.Keyed)
	if o.ending == ambiguous && p.tool().Effect == reeve.Verifiable {
		o = p.verify(ctx, op, o)
	}
	return p.conclude(ctx, op, o)
}

// verify asks a verifiable tool what became of an attempt. An attempt that did not happen is proven not to have.
func (p *pass) verify(ctx context.Context, op reeve.Operation, doubt outcome) outcome {
	inv := p.invocation(op.Tries + 1)
	type answer struct {
		what reeve.Outcome
		v    any
	}
	a, err := guard(ctx, p, func(ctx context.Context) (a answer, err error) {
		a.what, a.v, err = p.tool().Verify(ctx, inv)
		return a, err
	})
	changed, undo, _ := inv.Close()
	if err != nil {
		p.g.Log.Warn("a tool could not look up what happened", "tool", p.tool().ID, "operation", op.ID, "error", err)
		return doubt
	}
	switch a.what {
	case reeve.Applied:
		return outcome{out: p.output(a.v), changed: changed, undo: undo, spent: doubt.spent, attempts: doubt.attempts}
	case reeve.NotApplied:
		doubt.ending = unsent
	case reeve.CannotTell:
	}
	return doubt
}

// conclude records the outcome of a request that may have left: committed, failed when that is proven, and otherwise to be
// looked into again or, at the end of all tries, unknown.
func (p *pass) conclude(ctx context.Context, was reeve.Operation, o outcome) (res reeve.Result, err error) {
	is := was
	is.Owner, is.NextAttemptAt = "", nil
	is.Undo, is.Spent = o.undo, o.spent
	if o.err != nil {
		is.Code, is.Message = o.err.Code, o.err.Message
	}
	switch {
	case o.ending == succeeded:
		is.State, is.Code, is.Message = reeve.Committed, "", ""
	case o.ending == refused || o.ending == unsent:
		is.State = reeve.Failed
	case is.Effect == reeve.Unsafe || is.Tries+1 >= p.g.Backoff.Tries:
		is.State, is.Code, is.Resolution = reeve.Unknown, reeve.UnknownOutcome, ""
	default:
		is.Tries++
		is.State = reeve.Dispatched
		next := reeve.Now().Add(p.g.Backoff.after(is.Tries))
		is.NextAttemptAt = &next
	}
	err = p.g.DB.Update(ctx, func(tx *store.Tx) error {
		var m reeve.Message
		final := is.State == reeve.Committed || is.State == reeve.Failed
		if final {
			if m, res, err = p.appendResult(ctx, tx, o); err != nil {
				return err
			}
			is.ResultID = m.ID
		} else if is.State == reeve.Unknown {
			if err := p.spend(ctx, tx, o.spent); err != nil {
				return err
			}
		}
		return tx.MoveOperation(ctx, was, is)
	})
	if err != nil {
		return res, err
	}
	if is.State == reeve.Dispatched {
		p.g.nudge()
	}
	if res.CallID == "" {
		res = p.pending(is)
	}
	res.State = is.State
	return res, nil
}

// pending is the answer for a call whose outcome is not recorded yet.
func (p *pass) pending(op reeve.Operation) reeve.Result {
	res := reeve.Result{CallID: op.CallID, OperationID: op.ID, State: op.State, IsError: true}
	switch op.State {
	case reeve.Unknown:
		res.Code, res.Message = reeve.UnknownOutcome, "it may or may not have happened: "+op.Message
		res.Hint = "a person must say, in the inbox, whether it happened"
	case reeve.Parked:
		res.IsError, res.Code, res.Message = false, reeve.ApprovalRequired, "a person must approve this call first"
		res.Hint = "it will run by itself, once, when it is approved"
	case reeve.Prepared, reeve.Dispatched, reeve.Committed, reeve.Failed, reeve.DeniedOp:
		res.IsError, res.Code, res.Message = false, reeve.InProgress, "the outcome is not known yet; Reeve is finding out"
		res.Hint = "look at the operation later"
	}
	return res
}
