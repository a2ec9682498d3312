package agent

import (
	"context"
	"encoding/json"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// Caller is the part of the gate that Rehearsal uses.
type Caller interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
}

// Rehearsal is a brain that makes the calls listed in an agent's config under "rehearsal". It tests everything around a
// brain without a model.
type Rehearsal struct {
	DB   *store.DB
	Gate Caller
}

// Run continues the plan at its current position.
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
		// A stopping server does not cancel the call, because a cancelled call would count as made.
		res, err := r.Gate.Call(context.WithoutCancel(ctx), reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID,
			Tool: s.Tool, Args: s.Args, Run: run.ID, User: run.UserID,
			Via: reeve.ViaRun, Operation: reeve.PlanKey(run.Key, i, s.Tool), Reason: string(run.Reason)})
		if end, stop := r.endAfterCall(s, res, err); stop {
			if res.Deferred {
				end.ResultsToResume = at.results + 1
			}
			return end
		}
		if err != nil && r.hasEnded(ctx, run) {
			return reeve.RunEnd{State: reeve.RunCancelled, Err: reeve.AsError(err)}
		}
	}
	return reeve.RunEnd{State: reeve.RunCompleted, Output: plan.Output, Notify: plan.Notify}
}

// hasEnded reports whether the run is no longer running in the store.
func (r *Rehearsal) hasEnded(ctx context.Context, run reeve.Run) (over bool) {
	err := r.DB.View(ctx, func(s *store.Snap) error {
		state, err := s.Runs().RunState(ctx, run.WorkspaceID, run.ID)
		over = state != reeve.RunRunning
		return err
	})
	return err == nil && over
}

// endAfterCall reports whether a call ends the run. A call that waits parks it.
func (r *Rehearsal) endAfterCall(s reeve.RehearsalStep, res reeve.Result, err error) (reeve.RunEnd, bool) {
	if err != nil && res.CallID == "" {
		return failedEnd(err), true // the call was not recorded
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

// endAfterError reports whether a failed step ends the run: if the step must succeed, or if no later call would be
// allowed.
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

// planPosition is the position of a run in its plan.
type planPosition struct {
	step    int
	end     reeve.RunEnd // set if a failed step ended the run
	results int          // number of results of deferred calls
}

// loadPlan returns the run's plan and position. The plan is stored before the first call, so a resumed run follows the
// same plan even if the agent's config has changed.
func (r *Rehearsal) loadPlan(ctx context.Context, run reeve.Run) (plan reeve.Rehearsal, at planPosition, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.Ledger().RunMessages(ctx, run.WorkspaceID, run.ID, "", 4*reeve.MaxRehearsalSteps)
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

// findPosition returns the position after the last step that has a result. Steps are identified by their operation ids,
// and reads by their tool, in order. Messages of others, such as a person who cancelled a call, are ignored.
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
			at.end, _ = endAfterError(plan.Steps[i], reeve.Errorf(result.Code, "%s: %s", plan.Steps[i].Tool,
				result.Message))
		}
	}
	return at, nil
}

// readPlan reads the plan from the agent's config.
func (r *Rehearsal) readPlan(ctx context.Context, tx *store.Tx, run reeve.Run) (reeve.Rehearsal, error) {
	a, err := tx.Agents().GetAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil {
		return reeve.Rehearsal{}, err
	}
	c, err := reeve.ParseAgentConfig(a.Config)
	return c.RehearsalPlan(), err
}
