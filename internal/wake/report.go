package wake

import (
	"context"
	"fmt"

	"reeve"
	"reeve/internal/store"
)

// report tells a schedule's person what its run came to, as the schedule's policy says, and counts failures. It belongs to the
// transaction that ends the run, and a run tells at most once; so what was to be told is told once, whatever crashes.
func (r *Room) report(ctx context.Context, tx *store.Tx, run reeve.Run, notify bool) error {
	if !run.State.Final() || (run.Reason != reeve.ReasonTimer && run.Reason != reeve.ReasonCatchup) {
		return nil
	}
	t, err := tx.GetTimer(ctx, run.WorkspaceID, "", run.ReasonID)
	if reeve.CodeOf(err) == reeve.NotFound {
		return nil // deleted while it ran
	}
	if err != nil {
		return err
	}
	n := reeve.Notification{ID: tx.NewID("ntf"), WorkspaceID: run.WorkspaceID, UserID: t.UserID, RunID: run.ID, TimerID: t.ID, AgentID: run.AgentID,
		Session: t.Origin, Title: t.Name, Body: run.Output}
	tell := t.Notify == reeve.NotifyAlways || t.Notify == reeve.NotifyConditional && notify
	switch run.State {
	case reeve.RunFailed:
		t.Failures++
		n.Title, n.Body = t.Name+" failed", run.Message
		tell = t.Notify == reeve.NotifyAlways
		if t.Failures == r.Limits.AlertAfter {
			n.Title, tell = fmt.Sprintf("%s failed %d times in a row", t.Name, t.Failures), true
		}
		if t.Failures >= r.Limits.DisableAfter && t.State == reeve.TimerActive {
			t.State, t.NextAt = reeve.TimerDisabled, nil
			n.Title, tell = fmt.Sprintf("%s is disabled after %d failures in a row", t.Name, t.Failures), true
		}
	case reeve.RunCompleted:
		t.Failures = 0
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled:
		tell = false
	}
	if err := tx.PutTimer(ctx, t); err != nil || !tell || t.UserID == "" {
		return err
	}
	return tx.InsertNotification(ctx, n, r.Webhook != "")
}
