package automation

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// pendingStep is a run that a turn in this process waits for.
type pendingStep struct {
	input json.RawMessage
	value json.RawMessage
}

// RunAsStep runs an automation as a step of another run and returns the value of its script. The step runs at once,
// beside other runs of the automation. It draws on the budgets of the other run and ends with it, but acts with the
// automation's own rights. A step with a key runs once: a repetition waits for that run and returns its result. The
// server serves the run and ends it when ctx ends.
func (r *Runner) RunAsStep(ctx context.Context, s reeve.AutomationStep,
	server reeve.RunServer) (json.RawMessage, error) {
	run, fresh, err := r.beginStep(ctx, s)
	if err != nil {
		return nil, err
	}
	v := &pendingStep{input: s.Input}
	if fresh {
		r.mu.Lock()
		r.steps[run.ID] = v
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.steps, run.ID)
		}()
		stop := context.AfterFunc(ctx, func() { r.cancelStep(ctx, run, server) })
		server.ServeStarted(context.WithoutCancel(ctx), run)
		stop()
	}
	if run, err = r.waitForStep(ctx, run, server); err != nil {
		return nil, err
	}
	if run.State != reeve.RunCompleted {
		return nil, reeve.Errorf(cmp.Or(run.Code, reeve.ToolFailed),
			"automation %s failed: run %s is %s: %s", s.Automation, run.ID, run.State, run.Message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.value == nil {
		v.value = toJSON(run.Output) // another process resumed the run
	}
	return v.value, nil
}

// cancelStep ends a step's run because of a timeout or because its caller is gone.
func (r *Runner) cancelStep(ctx context.Context, run reeve.Run, server reeve.RunServer) {
	why := reeve.Errorf(reeve.Timeout, "the step timed out")
	if context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // the context's own
		why = reeve.Errorf(reeve.Canceled, "the caller of this step is gone")
	}
	if _, err := server.End(context.WithoutCancel(ctx), run.WorkspaceID, run.ID, why); err != nil &&
		reeve.CodeOf(err) != reeve.Conflict {
		r.Log.Warn("end of step's run failed", "run", run.ID, "error", err)
	}
}

// stepPollInterval is how often waitForStep reads the state of a run that is parked or served by another process.
const stepPollInterval = 25 * time.Millisecond

// waitForStep waits until a step's run has ended. If ctx ends first, it ends the run.
func (r *Runner) waitForStep(ctx context.Context, run reeve.Run, server reeve.RunServer) (reeve.Run, error) {
	keep := context.WithoutCancel(ctx)
	for {
		err := r.DB.View(keep, func(s *store.Snap) (err error) {
			run, err = s.Runs().GetRun(keep, run.WorkspaceID, run.ID)
			return err
		})
		if err != nil || run.State.IsFinal() {
			return run, err
		}
		if !notify.Sleep(ctx, stepPollInterval) {
			r.cancelStep(ctx, run, server)
			return run, context.Cause(ctx)
		}
	}
}

// beginStep writes the run of a step, ours to serve; false means that it was begun before.
func (r *Runner) beginStep(ctx context.Context, s reeve.AutomationStep) (run reeve.Run, fresh bool, err error) {
	of := s.Run
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := r.getStepAutomation(ctx, tx, of.WorkspaceID, s.Automation)
		if err != nil {
			return err
		}
		run = reeve.Run{ID: tx.NewID(reeve.PrefixRun), WorkspaceID: of.WorkspaceID, AgentID: m.AgentID,
			Reason: reeve.ReasonManual, ReasonID: of.ID, UserID: of.UserID, ParentID: of.ID,
			State: reeve.RunRunning, Wakes: 1, Attempts: 1, StartedAt: tx.Now(), Owner: r.Process,
			Ancestors: of.AncestorChain(nil)}
		run.Ancestors[len(run.Ancestors)-1].OwnRights = true
		run.ThreadID = reeve.RunThread(run.AgentID, run.ID)
		key := run.ID
		if s.Key != "" {
			key, run.Input = s.Key, string(s.Input) // a process that resumes the run needs the input
		}
		run.Key = reeve.DeriveID("wake", "step", of.ID, m.AgentID, key)
		run.SessionID = store.StepSession + run.Key
		note := reeve.ScriptRun{RunKey: run.Key, RunID: run.ID, WorkspaceID: run.WorkspaceID, AgentID: run.AgentID,
			Type: reeve.ProductionRun}
		if fresh, err = tx.Automations().InsertScriptRun(ctx, note); err != nil {
			return err
		}
		if !fresh {
			if note, _, err = tx.Automations().FindScriptRun(ctx, run.Key); err == nil {
				run, err = tx.Runs().GetRun(ctx, run.WorkspaceID, note.RunID)
			}
			return err
		}
		_, err = tx.Runs().InsertRun(ctx, run)
		return err
	})
	return run, fresh, err
}

// getStepAutomation returns an automation that can run as a step. It returns a validation error, which is not retried,
// if the automation named in the agent's config cannot run.
func (r *Runner) getStepAutomation(ctx context.Context, tx *store.Tx,
	workspace, name string) (m reeve.Automation, err error) {
	a, err := tx.Agents().GetAgent(ctx, workspace, name)
	if err == nil {
		m, err = tx.Automations().GetAutomation(ctx, workspace, a.ID)
	}
	switch {
	case reeve.CodeOf(err) == reeve.NotFound:
		return m, reeve.Errorf(reeve.Validation, "automation %q not found", name).
			Hintf("name an existing automation in the agent's config, or remove the name")
	case err != nil:
		return m, err
	case a.Lifecycle != reeve.AgentActive || m.PausedAt != nil || m.ScriptID == "" || a.StoppedAt != nil:
		return m, reeve.Errorf(reeve.Validation,
			"automation %s cannot run: it is paused, stopped, not active, or has no active version", name)
	}
	return m, nil
}

// scriptInput returns the input of a run's script.
func (r *Runner) scriptInput(run reeve.Run) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s := r.steps[run.ID]; {
	case s != nil:
		return s.input
	case run.Input != "":
		return toJSON(run.Input)
	}
	return json.RawMessage(`null`)
}

// recordStepValue stores the value of a step's script for the turn that waits for it.
func (r *Runner) recordStepValue(run reeve.Run, value json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.steps[run.ID]; s != nil {
		s.value = value
	}
}

// isAbandonedStep reports whether a run is a step whose process is gone. The process that resumed the outer run has
// begun another step.
func (r *Runner) isAbandonedStep(run reeve.Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return store.IsStep(run) && run.Input == "" && r.steps[run.ID] == nil
}
