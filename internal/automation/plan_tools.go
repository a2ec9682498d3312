package automation

import (
	"context"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/sandbox/js"
	"reeve/internal/store"
)

// What the planner does: try, save, schedule, ask.

const maxShown = 100 // items and changes of a trial in the result of scripts_eval

func (p *Pack) handleEval(ctx context.Context, in evalArgs) (any, error) {
	inv := reeve.InvocationFrom(ctx)
	t := trial{source: in.Source, language: in.Language, input: in.Input, user: inv.User, forScriptJob: true,
		delegators: inv.OnBehalfOf(false)}
	if t.language == "" {
		t.language = string(js.JavaScript)
	}
	err := p.DB.View(ctx, func(s *store.Snap) error {
		m, k, err := jobTarget(ctx, s, inv, in.Automation)
		if err != nil {
			return err
		}
		if t.automation = m; k.RunID == "" || in.Input != "" || k.AgentID != m.AgentID {
			return nil
		}
		run, err := s.Runs().GetRun(ctx, inv.Workspace, k.RunID)
		t.input = run.Input
		return err
	})
	if err != nil {
		return nil, err
	}
	out, err := p.runner.tryScript(ctx, t)
	if err != nil {
		return nil, err
	}
	more := ""
	if len(out.Items) > maxShown || len(out.Changes) > maxShown {
		more = fmt.Sprintf("%d items and %d changes in total", len(out.Items), len(out.Changes))
	}
	out.Items, out.Changes = out.Items[:min(len(out.Items), maxShown)], out.Changes[:min(len(out.Changes), maxShown)]
	return struct {
		trialResult
		More string `json:"more,omitempty"`
	}{out, more}, nil
}

// checkSave fails if the source has a syntax error. It runs before the transaction, because the check starts a process.
func (p *Pack) checkSave(ctx context.Context, inv *reeve.Invocation) error {
	in, err := reeve.Args[saveArgs](inv)
	if err != nil {
		return err
	}
	if in.Language == "" {
		in.Language = string(js.JavaScript)
	}
	return checkSyntax(ctx, p.Pool, in.Source, in.Language, "/source")
}

func (p *Pack) handleSave(ctx context.Context, in saveArgs) (any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	m, k, err := p.planTarget(ctx, tx, inv, in.Automation)
	if err != nil {
		return nil, err
	}
	if m, err = tx.Automations().LockAutomation(ctx, m.WorkspaceID, m.AgentID); err != nil {
		return nil, err
	}
	if k.ID == "" { // in a conversation there is no job yet; the comment is the request
		k = reeve.ScriptJob{ID: tx.NewID(reeve.PrefixScriptJob), WorkspaceID: m.WorkspaceID, Kind: reeve.PlanJob,
			AgentID: m.AgentID, WorkerID: inv.Agent, ScriptID: m.ScriptID, RunKey: inv.Operation,
			UserID: inv.User, Request: in.Comment, State: reeve.ScriptJobOpen}
		if _, err := tx.Automations().InsertScriptJob(ctx, k); err != nil {
			return nil, err
		}
		k.State = reeve.ScriptJobDone
	}
	last, err := tx.Automations().LastVersion(ctx, m.AgentID, -1)
	if err != nil {
		return nil, err
	}
	if in.Language == "" {
		in.Language = string(js.JavaScript)
	}
	v := reeve.ScriptVersion{ID: tx.NewID(reeve.PrefixScript), WorkspaceID: m.WorkspaceID, AgentID: m.AgentID,
		Major: last.Major + 1, Source: in.Source, Language: in.Language, Comment: in.Comment,
		CreatedBy: plannerName, ScriptJobID: k.ID, OnBehalfOf: inv.OnBehalfOf(false)}
	if err := tx.Automations().InsertScript(ctx, v); err != nil {
		return nil, err
	}
	k.ResultID = v.ID
	if moved, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobOpen, k); err != nil || !moved {
		return nil, jobClosed(err)
	}
	return map[string]any{"version": v.Version(), "active": false, "message": "Saved. A person activates it."}, nil
}

// jobClosed returns err, or else the error of a script job that is no longer open.
func jobClosed(err error) error {
	if err != nil {
		return err
	}
	return reeve.Errorf(reeve.Conflict, "the script job is closed").Hintf("end with a text answer")
}

// planTarget is like jobTarget, but within a script job it allows only the job's automation.
func (p *Pack) planTarget(ctx context.Context, tx *store.Tx, inv *reeve.Invocation,
	name string) (m reeve.Automation, k reeve.ScriptJob, err error) {
	m, k, err = jobTarget(ctx, &tx.Snap, inv, name)
	switch {
	case err != nil:
	case k.ID == "":
	case k.AgentID != m.AgentID:
		err = reeve.Errorf(reeve.Denied, "this script job is for automation %q", k.Automation)
	case k.State != reeve.ScriptJobOpen:
		err = jobClosed(nil)
	}
	return m, k, err
}

