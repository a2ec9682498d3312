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
// counts failures and disables the timer after too many.
//
// It is part of the transaction that ends the run, so a notification is queued exactly once. The timer row is locked,
// so concurrent changes of the timer are not overwritten. A nil timer was deleted during the run.
func (r *Scheduler) reportTimerRun(ctx context.Context, tx *store.Tx, t *reeve.Timer, run reeve.Run,
	notify bool) (d delivery, err error) {
	if t == nil {
		return d, nil
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
			return d, err
		}
		t.Failures++
		n.Title, n.Body = t.Name+" failed", run.Message
		isWanted = t.Notify == reeve.NotifyAlways || run.Code == reeve.Crashed
		if t.Failures == r.Timetable.limits.AlertAfter {
			n.Title, isWanted = fmt.Sprintf("%s failed %d times in a row", t.Name, t.Failures), true
		}
		if t.Failures >= r.Timetable.limits.DisableAfter && t.State == reeve.TimerActive {
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
			return d, err
		}
		if err := tx.Queue().RecordChange(ctx, store.Change{Workspace: run.WorkspaceID, Agent: run.AgentID, Run: run.ID,
			Operation: reeve.DeriveID("chg", t.ID, run.ID), Tokens: t.Tokens(),
			Window: store.ChangeWindow}); err != nil {
			return d, err
		}
	}
	if t.Failures != before.Failures || t.State != before.State {
		if err := tx.Queue().CountFailures(ctx, *t); err != nil {
			return d, err
		}
	}
	if !isWanted || t.UserID == "" {
		return d, nil
	}
	return r.deliver(ctx, tx, report{Notification: n, key: "report:" + run.ID, run: run.ID, end: run.State,
		code: run.Code})
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
	_, err := r.deliver(ctx, tx, report{Notification: n, key: "report:" + n.ID})
	return err
}

// reportCrashedRun notifies the user of a run that was failed because it crashed too often.
func (r *Scheduler) reportCrashedRun(ctx context.Context, tx *store.Tx, run reeve.Run) (d delivery, err error) {
	if run.UserID == "" {
		return d, nil
	}
	name := run.AgentID
	a, found, err := tx.Agents().FindAgent(ctx, run.WorkspaceID, run.AgentID)
	if err != nil {
		return d, err
	}
	if found {
		name = a.Name
	}
	d.isNotified, err = tx.Queue().InsertNotificationAndEvents(ctx, reeve.Notification{
		ID:          tx.NewID(reeve.PrefixNotification),
		WorkspaceID: run.WorkspaceID, UserID: run.UserID, RunID: run.ID, AgentID: run.AgentID,
		Title: "A run of " + name + " failed after repeated crashes", Body: run.Message}, r.Webhook != nil)
	return d, err
}

// report is a notification that is also shown in the conversation in which its schedule was made.
type report struct {
	reeve.Notification
	key  string // names the frame in the conversation, so that it appears once
	run  string // run that ended; empty if none did
	end  reeve.RunState
	code reeve.Code
}

// deliver queues the notification and shows it in the conversation in which the schedule was made, with the files that
// the run sent: one frame and one message. If the conversation is gone, or if the user is no longer in it, the
// notification says so. It does nothing if the run has notified its user before.
func (r *Scheduler) deliver(ctx context.Context, tx *store.Tx, p report) (d delivery, err error) {
	_, session, hasThread := strings.Cut(p.Session, ":session:")
	var c reeve.Conversation
	isConversation := false
	if hasThread {
		c, err = tx.Chat().GetConversation(ctx, p.WorkspaceID, "", session)
		switch {
		case err == nil && c.HasUser(p.UserID):
			isConversation = true
		case err == nil:
			hasThread = false
			p.Body = withNote(p.Body, "You are no longer in the conversation in which the schedule was made.")
		case reeve.CodeOf(err) != reeve.NotFound:
			return d, err
		case strings.HasPrefix(session, reeve.PrefixConversation+"_"):
			hasThread = false
			p.Body = withNote(p.Body, "The conversation in which the schedule was made no longer exists.")
		}
	}
	d.isNotified, err = tx.Queue().InsertNotificationAndEvents(ctx, p.Notification, r.Webhook != nil)
	if err != nil || !d.isNotified || !hasThread {
		return d, err
	}
	var sent []reeve.Attachment
	if isConversation && p.run != "" {
		if sent, err = tx.Chat().TakeMedia(ctx, c.ID, p.run); err != nil {
			return d, err
		}
	}
	message, err := appendToThread(ctx, tx, p.Notification, sent)
	if err != nil || !isConversation {
		return d, err
	}
	d.conversations = []string{c.ID}
	return d, tx.Chat().AppendFinalFrame(ctx, c.ID, p.key, reeve.Frame{Type: reeve.FrameReport, TurnID: p.run,
		AgentID: p.AgentID, UserID: p.UserID, MessageID: message, ScheduleID: p.TimerID, Title: p.Title, Text: p.Body,
		Attachments: sent, State: p.end, Code: p.code})
}

func withNote(body, note string) string { return strings.TrimSpace(body + "\n\n" + note) }

// appendToThread appends a notification to the thread of the session in which the schedule was made. It returns the id
// of the message.
func appendToThread(ctx context.Context, tx *store.Tx, n reeve.Notification, sent []reeve.Attachment) (string, error) {
	agent, _, _ := strings.Cut(n.Session, ":")
	about := map[string]any{"type": "notification", "notification_id": n.ID, "run_id": n.RunID,
		"schedule_id": n.TimerID, "title": n.Title}
	if len(sent) > 0 {
		about["attachments"] = sent
	}
	info, err := json.Marshal(about)
	if err != nil {
		return "", err
	}
	id := tx.NewID(reeve.PrefixMessage)
	return id, tx.Ledger().AppendMessage(ctx, reeve.Message{ID: id, WorkspaceID: n.WorkspaceID, ThreadID: n.Session,
		AgentID: agent, Kind: reeve.Observation, Content: n.Title + "\n" + n.Body, Metadata: info})
}
