package wake

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// reportTimerRun notifies the user of a timer about a run that has ended, following the timer's notification policy. It
// counts failures and disables the timer after too many. It reports whether it queued a notification.
//
// It is part of the transaction that ends the run, so a notification is queued exactly once. The timer row is locked,
// so concurrent changes of the timer are not overwritten. A nil timer was deleted during the run.
func (r *Scheduler) reportTimerRun(ctx context.Context, tx *store.Tx, t *reeve.Timer, run reeve.Run,
	notify bool) (isNotified bool, err error) {
	if t == nil {
		return false, nil
	}
	before := *t
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: run.WorkspaceID, UserID: t.UserID,
		RunID: run.ID, TimerID: t.ID, AgentID: run.AgentID,
		Session: t.Origin, Title: t.Name, Body: run.Output}
	isWanted := t.Notify == reeve.NotifyAlways || t.Notify == reeve.NotifyConditional && notify
	switch run.State {
	case reeve.RunFailed:
		// Package automation handles the failures of automations.
		if isAutomation, err := tx.Automations().IsAutomation(ctx, run.AgentID); err != nil || isAutomation {
			return false, err
		}
		t.Failures++
		n.Title, n.Body = t.Name+" failed", run.Message
		isWanted = t.Notify == reeve.NotifyAlways || run.Code == reeve.Crashed
		if t.Failures == r.Planner.limits.AlertAfter {
			n.Title, isWanted = fmt.Sprintf("%s failed %d times in a row", t.Name, t.Failures), true
		}
		if t.Failures >= r.Planner.limits.DisableAfter && t.State == reeve.TimerActive {
			t.State, t.NextAt = reeve.TimerDisabled, nil
			n.Title, isWanted = fmt.Sprintf("%s is disabled after %d failures in a row", t.Name, t.Failures), true
		}
	case reeve.RunCompleted:
		t.Failures = 0
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled, reeve.RunPaused:
		isWanted = false
	}
	if t.State != before.State {
		if err := tx.Queue().SkipFirings(ctx, t.ID, "the schedule is disabled"); err != nil {
			return false, err
		}
		if err := tx.Queue().RecordChange(ctx, store.Change{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID,
			Operation: reeve.DeriveID("chg", t.ID, run.ID), Tokens: t.Tokens(),
			Window: store.ChangeWindow}); err != nil {
			return false, err
		}
	}
	if t.Failures != before.Failures || t.State != before.State {
		if err := tx.Queue().CountFailures(ctx, *t); err != nil {
			return false, err
		}
	}
	if !isWanted || t.UserID == "" {
		return false, nil
	}
	if isNotified, err = tx.Queue().InsertNotificationAndEvents(ctx, n, r.Webhook != ""); err != nil || !isNotified {
		return false, err
	}
	return true, r.appendToThread(ctx, tx, n)
}

// reportDisabledTimer skips the queued firings of a timer whose cadence cannot be read any more, and notifies its user.
// The caller stores the timer.
func (r *Scheduler) reportDisabledTimer(ctx context.Context, tx *store.Tx, t reeve.Timer, why *reeve.Error) error {
	r.Log.Warn("schedule disabled: invalid cadence", "schedule", t.ID, "error", why.Message)
	if err := tx.Queue().SkipFirings(ctx, t.ID, "the schedule is disabled"); err != nil {
		return err
	}
	if err := tx.Queue().RecordChange(ctx, store.Change{Workspace: t.WorkspaceID,
		Operation: tx.NewID(reeve.PrefixChange), Tokens: t.Tokens(), Window: store.ChangeWindow}); err != nil ||
		t.UserID == "" {
		return err
	}
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: t.WorkspaceID, UserID: t.UserID,
		TimerID: t.ID, AgentID: t.AgentID, Session: t.Origin,
		Title: t.Name + " is disabled: " + why.Message,
		Body:  "To enable it, set a valid time zone: reeve schedules update " + t.ID + " --zone ZONE"}
	if _, err := tx.Queue().InsertNotificationAndEvents(ctx, n, r.Webhook != ""); err != nil {
		return err
	}
	return r.appendToThread(ctx, tx, n)
}

// reportCrashedRun notifies the user of a run that was failed because it crashed too often. It reports whether it
// queued a notification.
func (r *Scheduler) reportCrashedRun(ctx context.Context, tx *store.Tx, run reeve.Run) (bool, error) {
	if run.UserID == "" {
		return false, nil
	}
	name := run.AgentID
	a, found, err := tx.Agents().FindAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil {
		return false, err
	}
	if found {
		name = a.Name
	}
	return tx.Queue().InsertNotificationAndEvents(ctx, reeve.Notification{ID: tx.NewID(reeve.PrefixNotification),
		WorkspaceID: run.WorkspaceID, UserID: run.UserID, RunID: run.ID, AgentID: run.AgentID,
		Title: "A run of " + name + " failed after repeated crashes", Body: run.Message}, r.Webhook != "")
}

// appendToThread appends a notification to the thread of the conversation that created the schedule, if there is one.
func (r *Scheduler) appendToThread(ctx context.Context, tx *store.Tx, n reeve.Notification) error {
	agent, _, ok := strings.Cut(n.Session, ":")
	if !ok {
		return nil // the schedule was not created in a conversation
	}
	info, err := json.Marshal(map[string]string{"type": "notification", "notification_id": n.ID, "run_id": n.RunID,
		"schedule_id": n.TimerID, "title": n.Title})
	if err != nil {
		return err
	}
	return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: n.WorkspaceID,
		ThreadID: n.Session, AgentID: agent,
		Kind: reeve.Observation, Content: n.Title + "\n" + n.Body, Metadata: info})
}
