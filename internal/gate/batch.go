package gate

import (
	"context"
	"sync"

	"reeve"
)

// CallBatch makes the calls of one model response. Adjacent reads run concurrently. All other calls run one at a time.
// The calls are recorded in their order. Within a run, CallBatch stops after a call that blocks the run.
func (g *Gate) CallBatch(ctx context.Context, calls []reeve.Call) []reeve.BatchResult {
	out := make([]reeve.BatchResult, len(calls))
	for i := 0; i < len(calls); {
		n := g.countLeadingReads(ctx, calls[i:])
		if n < 2 {
			out[i].Result, out[i].Err = g.Call(ctx, calls[i])
			out[i].Made = true
			if calls[i].Run != "" && blocksRun(out[i].Result) { // the run continues when the call has a result
				return out
			}
			i++
			continue
		}
		g.callReads(ctx, calls[i:i+n], out[i:i+n])
		for j := range n {
			out[i+j].Made = true
		}
		i += n
	}
	return out
}

// blocksRun reports whether the run of a call must wait, either for a person or for an outcome that is being
// determined.
func blocksRun(r reeve.Result) bool {
	switch r.State {
	case reeve.Parked, reeve.Unknown:
		return true
	case reeve.Prepared, reeve.Dispatched:
		return !r.Deferred
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
	}
	return false
}

// countLeadingReads counts the synchronous read-only calls at the start of the list.
func (g *Gate) countLeadingReads(ctx context.Context, calls []reeve.Call) int {
	for n, c := range calls {
		v, err := g.viewCache.getAgent(ctx, g, c.Workspace, c.Agent)
		if err != nil {
			return n
		}
		e, ok := v.workspace.tools[c.Tool]
		if !ok || e.tool.Tier != reeve.ReadOnly || e.tool.Effect != reeve.Read || e.tool.Async {
			return n
		}
	}
	return len(calls)
}

// callReads decides on reads one by one, runs those that pass concurrently and records them in order. It passes the
// others to Call.
func (g *Gate) callReads(ctx context.Context, calls []reeve.Call, out []reeve.BatchResult) {
	type run struct {
		*Attempt
		outcome outcome
		err     error
	}
	runs := make([]*run, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		req, err := g.newRequest(ctx, c)
		if err != nil {
			continue
		}
		if d := g.decide(ctx, req); ctx.Err() == nil && d.runsAsRead() {
			r := &run{Attempt: newAttempt(newRecorder(d))}
			runs[i] = r
			wg.Go(func() { r.outcome, r.err = r.runRead(ctx) })
		}
	}
	wg.Wait()
	for i, r := range runs {
		if r != nil && r.err == nil {
			if out[i].Result, out[i].Err = r.recordRead(ctx, r.outcome); !mustDecideAgain(out[i].Err) {
				continue
			}
		}
		out[i].Result, out[i].Err = g.Call(ctx, calls[i])
	}
}
