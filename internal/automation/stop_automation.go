package automation

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// stopper stops automations that failed and notifies their owners.
type stopper struct {
	webhook bool // notifications are also sent to the webhook
}

// stop stops an automation, so that only a person can run it, and notifies its owner the first time.
func (f stopper) stop(ctx context.Context, tx *store.Tx, m reeve.Automation, run reeve.Run, is reeve.FailureState,
	why, do string) (reeve.FailureState, error) {
	now := tx.Now()
	first := is.StoppedAt == nil
	is.StoppedAt, is.RetryAt, is.RetryKey, is.ScriptJobID = &now, nil, "", ""
	if err := tx.Runs().SkipRetries(ctx, m.WorkspaceID, m.AgentID, "the automation is stopped"); err != nil || !first {
		return is, err
	}
	return is, f.notifyOwner(ctx, tx, m, run, m.Name+" is stopped: "+why,
		fmt.Sprintf("%s\n\n%s: reeve automations resume %s (run %s)", is.Message, do, m.Name, is.RunID))
}

// stopUnrepaired stops an automation whose repair failed.
func (f stopper) stopUnrepaired(ctx context.Context, tx *store.Tx, m reeve.Automation, run reeve.Run,
	k reeve.ScriptJob,
	why, said string) error {
	t, ok, err := tx.Runs().FindFailure(ctx, m.AgentID)
	if err != nil || !ok || t.ScriptJobID != k.ID {
		return err
	}
	failed := t.Message
	if said != "" {
		t.Message += "\n\nThe maintainer says: " + reeve.Truncate(said, 1000)
	}
	if t, err = f.stop(ctx, tx, m, run, t, why, "Change its request or its script, then resume it"); err != nil {
		return err
	}
	t.Message = failed
	return tx.Runs().PutFailure(ctx, t)
}

// notifyOwner notifies the automation's owner or, if it has none, the run's user. A run causes at most one
// notification.
func (f stopper) notifyOwner(ctx context.Context, tx *store.Tx, m reeve.Automation, run reeve.Run,
	title, body string) error {
	user := m.Owner
	if user == "" {
		user = run.UserID
	}
	if user == "" {
		return nil // nobody to notify; the automation shows the failure
	}
	_, err := tx.Queue().InsertNotificationAndEvents(ctx, reeve.Notification{ID: tx.NewID(reeve.PrefixNotification),
		WorkspaceID: m.WorkspaceID, UserID: user, RunID: run.ID, AgentID: m.AgentID, Title: title, Body: body},
		f.webhook)
	return err
}

// clearFailure deletes an automation's failure state and closes its open repairs.
func clearFailure(ctx context.Context, tx *store.Tx, agent, why string) error {
	open, err := tx.Automations().OpenScriptJobs(ctx, agent)
	if err != nil {
		return err
	}
	for _, k := range open {
		if k.Kind != reeve.RepairJob {
			continue
		}
		was := k.State
		k.State, k.Message = reeve.ScriptJobStale, why
		if _, err := tx.Automations().TransitionScriptJob(ctx, was, k); err != nil {
			return err
		}
		if err := tx.Queue().EndWakes(ctx, []string{k.RunKey}, reeve.WakeSkipped, "", why); err != nil {
			return err
		}
	}
	return tx.Runs().DeleteFailure(ctx, agent)
}

// enqueueRetry enqueues a run with the input of another. The key identifies the new run.
func enqueueRetry(ctx context.Context, tx *store.Tx, run reeve.Run, key string, at time.Time) error {
	fresh, err := tx.Queue().InsertWake(ctx, reeve.Wake{RunKey: key, WorkspaceID: run.WorkspaceID, AgentID: run.AgentID,
		Reason: reeve.ReasonRetry, ReasonID: rootRun(run), SessionID: store.ManualSession + key, UserID: run.UserID,
		Input: run.Input, Origins: run.Origins, ScheduledAt: run.ScheduledAt, DueAt: at, State: reeve.WakeQueued,
		OnBehalfOf: run.OnBehalfOf})
	if err != nil || !fresh {
		return err
	}
	_, err = tx.Automations().InsertScriptRun(ctx, reeve.ScriptRun{RunKey: key, WorkspaceID: run.WorkspaceID,
		AgentID: run.AgentID, Type: reeve.ProductionRun})
	return err
}

// rootRun returns the id of the run that a run retries, or the run's own id.
func rootRun(run reeve.Run) string {
	if run.Reason == reeve.ReasonRetry {
		return run.ReasonID
	}
	return run.ID
}
