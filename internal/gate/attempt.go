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

// Attempt executes a call that passed the gate. It runs the tool's handler, again if the tool's retry policy allows it.
type Attempt struct {
	*Decision
	rec                  *Recorder
	earlierAttempts      int               // number of attempts before this Attempt, by this or another process
	spent                reeve.Amount      // the cost of the attempts so far
	mayHaveTakenEffect   bool              // an attempt with an ambiguous outcome may have taken effect
	successfulInvocation *reeve.Invocation // invocation that succeeded or whose outcome is awaited
}

func newAttempt(rec *Recorder) *Attempt { return &Attempt{Decision: rec.Decision, rec: rec} }

// outcome is the result of the attempts at a call, or of a refusal.
type outcome struct {
	status     attemptStatus
	err        *reeve.Error // nil if the call succeeded
	out        output
	changed    []reeve.Token
	undo       *reeve.Undo
	spent      reeve.Amount
	charged    reeve.Amount // the part of spent that the budgets were charged already; only calls that change nothing
	attempts   int
	isFinal    bool   // do not try the call again, even if tries are left
	proposalID string // the proposal that the call became
	storeErr   error  // a transient error of the store that made the handler fail
	warnings   []reeve.Warning
	untrusted  bool // the handler reported text from outside
}

// runWithRetries runs the handler as often as the tool's retry policy allows.
func (a *Attempt) runWithRetries(ctx context.Context, repeatable bool) outcome {
	return a.retry(ctx, repeatable, func(n int) outcome { return a.runTraced(ctx, n) })
}

// retry calls once until it succeeds or the retry policy ends the attempts. It tries again if nothing was sent. After
// an ambiguous outcome it tries again only if repeatable is set. It never tries again after a refusal by the tool.
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

// runTraced runs the handler once, inside a span that follows the GenAI conventions. The outcome includes the cost of
// earlier attempts.
func (a *Attempt) runTraced(ctx context.Context, n int) outcome {
	ctx, span := a.startSpan(ctx)
	o := a.runHandler(ctx, n)
	a.reportAttempt(span, n, o)
	o.spent = a.spent.Plus(o.spent)
	o.spent.Calls = 1
	return o
}

// runHandler runs the handler once and returns the outcome with the cost of this attempt.
func (a *Attempt) runHandler(ctx context.Context, n int) outcome {
	inv := a.invocation(a.rec.callID, a.earlierAttempts+n)
	start := reeve.Monotonic()
	text, err := a.invokeHandler(ctx, inv)
	changed, undo, spent := inv.Close()
	if undo != nil && !a.tool().Undoable {
		a.g.Log.Warn("tool records an undo but is not declared undoable", "tool", a.tool().ID)
	}
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
		if fields := a.entry.checkOutput(text); len(fields) > 0 {
			o = a.withInvalidOutput(o, fields)
		}
	}
	// the work that a synchronous tool starts and awaits is charged separately
	if o.status == succeeded || o.status == ambiguous || o.status == awaiting && a.tool().Async {
		spent = a.withDeclaredCost(spent)
	}
	if a.successfulInvocation = nil; o.status == succeeded || o.status == awaiting {
		a.successfulInvocation = inv
	}
	if o.status == awaiting && !a.tool().Async && !a.tool().AwaitsOutcome {
		// the tool cannot await outcomes, so nothing would record a later one
		o.status, o.err.Code = ambiguous, reeve.UnknownOutcome
	}
	o.spent, o.charged, o.attempts = spent, inv.Charged(), a.earlierAttempts+n
	o.untrusted = inv.IsUntrusted()
	return o
}

// dropInvalidChanges returns the changes that a tool reported, without those that cannot be recorded. An effect outside
// of the database has already happened, so an invalid report is only logged. For a local tool the changes are returned
// as they are, because the write that follows fails and rolls the tool's transaction back.
func (a *Attempt) dropInvalidChanges(changed []reeve.Token) []reeve.Token {
	if a.tool().Effect == reeve.Local {
		return changed
	}
	return slices.DeleteFunc(changed, func(k reeve.Token) bool {
		err := k.Check()
		if err != nil {
			a.g.Log.Warn("tool reported an invalid change; watchers are not notified", "tool", a.tool().ID,
				"operation", a.operation, "error", a.redactForLog(err.Error()))
		}
		return err != nil
	})
}

// withDeclaredCost returns the cost of an attempt. If the tool reported none, it is the cost that the tool declares.
func (d *Decision) withDeclaredCost(spent reeve.Amount) reeve.Amount {
	if spent.Tokens == 0 && spent.Micros == 0 {
		spent.Tokens, spent.Micros = d.tool().Cost.Tokens, d.tool().Cost.Micros
	}
	return spent
}

// elapsed returns how long the attempts so far have taken.
func (a *Attempt) elapsed() time.Duration { return time.Duration(a.spent.Millis) * time.Millisecond }

// waitBeforeRetry waits before another attempt. It returns false if there must be none, because the caller cancelled or
// the call may no longer change anything.
func (a *Attempt) waitBeforeRetry(ctx context.Context, d time.Duration) bool {
	if limit := time.Duration(a.tool().Retry.MaxMS) * time.Millisecond; limit > 0 {
		d = min(d, limit)
	}
	if !notify.Sleep(ctx, min(d, time.Minute)) {
		return false
	}
	return !a.tool().Effect.Mutates() || a.mayStillChange(ctx)
}

// mayStillChange reports whether a call may still change something after it passed the gate. It may not if the kill
// switch is on for the caller or a principal, or if the run of a model or script has ended.
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
	if a.call.Run == "" || !a.call.Via.IsFromBrain() {
		return true
	}
	var over error
	err := a.g.DB.View(ctx, func(s *store.Snap) (err error) {
		over, err = whyRunEnded(ctx, s, a.call.Workspace, a.call.Run)
		return err
	})
	return err == nil && over == nil
}

// combineAttempts returns the outcome of all attempts, given the outcome of the last one. If an earlier attempt may
// have taken effect, a refusal of the last attempt does not prove that nothing happened.
func (a *Attempt) combineAttempts(o outcome) outcome {
	if a.mayHaveTakenEffect && a.tool().Effect.IsExternal() && (o.status == refused || o.status == unsent) {
		last := o.err.Message
		o.status, o.err = ambiguous, o.err.Hintf("")
		o.err.Code, o.err.Message = reeve.UnknownOutcome,
			"an earlier attempt may have taken effect; the last one did not: "+last
	}
	return o
}
