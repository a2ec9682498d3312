package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Caller is the gate.
type Caller interface {
	Call(ctx context.Context, c reeve.Call) (reeve.Result, error)
}

// Rehearsal is a brain that follows a plan: the calls an agent's config lists under "rehearsal". It proves everything around a
// brain without a model.
type Rehearsal struct {
	DB   *store.DB
	Gate Caller
}

// Plan is what a rehearsal does.
type Plan struct {
	Steps  []PlanStep `json:"steps" doc:"In order"`
	Output string     `json:"output,omitempty" doc:"What the run says at the end"`
	Notify bool       `json:"notify,omitempty" doc:"Under a conditional policy: whether the person is told"`
}

// PlanStep is one step of a plan: a wait, a failure, or a call.
type PlanStep struct {
	Tool    string          `json:"tool,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	DelayMS int64           `json:"delay_ms,omitempty" doc:"Wait first"`
	Fail    string          `json:"fail,omitempty" doc:"End the run as failed, with these words"`
	Must    bool            `json:"must,omitempty" doc:"End the run as failed when the call does not succeed"`
}

// Run follows the plan from where it was left.
func (r *Rehearsal) Run(ctx context.Context, run reeve.Run) reeve.RunEnd {
	plan, done, err := r.recall(ctx, run)
	if err != nil {
		return failed(err)
	}
	for i, s := range plan.Steps {
		if i < done {
			continue
		}
		if !pause(ctx, time.Duration(s.DelayMS)*time.Millisecond) {
			return failed(reeve.Errorf(reeve.Canceled, "the server is stopping"))
		}
		if s.Fail != "" {
			return failed(reeve.Errorf(reeve.ToolFailed, "%s", s.Fail))
		}
		res, err := r.Gate.Call(ctx, reeve.Call{Workspace: run.WorkspaceID, Agent: run.AgentID, Tool: s.Tool, Args: s.Args, Run: run.ID, User: run.UserID,
			Via: reeve.ViaRun, Operation: reeve.PlanKey(run.Key, i, s.Tool), Reason: string(run.Reason)})
		if end, stop := r.judge(s, res, err); stop {
			return end
		}
	}
	return reeve.RunEnd{State: reeve.RunCompleted, Output: plan.Output, Notify: plan.Notify}
}

// judge tells whether a call ends the run: one that waits parks it, one that must succeed and does not fails it.
func (r *Rehearsal) judge(s PlanStep, res reeve.Result, err error) (reeve.RunEnd, bool) {
	switch {
	case err != nil && (res.CallID == "" || s.Must):
		return failed(err), true
	case err != nil:
		return reeve.RunEnd{}, false // refused and recorded; a model would see it and go on
	}
	switch res.State {
	case reeve.Parked, reeve.Prepared, reeve.Dispatched, reeve.Unknown:
		if res.Code != reeve.Skipped {
			return reeve.RunEnd{State: reeve.RunParked, Output: res.Message}, true
		}
	case reeve.Committed, reeve.Failed, reeve.DeniedOp:
	}
	if res.IsError && s.Must {
		return failed(reeve.Errorf(res.Code, "%s: %s", s.Tool, res.Message)), true
	}
	return reeve.RunEnd{}, false
}

func failed(err error) reeve.RunEnd {
	return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
}

func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// maxSteps bounds a plan, and so how much of a thread is read to find the place.
const maxSteps = 1000

// recall gives the run's plan and how many of its calls have their result. The plan is stored before anything is done, so that a
// run taken up after a crash follows the same one, whatever the agent's config says by then.
func (r *Rehearsal) recall(ctx context.Context, run reeve.Run) (plan Plan, done int, err error) {
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.ListMessages(ctx, run.WorkspaceID, run.ThreadID, "", 3*maxSteps)
		if err != nil {
			return err
		}
		stored := false
		for _, m := range list {
			switch {
			case m.Kind == reeve.Thought && !stored:
				stored = true
				if err := json.Unmarshal([]byte(m.Content), &plan); err != nil {
					return err
				}
			case m.Kind == reeve.ToolResult:
				done++
			}
		}
		if stored {
			return nil
		}
		if plan, err = r.read(ctx, tx, run); err != nil {
			return err
		}
		text, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		return tx.AppendThought(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: run.WorkspaceID, ThreadID: run.ThreadID, AgentID: run.AgentID,
			Kind: reeve.Thought, Content: string(text), Metadata: json.RawMessage(`{"type":"plan"}`)})
	})
	return plan, skipWaits(plan, done), err
}

// skipWaits turns a number of finished calls into a place in the plan.
func skipWaits(plan Plan, calls int) int {
	i := 0
	for ; i < len(plan.Steps) && calls > 0; i++ {
		if plan.Steps[i].Fail == "" {
			calls--
		}
	}
	return i
}

// read takes the plan from the agent's config.
func (r *Rehearsal) read(ctx context.Context, tx *store.Tx, run reeve.Run) (Plan, error) {
	a, err := tx.GetAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil {
		return Plan{}, err
	}
	var config struct {
		Rehearsal Plan `json:"rehearsal"`
	}
	if err := json.Unmarshal(a.Config, &config); err != nil {
		return Plan{}, reeve.Errorf(reeve.Validation, "the agent's rehearsal is not a plan: %v", err)
	}
	if n := len(config.Rehearsal.Steps); n > maxSteps {
		return Plan{}, reeve.Errorf(reeve.Validation, "the agent's rehearsal has %d steps; %d are allowed", n, maxSteps)
	}
	for i, s := range config.Rehearsal.Steps {
		if s.Tool == "" && s.Fail == "" {
			return Plan{}, reeve.Errorf(reeve.Validation, "step %d of the agent's rehearsal is neither a call nor a failure", i)
		}
	}
	if config.Rehearsal.Output == "" {
		config.Rehearsal.Output = fmt.Sprintf("Rehearsed %d steps.", len(config.Rehearsal.Steps))
	}
	return config.Rehearsal, nil
}
