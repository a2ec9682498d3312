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

// Attempt runs the tool of a call that was let through, as often as the tool's retry policy says.
type Attempt struct {
	*Decision
	rec     *Recorder
	earlier int               // how often the call was sent before, by earlier runs of the server
	spent   reeve.Amount      // by the attempts so far
	doubt   bool              // one of them may have had its effect
	began   *reeve.Invocation // the attempt that went well, or began something that is awaited
}

func newAttempt(rec *Recorder) *Attempt { return &Attempt{Decision: rec.Decision, rec: rec} }

// outcome is what an attempt, or a refusal, resulted in.
type outcome struct {
	ending   ending
	err      *reeve.Error // nil when it succeeded
	out      output
	changed  []reeve.Token
	undo     *reeve.Undo
	spent    reeve.Amount
	attempts int
	last     bool   // the call is not tried again, however many tries are left
	proposal string // the item of a change set that the call became
	store    error  // what went wrong was a passing fault of the store
}

// repeatHandler runs the handler as often as its retry policy says.
func (a *Attempt) repeatHandler(ctx context.Context, repeatable bool) outcome {
	return a.repeat(ctx, repeatable, func(n int) outcome { return a.run(ctx, n) })
}

// repeat makes attempts as the retry policy says: again after infrastructure errors, never after a refusal, and after
// an ambiguous outcome only where a second sending does no harm.
func (a *Attempt) repeat(ctx context.Context, repeatable bool, once func(n int) outcome) outcome {
	delay := time.Duration(a.tool().Retry.DelayMS) * time.Millisecond
	for n := 1; ; n++ {
		o := once(n)
		a.spent = o.spent
		again := o.ending == unsent || (o.ending == ambiguous && repeatable)
		if !again || !a.rec.budget.hasTime(a.took()) || n >= a.tool().Retry.Attempts ||
			!a.pause(ctx, max(delay, o.err.RetryAfter)) {
			return a.combine(o)
		}
		a.doubt = a.doubt || o.ending == ambiguous
		delay *= 2
	}
}

// run runs the handler once, in a span. The outcome includes what the attempts before it spent.
func (a *Attempt) run(ctx context.Context, n int) outcome {
	o := a.observe(ctx, n, func(ctx context.Context) outcome { return a.runOnce(ctx, n) })
	o.spent = a.spent.Plus(o.spent)
	o.spent.Calls = 1
	return o
}

func (a *Attempt) runOnce(ctx context.Context, n int) outcome {
	inv := a.invocation(a.rec.callID, a.earlier+n)
	start := reeve.Monotonic()
	text, err := a.invoke(ctx, inv)
	changed, undo, spent := inv.Close()
	spent.Calls, spent.Millis = 1, max(1, reeve.Since(start).Milliseconds())
	var o outcome
	if e := judgeError(err); e != succeeded {
		o = a.failure(e, err)
		if tx, none := store.TxFrom(ctx); none == nil && reeve.CodeOf(err) == reeve.Timeout && tx.TimedOut() {
			err = store.Fault{Kind: store.FaultDown, Err: errors.New(err.Error())}
		}
		if store.IsTransient(err) {
			o.store = store.UserError(err)
		}
	} else {
		o = outcome{out: a.output(text), changed: a.recordable(changed), undo: undo}
	}
	// others that are awaited spend for themselves
	if o.ending == succeeded || o.ending == ambiguous || o.ending == awaiting && a.tool().Async {
		spent = a.declaredCost(spent)
	}
	if a.began = nil; o.ending == succeeded || o.ending == awaiting {
		a.began = inv
	}
	if o.ending == awaiting && !a.tool().Async && !a.tool().Awaits {
		o.ending, o.err.Code = ambiguous, reeve.UnknownOutcome // an outcome may come, but nothing here waits for it
	}
	o.spent, o.attempts = spent, a.earlier+n
	return o
}

// recordable returns the changes that a tool reports, without those that cannot be recorded. What was done outside is
// done whatever the tool reports, so a bad report is only logged. The transaction of a local tool is rolled back
// instead.
func (a *Attempt) recordable(changed []reeve.Token) []reeve.Token {
	if a.tool().Effect == reeve.Local {
		return changed
	}
	return slices.DeleteFunc(changed, func(k reeve.Token) bool {
		err := k.Check()
		if err != nil {
			a.g.Log.Warn("a tool reports a change that cannot be recorded; no watcher is woken by it", "tool", a.tool().
				ID,
				"operation", a.operation, "error", a.redactForLog(err.Error()))
		}
		return err != nil
	})
}

// declaredCost returns what an attempt cost. A tool that does not report a cost costs what it declares.
func (d *Decision) declaredCost(spent reeve.Amount) reeve.Amount {
	if spent.Tokens == 0 && spent.Micros == 0 {
		spent.Tokens, spent.Micros = d.tool().Cost.Tokens, d.tool().Cost.Micros
	}
	return spent
}

// took returns how long the attempts so far have taken.
func (a *Attempt) took() time.Duration { return time.Duration(a.spent.Millis) * time.Millisecond }

// pause waits between two attempts. False means that there must not be another: the caller is gone, or the call may not
// change anything any more.
func (a *Attempt) pause(ctx context.Context, d time.Duration) bool {
	if limit := time.Duration(a.tool().Retry.MaxMS) * time.Millisecond; limit > 0 {
		d = min(d, limit)
	}
	if !notify.Sleep(ctx, min(d, time.Minute)) {
		return false
	}
	return !a.tool().Effect.Mutates() || a.mayStillChange(ctx)
}

// mayStillChange reports whether a call that was let through may still change something: no kill switch is on for the
// caller or its principals, and the run of a brain is not over.
func (a *Attempt) mayStillChange(ctx context.Context) bool {
	all := []string{a.call.Agent}
	for _, p := range a.chain {
		all = append(all, p.AgentID)
	}
	for _, who := range all {
		now, err := a.g.views.agent(ctx, a.g, a.call.Workspace, who)
		if err == nil {
			now, err = a.g.views.current(ctx, a.g, now, who)
		}
		if err != nil || now.stopped() != nil {
			return false
		}
	}
	if a.call.Run == "" || !a.call.Via.FromBrain() {
		return true
	}
	var over error
	err := a.g.DB.View(ctx, func(s *store.Snap) (err error) {
		over, err = runEnded(ctx, s, a.call.Workspace, a.call.Run)
		return err
	})
	return err == nil && over == nil
}

// combine returns what all attempts together prove, given the last one. If an earlier attempt may have had its effect,
// a refusal of the last one says nothing of the earlier.
func (a *Attempt) combine(o outcome) outcome {
	if a.doubt && a.tool().Effect.IsExternal() && (o.ending == refused || o.ending == unsent) {
		last := o.err.Message
		o.ending, o.err = ambiguous, o.err.Hintf("")
		o.err.Code, o.err.Message = reeve.UnknownOutcome,
			"an earlier attempt may have had its effect; the last one did not: "+last
	}
	return o
}
