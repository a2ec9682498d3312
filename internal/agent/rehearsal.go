package agent

import (
	"context"
	"encoding/json"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Caller is the gate.
type Caller interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
}

// Rehearsal is a brain that follows a plan: the calls an agent's config lists under "rehearsal". It proves everything
// around a brain without a model.
type Rehearsal struct {
	DB   *store.DB
	Gate Caller
}

// Run follows the plan from where it was left.
func (r *Rehearsal) Run(ctx context.Context, run reeve.Run) reeve.RunEnd {
	plan, at, err := r.loadPlan(ctx, run)
	if err != nil {
		return failedEnd(err)
	}
	if at.end.State != "" {
		return at.end
	}
	for i := at.step; i < len(plan.Steps); i++ {
		s := plan.Steps[i]
		if !notify.Sleep(ctx, time.Duration(s.DelayMS)*time.Millisecond) {
			if why := reeve.CancelCause(ctx); why != nil {
				return reeve.RunEnd{State: reeve.RunCancelled, Err: why}
			}
			return failedEnd(reeve.Errorf(reeve.Canceled, "the server is stopping"))
		}
		if s.Fail != "" {
			return failedEnd(reeve.Errorf(reeve.ToolFailed, "%s", s.Fail))
		}
		// A call that has been decided on is made, also when the server is told to stop meanwhile: a call that is
		// refused for that would count as made.
		res, err := r.Gate.Call(context.WithoutCancel(ctx), reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID,
			Tool: s.Tool, Args: s.Args, Run: run.ID, User: run.UserID,
			Via: reeve.ViaRun, Operation: reeve.PlanKey(run.Key, i, s.Tool), Reason: string(run.Reason)})
		if end, stop := r.endAfterCall(s, res, err); stop {
			if res.Deferred {
				end.Results = at.results + 1
			}
			return end
		}
		if err != nil && r.hasEnded(ctx, run) {
			return reeve.RunEnd{State: reeve.RunCancelled, Err: reeve.AsError(err)}
		}
	}
	return reeve.RunEnd{State: reeve.RunCompleted, Output: plan.Output, Notify: plan.Notify}
}

// hasEnded tells whether somebody has ended the run, which a brain learns from a refusal.
func (r *Rehearsal) hasEnded(ctx context.Context, run reeve.Run) (over bool) {
	err := r.DB.View(ctx, func(s *store.Snap) error {
		state, err := s.Runs().RunState(ctx, run.WorkspaceID, run.ID)
		over = state != reeve.RunRunning
		return err
	})
	return err == nil && over
}

// endAfterCall tells whether a call ends the run. One that waits parks it.
func (r *Rehearsal) endAfterCall(s reeve.RehearsalStep, res reeve.Result, err error) (reeve.RunEnd, bool) {
	if err != nil && res.CallID == "" {
		return failedEnd(err), true // it could not even be recorded
	}
	if err != nil {
		return endAfterError(s, err)
	}
	switch res.State {
	case reeve.Parked, reeve.Prepared, reeve.Dispatched, reeve.Unknown:
		return reeve.RunEnd{State: reeve.RunParked, Output: res.Message}, true
	case reeve.Committed, reeve.Failed, reeve.DeniedOp, reeve.ProposedOp:
	}
	if res.IsError {
		return endAfterError(s, reeve.Errorf(res.Code, "%s: %s", s.Tool, res.Message))
	}
	return reeve.RunEnd{}, false
}

// endAfterError tells whether a step that was refused or failed ends the run: when it had to succeed, or when no other would
// be let through. Otherwise a model would see what happened, and go on.
func endAfterError(s reeve.RehearsalStep, err error) (reeve.RunEnd, bool) {
	switch code := reeve.CodeOf(err); {
	case code == reeve.Stopped:
		return reeve.RunEnd{State: reeve.RunCancelled, Err: reeve.AsError(err)}, true
	case s.Must || code == reeve.BudgetExceeded:
		return failedEnd(err), true
	}
	return reeve.RunEnd{}, false
}

func failedEnd(err error) reeve.RunEnd {
	return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
}

// planPosition is how far a run has come.
type planPosition struct {
	step    int
	end     reeve.RunEnd // what a step came to that the run did not survive
	results int          // how many results of calls that are answered later there are
}

// loadPlan gives the run's plan and its place in it. The plan is stored before anything is done, so that a run taken up
// after a crash follows the same one, whatever the agent's config says by then.
func (r *Rehearsal) loadPlan(ctx context.Context, run reeve.Run) (plan reeve.Rehearsal, at planPosition, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.Ledger().RunMessages(ctx, run.WorkspaceID, run.ID, "", 4*reeve.MaxSteps)
		if err != nil {
			return err
		}
		for _, m := range list {
			if m.Kind == reeve.Thought {
				if err := json.Unmarshal([]byte(m.Content), &plan); err != nil {
					return err
				}
				if at, err = findPosition(run, plan, list); err == nil {
					at.results, err = tx.Runs().CountDeferredResults(ctx, run.ID)
				}
				return err
			}
		}
		if plan, err = r.readPlan(ctx, tx, run); err != nil {
			return err
		}
		text, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		at = planPosition{}
		return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage),
			WorkspaceID: run.WorkspaceID, ThreadID: run.ThreadID, AgentID: run.AgentID, RunID: run.ID,
			Kind: reeve.Thought, Content: string(text), Metadata: json.RawMessage(`{"type":"plan"}`)})
	})
	return plan, at, err
}

// findPosition gives the place in a plan that a thread has come to: behind the last step that has its result. Steps are known
// by their operation ids, and those that leave none by their tool, in order; others may have written into the thread
// too, such as a person who took a call back.
func findPosition(run reeve.Run, plan reeve.Rehearsal, list []reeve.Message) (at planPosition, err error) {
	results := map[string]reeve.ResultInfo{}
	for _, m := range list {
		if m.Kind == reeve.ToolResult {
			var info reeve.ResultInfo
			if err := json.Unmarshal(m.Metadata, &info); err != nil {
				return at, err
			}
			results[m.ActionID] = info
		}
	}
	steps := map[string]int{}
	for i, s := range plan.Steps {
		steps[reeve.PlanKey(run.Key, i, s.Tool)] = i
	}
	for _, m := range list {
		result, done := results[m.ID]
		if m.Kind != reeve.Action || !done {
			continue
		}
		i, known := steps[m.OperationID]
		if !known && m.OperationID == "" && at.step < len(plan.Steps) {
			var info reeve.ActionInfo
			if err := json.Unmarshal(m.Metadata, &info); err != nil {
				return at, err
			}
			i, known = at.step, info.Via == reeve.ViaRun && info.Tool == plan.Steps[at.step].Tool
		}
		if !known || i < at.step {
			continue
		}
		at.step = i + 1
		if result.Status == "error" {
			at.end, _ = endAfterError(plan.Steps[i], reeve.Errorf(result.Code, "%s: %s", plan.Steps[i].Tool, result.Message))
		}
	}
	return at, nil
}

// readPlan takes the plan from the agent's config.
func (r *Rehearsal) readPlan(ctx context.Context, tx *store.Tx, run reeve.Run) (reeve.Rehearsal, error) {
	a, err := tx.Agents().GetAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil {
		return reeve.Rehearsal{}, err
	}
	c, err := reeve.ReadConfig(a.Config)
	return c.Plan(), err
}
