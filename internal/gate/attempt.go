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
	rec                  *Recorder
	earlierAttempts      int               // how often the call was sent before, by earlier runs of the server
	spent                reeve.Amount      // by the attempts so far
	mayHaveTakenEffect   bool              // one of them may have had its effect
	successfulInvocation *reeve.Invocation // the attempt that went well, or began something that is awaited
}

func newAttempt(rec *Recorder) *Attempt { return &Attempt{Decision: rec.Decision, rec: rec} }

// outcome is what an attempt, or a refusal, resulted in.
type outcome struct {
	status     attemptStatus
	err        *reeve.Error // nil when it succeeded
	out        output
	changed    []reeve.Token
	undo       *reeve.Undo
	spent      reeve.Amount
	attempts   int
	isFinal    bool   // the call is not tried again, however many tries are left
	proposalID string // the item of a change set that the call became
	storeErr   error  // what went wrong was a passing fault of the store
}

// runWithRetries runs the handler as often as its retry policy says.
func (a *Attempt) runWithRetries(ctx context.Context, repeatable bool) outcome {
	return a.retry(ctx, repeatable, func(n int) outcome { return a.runTraced(ctx, n) })
}

// retry makes attempts as the retry policy says: again after infrastructure errors, never after a refusal, and after
// an ambiguous outcome only where a second sending does no harm.
func (a *Attempt) retry(ctx context.Context, repeatable bool, once func(n int) outcome) outcome {
	delay := time.Duration(a.tool().Retry.DelayMS) * time.Millisecond
	for n := 1; ; n++ {
		o := once(n)
		a.spent = o.spent
		again := o.status == unsent || (o.status == ambiguous && repeatable)
		if !again || !a.rec.budget.hasTime(a.elapsed()) || n >= a.tool().Retry.Attempts ||
			!a.waitBeforeRetry(ctx, max(delay, o.err.RetryAfter)) {
			return a.combineAttempts(o)
		}
		a.mayHaveTakenEffect = a.mayHaveTakenEffect || o.status == ambiguous
		delay *= 2
	}
}

// runTraced runs the handler once, in a span. The outcome includes what the attempts before it spent.
func (a *Attempt) runTraced(ctx context.Context, n int) outcome {
	o := a.observe(ctx, n, func(ctx context.Context) outcome { return a.runHandler(ctx, n) })
	o.spent = a.spent.Plus(o.spent)
	o.spent.Calls = 1
	return o
}

func (a *Attempt) runHandler(ctx context.Context, n int) outcome {
	inv := a.invocation(a.rec.callID, a.earlierAttempts+n)
	start := reeve.Monotonic()
	text, err := a.invokeHandler(ctx, inv)
	changed, undo, spent := inv.Close()
	spent.Calls, spent.Millis = 1, max(1, reeve.Since(start).Milliseconds())
	var o outcome
	if e := classifyError(err); e != succeeded {
		o = a.newFailure(e, err)
		if tx, none := store.TxFrom(ctx); none == nil && reeve.CodeOf(err) == reeve.Timeout && tx.TimedOut() {
			err = store.Fault{Kind: store.FaultDown, Err: errors.New(err.Error())}
		}
		if store.IsTransient(err) {
			o.storeErr = store.UserError(err)
		}
	} else {
		o = outcome{out: a.output(text), changed: a.dropInvalidChanges(changed), undo: undo}
	}
	// others that are awaited spend for themselves
	if o.status == succeeded || o.status == ambiguous || o.status == awaiting && a.tool().Async {
		spent = a.withDeclaredCost(spent)
	}
	if a.successfulInvocation = nil; o.status == succeeded || o.status == awaiting {
		a.successfulInvocation = inv
	}
	if o.status == awaiting && !a.tool().Async && !a.tool().Awaits {
		o.status, o.err.Code = ambiguous, reeve.UnknownOutcome // an outcome may come, but nothing here waits for it
	}
	o.spent, o.attempts = spent, a.earlierAttempts+n
	return o
}

// dropInvalidChanges returns the changes that a tool reports, without those that cannot be recorded. What was done outside is
// done whatever the tool reports, so a bad report is only logged. The transaction of a local tool is rolled back
// instead.
func (a *Attempt) dropInvalidChanges(changed []reeve.Token) []reeve.Token {
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

// withDeclaredCost returns what an attempt cost. A tool that does not report a cost costs what it declares.
func (d *Decision) withDeclaredCost(spent reeve.Amount) reeve.Amount {
	if spent.Tokens == 0 && spent.Micros == 0 {
		spent.Tokens, spent.Micros = d.tool().Cost.Tokens, d.tool().Cost.Micros
	}
	return spent
}

// elapsed returns how long the attempts so far have taken.
func (a *Attempt) elapsed() time.Duration { return time.Duration(a.spent.Millis) * time.Millisecond }

// waitBeforeRetry waits between two attempts. False means that there must not be another: the caller is gone, or the call may not
// change anything any more.
func (a *Attempt) waitBeforeRetry(ctx context.Context, d time.Duration) bool {
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
		now, err := a.g.viewCache.getAgent(ctx, a.g, a.call.Workspace, who)
		if err == nil {
			now, err = a.g.viewCache.refreshAgent(ctx, a.g, now, who)
		}
		if err != nil || now.checkNotStopped() != nil {
			return false
		}
	}
	if a.call.Run == "" || !a.call.Via.FromBrain() {
		return true
	}
	var over error
	err := a.g.DB.View(ctx, func(s *store.Snap) (err error) {
		over, err = whyRunEnded(ctx, s, a.call.Workspace, a.call.Run)
		return err
	})
	return err == nil && over == nil
}

// combineAttempts returns what all attempts together prove, given the last one. If an earlier attempt may have had its effect,
// a refusal of the last one says nothing of the earlier.
func (a *Attempt) combineAttempts(o outcome) outcome {
	if a.mayHaveTakenEffect && a.tool().Effect.IsExternal() && (o.status == refused || o.status == unsent) {
		last := o.err.Message
		o.status, o.err = ambiguous, o.err.Hintf("")
		o.err.Code, o.err.Message = reeve.UnknownOutcome,
			"an earlier attempt may have had its effect; the last one did not: "+last
	}
	return o
}