func (p *Pack) handleSchedule(ctx context.Context, in scheduleArgs) (any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	m, k, err := p.planTarget(ctx, tx, inv, in.Automation)
	if err != nil {
		return nil, err
	}
	if m, err = tx.Automations().LockAutomation(ctx, m.WorkspaceID, m.AgentID); err != nil {
		return nil, err
	}
	if k.ID == "" {
		if k, err = getLastPlan(ctx, tx, m); err != nil {
			return nil, err
		}
	}
	if inv.User == "" {
		return nil, reeve.Errorf(reeve.ToolFailed, "a schedule needs a user, and this script job has none")
	}
	t := reeve.Timer{ID: tx.NewID(reeve.PrefixSchedule), WorkspaceID: m.WorkspaceID, AgentID: m.AgentID,
		UserID: inv.User, Name: m.Name, Kind: in.CadenceType, Value: in.CadenceValue, Zone: in.Timezone,
		Misfire: reeve.CatchUpOnce, Notify: reeve.Notify(in.Notification), State: reeve.TimerPaused,
		CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
		OnBehalfOf: inv.OnBehalfOf(false)}
	if t.Notify == "" {
		t.Notify = reeve.NotifyConditional
	}
	was, err := tx.Queue().GetTimer(ctx, m.WorkspaceID, "", k.TimerID)
	if err != nil && reeve.CodeOf(err) != reeve.NotFound {
		return nil, err
	}
	if err == nil {
		if err := tx.Queue().DeleteTimer(ctx, m.WorkspaceID, was.ID); err != nil {
			return nil, err
		}
		inv.EmitAll(was.Tokens())
		t.OnBehalfOf = reeve.JoinDelegators(was.OnBehalfOf, t.OnBehalfOf)
	}
	if err := p.Timers.CheckScheduleCount(ctx, tx, t); err != nil {
		return nil, reeve.Errorf(reeve.ToolFailed, "%s", reeve.AsError(err).Message).
			Hintf("%s", reeve.AsError(err).Hint)
	}
	t, upcoming, err := p.Timers.Plan(t, tx.Now())
	if err != nil {
		return nil, err
	}
	said := "The schedule starts when a person activates the version."
	switch {
	case was.State == reeve.TimerActive, was.State != reeve.TimerPaused && isActivePlan(m, k):
		t.State, said = reeve.TimerActive, "The schedule is active."
		ended, err := completeOtherSchedules(ctx, tx, m, t.ID)
		if err != nil {
			return nil, err
		}
		inv.EmitAll(ended)
	case isActivePlan(m, k):
		t.NextAt, said = nil, "The schedule is paused, as the previous one was, until a person resumes it."
	default:
		t.NextAt = nil
	}
	if err := tx.Queue().PutTimer(ctx, t); err != nil {
		return nil, err
	}
	inv.EmitAll(t.Tokens())
	k.TimerID = t.ID
	if moved, err := tx.Automations().TransitionScriptJob(ctx, k.State, k); err != nil || !moved {
		return nil, jobClosed(err)
	}
	return map[string]any{"schedule": t.ID, "timezone": t.Zone, "would_run_at": upcoming, "message": said}, nil
}

// isActivePlan reports whether the version that a plan saved, or a repair of it, is active.
func isActivePlan(m reeve.Automation, k reeve.ScriptJob) bool {
	is, _, _ := strings.Cut(m.Version, ".")
	of, _, saved := strings.Cut(k.Result, ".")
	return saved && is == of
}

// getLastPlan returns the last plan of an automation that saved a version.
func getLastPlan(ctx context.Context, tx *store.Tx, m reeve.Automation) (reeve.ScriptJob, error) {
	k, ok, err := tx.Automations().LastSavedPlan(ctx, m.AgentID)
	if err == nil && !ok {
		err = reeve.Errorf(reeve.Conflict, "the planner has saved no version to schedule").
			Hintf("save one with scripts_save first")
	}
	return k, err
}

func (p *Pack) handleAsk(ctx context.Context, in askArgs) (any, error) {
	inv := reeve.InvocationFrom(ctx)
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return nil, err
	}
	k, ok, err := tx.Automations().FindScriptJobOfRun(ctx, inv.Workspace, inv.Run)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, reeve.Errorf(reeve.Unsupported, "this is a conversation, not a script job").
			Hintf("ask the question in your answer")
	case k.State != reeve.ScriptJobOpen:
		return nil, jobClosed(nil)
	case k.UserID == "":
		return nil, reeve.Errorf(reeve.ToolFailed, "the script job has no user to ask")
	}
	k.State, k.Question = reeve.ScriptJobAsking, in.Question
	if moved, err := tx.Automations().TransitionScriptJob(ctx, reeve.ScriptJobOpen, k); err != nil || !moved {
		return nil, jobClosed(err)
	}
	n := reeve.Notification{ID: tx.NewID(reeve.PrefixNotification), WorkspaceID: k.WorkspaceID, UserID: k.UserID,
		RunID: inv.Run, AgentID: k.AgentID,
		Title: "The planner asks about " + k.Automation, Body: in.Question + "\n\nreeve automations answer " + k.ID +
			" \"...\""}
	told, err := tx.Queue().InsertNotification(ctx, n, p.Webhook)
	if err != nil {
		return nil, err
	}
	if told {
		inv.EmitAll(n.Tokens())
	}
	return "The question was sent. End your answer now; you are called again with the reply.", nil
}
