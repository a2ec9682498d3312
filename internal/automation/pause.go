package automation

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// pausedOutput is the output of a run that a pause ended, or kept from starting.
const pausedOutput = "paused"

// Pause pauses an automation. A run in progress ends at its next call.
func (s *Service) Pause(ctx context.Context, workspace, id string) (reeve.Automation, error) {
	return s.update(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		if m.PausedAt == nil {
			now := tx.Now()
			m.PausedAt, m.PausedRun = &now, ""
		}
		return nil
	})
}

// Resume resumes an automation. Each run that the pause ended, or kept from starting, is continued by a new run with
// the same version, type and input. If the automation was stopped after a failure, the failed run is retried.
func (s *Service) Resume(ctx context.Context, workspace, id, user string) (reeve.Automation, error) {
	m, err := s.update(ctx, workspace, id, func(tx *store.Tx, m *reeve.Automation) error {
		stopped := m.Failure != nil && m.Failure.StoppedAt != nil
		held, err := listHeldRuns(ctx, tx, *m)
		if err != nil {
			return err
		}
		if len(held) > 0 || stopped {
			if err := checkCanRun(ctx, tx, *m); err != nil {
				return err
			}
		}
		for _, run := range held {
			if err := continueRun(ctx, tx, s.Waker, workspace, run, user); err != nil {
				return err
			}
		}
		if m.PausedAt != nil {
			if err := tx.Automations().ClearHeldRuns(ctx, *m); err != nil {
				return err
			}
		}
		m.PausedAt, m.PausedRun = nil, ""
		if !stopped {
			return nil
		}
		return s.retryFailedRun(ctx, tx, *m, user)
	})
	if err == nil {
		s.Waker.Wakeup()
	}
	return m, err
}

// listHeldRuns lists the runs that a pause ended, first the one that was in progress. Runs that are about to end are
// not listed: see continueIfResumed.
func listHeldRuns(ctx context.Context, tx *store.Tx, m reeve.Automation) ([]string, error) {
	if m.PausedAt == nil {
		return nil, nil
	}
	noted, err := tx.Runs().GetRun(ctx, m.WorkspaceID, m.PausedRun)
	if err != nil && reeve.CodeOf(err) != reeve.NotFound {
		return nil, err
	}
	ended := noted.State == reeve.RunPaused
	if err != nil || noted.State.IsFinal() && !ended {
		m.PausedRun = "" // deleted or cancelled
	}
	kept, err := tx.Automations().RunsHeldByPause(ctx, m)
	if ended {
		kept = append([]string{noted.ID}, kept...)
	}
	return kept, err
}

// continueIfResumed continues a run that ends as paused after its automation was resumed. Resume did not find this run
// among the ended ones.
func (s *Supervisor) continueIfResumed(ctx context.Context, tx *store.Tx, run reeve.Run) error {
	m, err := tx.Automations().LockAutomation(ctx, run.WorkspaceID, run.AgentID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil || m.PausedAt != nil {
		return err
	}
	a, found, err := tx.Agents().FindAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil || !found || a.Lifecycle == reeve.AgentDestroyed {
		return err // no agent could run it
	}
	if err := continueRun(ctx, tx, s.Waker, run.WorkspaceID, run.ID, run.UserID); err != nil {
		return err
	}
	return tx.Automations().ClearHeldRun(ctx, run.ID)
}

// checkCanRun fails if a run would be skipped, because a skipped run would be lost.
func checkCanRun(ctx context.Context, tx *store.Tx, m reeve.Automation) error {
	ws, err := tx.Agents().GetWorkspace(ctx, m.WorkspaceID)
	if err != nil {
		return err
	}
	a, err := tx.Agents().GetAgent(ctx, m.WorkspaceID, m.AgentID)
	switch {
	case err != nil:
		return err
	case ws.StoppedAt != nil:
		return reeve.Errorf(reeve.Stopped, "the automation cannot resume: the workspace is stopped").
			Hintf("turn off the kill switch first: reeve resume; nothing was changed")
	case a.StoppedAt != nil:
		return reeve.Errorf(reeve.Stopped, "the automation cannot resume: its agent is stopped").
			Hintf("turn off its kill switch first: reeve resume --agent %s; nothing was changed", a.Name)
	case a.Lifecycle != reeve.AgentActive:
		return reeve.Errorf(reeve.Conflict, "the automation cannot resume: its agent is %s", a.Lifecycle).
			Hintf("set the agent to active first; nothing was changed")
	}
	return nil
}

// continueRun enqueues a run that continues one that a pause ended.
func continueRun(ctx context.Context, tx *store.Tx, queue WakeQueue, workspace, id, user string) error {
	run, err := tx.Runs().GetRun(ctx, workspace, id)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	note, _, err := tx.Automations().FindScriptRunOf(ctx, workspace, id)
	if err != nil {
		return err
	}
	again := reeve.Wake{WorkspaceID: workspace, AgentID: run.AgentID, UserID: user, Input: run.Input,
		OnBehalfOf: run.OnBehalfOf}
	w, fresh, err := queue.WakeIn(ctx, tx, again, "resume:"+id)
	if err != nil || !fresh {
		return err
	}
	_, err = tx.Automations().
		InsertScriptRun(ctx, reeve.ScriptRun{RunKey: w.RunKey, WorkspaceID: w.WorkspaceID, AgentID: w.AgentID,
			ScriptID: note.ScriptID, Type: note.Type, PlanOf: note.PlanOf})
	return err
}

// retryFailedRun clears the failure of an automation and enqueues a retry of the failed run.
func (s *Service) retryFailedRun(ctx context.Context, tx *store.Tx, m reeve.Automation, user string) error {
	if err := clearFailure(ctx, tx, m.AgentID, "a person resumed the automation"); err != nil || m.ScriptID == "" {
		return err
	}
	run, err := tx.Runs().GetRun(ctx, m.WorkspaceID, m.Failure.RunID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if run.UserID == "" {
		run.UserID = user
	}
	return enqueueRetry(ctx, tx, run, reeve.DeriveID("wake", string(reeve.ReasonRetry), "resumed", run.ID), tx.Now())
}
