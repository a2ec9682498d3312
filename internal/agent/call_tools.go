package agent

import (
	"context"
	"fmt"
	"slices"

	"reeve"
)

// callTools makes the calls of an answer through the gate, in order. Consecutive reads run together. A non-nil result
// means that the run ends or waits.
func (v *modelRun) callTools(ctx context.Context, open []*answerCall) *reeve.RunEnd {
	ctx, cancel := reeve.DetachFromShutdown(ctx)
	defer cancel()
	if err := v.loadTools(ctx); err != nil {
		return v.failStep(err)
	}
	for len(open) > 0 {
		if why := reeve.CancelCause(ctx); why != nil {
			return v.failStep(why)
		}
		if n := v.countLeading(open, func(t reeve.Tool) bool { return t.AwaitsOutcome }); n > 1 {
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
		answers := v.Gate.CallBatch(ctx, requests)
		for i, a := range answers {
			if end := v.handleResult(ctx, open[i], a); end != nil {
				return end
			}
		}
		open = open[n:]
	}
	return nil
}

// callAwaited makes consecutive calls that begin runs and wait for them, so that those runs are concurrent. It returns
// how the run waits.
func (v *modelRun) callAwaited(ctx context.Context, calls []*answerCall) (waits *reeve.RunEnd) {
	for _, c := range calls {
		res, err := v.Gate.Call(ctx, v.newCall(c))
		end := v.handleResult(ctx, c, reeve.BatchResult{Result: res, Err: err, Made: true})
		if end != nil && waits == nil {
			waits = end
		}
		// wait for the person before making more calls
		if end != nil && (end.State != reeve.RunParked || res.State != reeve.Dispatched) {
			return end
		}
	}
	return waits
}

// countLeading counts how many calls at the beginning of a list have a tool for which such returns true.
func (v *modelRun) countLeading(calls []*answerCall, such func(reeve.Tool) bool) int {
	for n, c := range calls {
		if !slices.ContainsFunc(v.tools, func(t reeve.Tool) bool { return t.ID == c.Name && such(t) }) {
			return n
		}
	}
	return len(calls)
}

// loadTools reads the agent's tools once.
func (v *modelRun) loadTools(ctx context.Context) (err error) {
	if v.tools == nil {
		v.tools, err = v.Gate.CallableTools(ctx, v.caller())
	}
	return err
}

// newCall returns a call for the gate.
func (v *modelRun) newCall(c *answerCall) reeve.Call {
	r := v.caller()
	r.Tool, r.Args, r.Ref = c.Name, c.Args, c.ID
	r.Operation = reeve.PlanKey(v.run.Key, c.ordinal, c.Name)
	r.Reason = v.log.lastAnswer().answer.Text()
	return r
}

// handleResult reports the result of a call to clients. A non-nil end means that the run ends or waits.
func (v *modelRun) handleResult(ctx context.Context, c *answerCall, a reeve.BatchResult) *reeve.RunEnd {
	switch {
	case !a.Made:
		return nil // an earlier call waits
	case a.Err != nil && a.Result.CallID == "":
		return v.failStep(a.Err) // the call was not recorded
	case a.Err != nil:
		if reeve.CodeOf(a.Err) == reeve.Stopped || reeve.CancelCause(ctx) != nil { // reported with the end of the turn
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

func (v *modelRun) failStepIf(err error) *reeve.RunEnd {
	if err != nil {
		return v.failStep(err)
	}
	return nil
}
