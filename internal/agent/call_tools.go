package agent

import (
	"context"
	"fmt"
	"slices"

	"reeve"
)

// callTools makes calls of an answer through the gate, in order; reads that follow each other together. An end means that the
// run waits: for a person, or for an outcome that is being found out.
func (v *turn) callTools(ctx context.Context, open []*answerCall) *reeve.RunEnd {
	ctx, cancel := reeve.DetachFromShutdown(ctx)
	defer cancel()
	if err := v.loadTools(ctx); err != nil {
		return v.failStep(err)
	}
	for len(open) > 0 {
		if why := reeve.CancelCause(ctx); why != nil {
			return v.failStep(why)
		}
		if n := v.countLeading(open, func(t reeve.Tool) bool { return t.Awaits }); n > 1 {
			if end := v.callAwaited(ctx, open[:n]); end != nil {
				return end
			}
			open = open[n:]
			continue
		}
		n := max(1, v.countLeading(open, func(t reeve.Tool) bool { return t.Effect == reeve.Read && !t.Async }))
		requests := make([]reeve.Call, n)
		for i, c := range open[:n] {
			requests[i] = v.newCall(c)
		}
		answers := v.Gate.CallAll(ctx, requests)
		for i, a := range answers {
			if end := v.handleResult(ctx, open[i], a); end != nil {
				return end
			}
		}
		open = open[n:]
	}
	return nil
}

// callAwaited makes calls that follow each other and whose callers wait for what they begin: all of that goes on at once. The
// run waits for the last of them.
func (v *turn) callAwaited(ctx context.Context, calls []*answerCall) (waits *reeve.RunEnd) {
	for _, c := range calls {
		res, err := v.Gate.Call(ctx, v.newCall(c))
		end := v.handleResult(ctx, c, reeve.BatchResult{Result: res, Err: err, Made: true})
		if end != nil && waits == nil {
			waits = end
		}
		// nothing more is made before a person has spoken
		if end != nil && (end.State != reeve.RunParked || res.State != reeve.Dispatched) {
			return end
		}
	}
	return waits
}

// countLeading counts the calls at the front that are of such tools.
func (v *turn) countLeading(calls []*answerCall, such func(reeve.Tool) bool) int {
	for n, c := range calls {
		if !slices.ContainsFunc(v.tools, func(t reeve.Tool) bool { return t.ID == c.Name && such(t) }) {
			return n
		}
	}
	return len(calls)
}

// loadTools reads which tools the agent has, once.
func (v *turn) loadTools(ctx context.Context) (err error) {
	if v.tools == nil {
		v.tools, err = v.Gate.CallableTools(ctx, v.caller())
	}
	return err
}

// newCall is a call as the gate takes it.
func (v *turn) newCall(c *answerCall) reeve.Call {
	r := v.caller()
	r.Tool, r.Args, r.Ref = c.Name, c.Args, c.ID
	r.Operation = reeve.PlanKey(v.run.Key, c.ordinal, c.Name)
	r.Reason = v.log.lastAnswer().answer.Text()
	return r
}

// handleResult looks at what a call came to.
func (v *turn) handleResult(ctx context.Context, c *answerCall, a reeve.BatchResult) *reeve.RunEnd {
	switch {
	case !a.Made:
		return nil // one before it waits
	case a.Err != nil && a.Result.CallID == "":
		return v.failStep(a.Err) // it could not even be recorded
	case a.Err != nil:
		if reeve.CodeOf(a.Err) == reeve.Stopped || reeve.CancelCause(ctx) != nil { // told with the turn's end
			return v.failStep(a.Err)
		}
		return v.failStepIf(v.sendResult(ctx, c, a.Result))
	case a.Result.Deferred:
		v.deferred[a.Result.CallID] = true
		return nil
	}
	switch a.Result.State {
	case reeve.Parked, reeve.Unknown, reeve.Prepared, reeve.Dispatched:
		if err := v.sendWaiting(ctx, c, a.Result); err != nil {
			return v.failStep(err)
		}
		return &reeve.RunEnd{State: reeve.RunParked, Output: fmt.Sprintf("%s waits: %s", c.Name, a.Result.Message)}
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
	}
	return v.failStepIf(v.sendResult(ctx, c, a.Result))
}

func (v *turn) failStepIf(err error) *reeve.RunEnd {
	if err != nil {
		return v.failStep(err)
	}
	return nil
}
