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

// step is a run that somebody here waits for.
type step struct {
	input json.RawMessage
	value json.RawMessage
}

// RunAsStep runs an automation as a step of another run, at once and beside whatever else it does, and gives what its
// script came to. The run draws on the other's budgets and ends with it, but acts by the automation's own rights. A
// step that has a key is run once under it: the same again waits for that run, and gives how it ended. The server
// serves the run, and ends it when nobody waits for it any more.
func (r *Runner) RunAsStep(ctx context.Context, s reeve.AutomationStep,
	server reeve.RunServer) (json.RawMessage, error) {
	run, fresh, err := r.beginStep(ctx, s)
	if err != nil {
		return nil, err
	}
	v := &step{input: s.Input}
	if fresh {
		r.mu.Lock()
		r.steps[run.ID] = v
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.steps, run.ID)
		}()
		stop := context.AfterFunc(ctx, func() { r.endStep(ctx, run, server) })
		server.ServeBegun(context.WithoutCancel(ctx), run)
		stop()
	}
	if run, err = r.awaitStep(ctx, run, server); err != nil {
		return nil, err
	}
	if run.State != reeve.RunCompleted {
		return nil, reeve.Errorf(cmp.Or(run.Code, reeve.ToolFailed),
			"the automation %s did not do it: its run %s is %s: %s", s.Automation, run.ID, run.State, run.Message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.value == nil {
		v.value = asJSON(run.Output) // another server took it up
	}
	return v.value, nil
}

// endStep ends a step's run that took too long, or that nobody wants any more.
func (r *Runner) endStep(ctx context.Context, run reeve.Run, server reeve.RunServer) {
	why := reeve.Errorf(reeve.Timeout, "it took too long")
	if context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // the context's own
		why = reeve.Errorf(reeve.Canceled, "nobody waits for it any more")
	}
	if _, err := server.End(context.WithoutCancel(ctx), run.WorkspaceID, run.ID, why); err != nil &&
		reeve.CodeOf(err) != reeve.Conflict {
		r.Log.Warn("a step's run could not be ended", "run", run.ID, "error", err)
	}
}

// lookEvery is how often it is looked whether a step's run has ended that waits, or that another server has.
const lookEvery = 25 * time.Millisecond

// awaitStep waits until a step's run has ended; when ctx ends first, it ends it.
func (r *Runner) awaitStep(ctx context.Context, run reeve.Run, server reeve.RunServer) (reeve.Run, error) {
	keep := context.WithoutCancel(ctx)
	for {
		err := r.DB.View(keep, func(s *store.Snap) (err error) {
			run, err = s.Runs().GetRun(keep, run.WorkspaceID, run.ID)
			return err
		})
		if err != nil || run.State.Final() {
			return run, err
		}
		if !notify.Sleep(ctx, lookEvery) {
			r.endStep(ctx, run, server)
			return run, context.Cause(ctx)
		}
	}
}

// beginStep writes the run of a step, ours to serve; false means that it was begun before.
func (r *Runner) beginStep(ctx context.Context, s reeve.AutomationStep) (run reeve.Run, fresh bool, err error) {
	of := s.Run
	err = r.DB.Update(ctx, func(tx *store.Tx) error {
		m, err := r.stepper(ctx, tx, of.WorkspaceID, s.Automation)
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
			key, run.Input = s.Key, string(s.Input) // whoever takes it up must know what it is about
		}
		run.Key = reeve.Key("wake", "step", of.ID, m.AgentID, key)
		run.SessionID = store.StepLane + run.Key
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

// stepper finds an automation that can be run as a step. What will not change by trying again is a mistake in the
// settings.
func (r *Runner) stepper(ctx context.Context, tx *store.Tx, workspace, name string) (m reeve.Automation, err error) {
	a, err := tx.Agents().GetAgent(ctx, workspace, name)
	if err == nil {
		m, err = tx.Automations().GetAutomation(ctx, workspace, a.ID)
	}
	switch {
	case reeve.CodeOf(err) == reeve.NotFound:
		return m, reeve.Errorf(reeve.Validation, "there is no automation %q", name).
			Hintf("name one that is there in the agent's config, or none")
	case err != nil:
		return m, err
	case a.Lifecycle != reeve.AgentActive || m.PausedAt != nil || m.ScriptID == "" || a.StoppedAt != nil:
		return m, reeve.Errorf(reeve.Validation,
			"the automation %s cannot run: it is paused, stopped, not active, or has no active version", name)
	}
	return m, nil
}

// given is what a run's script finds as its input.
func (r *Runner) given(run reeve.Run) json.RawMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch s := r.steps[run.ID]; {
	case s != nil:
		return s.input
	case run.Input != "":
		return asJSON(run.Input)
	}
	return json.RawMessage(`null`)
}

// came notes what the script of a step came to.
func (r *Runner) came(run reeve.Run, value json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.steps[run.ID]; s != nil {
		s.value = value
	}
}

// forsaken tells whether a run is a step that nobody waits for any more, because its server is gone: whoever took up
// the run that it was a step of has begun another.
func (r *Runner) forsaken(run reeve.Run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return store.IsStep(run) && run.Input == "" && r.steps[run.ID] == nil
}
