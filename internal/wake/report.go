package wake

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// report tells a schedule's person what its run came to, as the schedule's policy says, and counts failures. It belongs
// to the transaction that ends the run, and a run tells at most once; so what was to be told is told once, whatever
// crashes. What else has happened to the schedule meanwhile stays: its row is read, held and written in this
// transaction.
func (r *Scheduler) report(ctx context.Context, tx *store.Tx, t *reeve.Timer, run reeve.Run,
	notify bool) (told bool, err error) {
	if t == nil {
		return false, nil // deleted while it ran
	}
	was := *t
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: run.WorkspaceID, UserID: t.UserID,
		RunID: run.ID, TimerID: t.ID, AgentID: run.AgentID,
		Session: t.Origin, Title: t.Name, Body: run.Output}
	tell := t.Notify == reeve.NotifyAlways || t.Notify == reeve.NotifyConditional && notify
	switch run.State {
	case reeve.RunFailed:
		// whose failures are dealt with one by one
		if script, err := tx.Automations().IsAutomation(ctx, run.AgentID); err != nil || script {
			return false, err
		}
		t.Failures++
		n.Title, n.Body = t.Name+" failed", run.Message
		tell = t.Notify == reeve.NotifyAlways || run.Code == reeve.Crashed
		if t.Failures == r.Planner.limits.AlertAfter {
			n.Title, tell = fmt.Sprintf("%s failed %d times in a row", t.Name, t.Failures), true
		}
		if t.Failures >= r.Planner.limits.DisableAfter && t.State == reeve.TimerActive {
			t.State, t.NextAt = reeve.TimerDisabled, nil
			n.Title, tell = fmt.Sprintf("%s is disabled after %d failures in a row", t.Name, t.Failures), true
		}
	case reeve.RunCompleted:
		t.Failures = 0
	case reeve.RunRunning, reeve.RunParked, reeve.RunSkipped, reeve.RunCancelled, reeve.RunPaused:
		tell = false
	}
	if t.State != was.State {
		if err := tx.Queue().SkipFirings(ctx, t.ID, "the schedule is disabled"); err != nil {
			return false, err
		}
		if err := tx.Queue().RecordChange(ctx, store.Change{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID,
			Operation: reeve.Key("chg", t.ID, run.ID), Tokens: t.Tokens(), Window: store.Window}); err != nil {
			return false, err
		}
	}
	if t.Failures != was.Failures || t.State != was.State {
		if err := tx.Queue().CountFailures(ctx, *t); err != nil {
			return false, err
		}
	}
	if !tell || t.UserID == "" {
		return false, nil
	}
	if told, err = tx.Queue().InsertNotificationAndEvents(ctx, n, r.Webhook != ""); err != nil || !told {
		return false, err
	}
	return true, r.answer(ctx, tx, n)
}

// disable tells who there is to tell that a timer, which is written by the caller, can fire no more.
func (r *Scheduler) disable(ctx context.Context, tx *store.Tx, t reeve.Timer, why *reeve.Error) error {
	r.Log.Warn("a schedule is disabled: it cannot be read any more", "schedule", t.ID, "error", why.Message)
	if err := tx.Queue().SkipFirings(ctx, t.ID, "the schedule is disabled"); err != nil {
		return err
	}
	if err := tx.Queue().RecordChange(ctx, store.Change{Workspace: t.WorkspaceID,
		Operation: tx.NewID(reeve.PrefixChange), Tokens: t.Tokens(), Window: store.Window}); err != nil ||
		t.UserID == "" {
		return err
	}
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: t.WorkspaceID, UserID: t.UserID,
		TimerID: t.ID, AgentID: t.AgentID, Session: t.Origin,
		Title: t.Name + " is disabled: " + why.Message,
		Body:  "It fires again when it has a time that can be read: reeve schedules update " + t.ID + " --zone ZONE"}
	if _, err := tx.Queue().InsertNotificationAndEvents(ctx, n, r.Webhook != ""); err != nil {
		return err
	}
	return r.answer(ctx, tx, n)
}

// alarm tells the person on whose behalf a run was, if there is one, that it was given up.
func (r *Scheduler) alarm(ctx context.Context, tx *store.Tx, run reeve.Run) (bool, error) {
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
		Title: "a run of " + name + " was given up", Body: run.Message}, r.Webhook != "")
}

// answer puts what a person is told into the thread that asked for it.
func (r *Scheduler) answer(ctx context.Context, tx *store.Tx, n reeve.Notification) error {
	agent, _, ok := strings.Cut(n.Session, ":")
	if !ok {
		return nil // it was made outside any conversation
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
