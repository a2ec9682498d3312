// Package schedules is the pack that lets agents make, look at and change schedules for the user they act for. Another
// user's schedule or run behaves like one that does not exist. Limits and budgets are the operator's, and are in no
// schema.
package schedules

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// Planner knows what schedules may be, and when they fire. wake.Planner is one.
type Planner interface {
	CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error
	Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error)
	ApplyToExisting(ctx context.Context, tx *store.Tx, t reeve.Timer, q reeve.ScheduleRequest) (reeve.Timer,
		[]time.Time, error)
}

// Pack is the pack.
type Pack struct {
	DB      *store.DB
	Planner Planner
}

type create struct {
	Goal         string `json:"goal" minLength:"1" maxLength:"8000" doc:"Complete instructions for a run that knows nothing of this conversation"`
	CadenceType  string `json:"cadence_type" enum:"cron,once,interval" doc:"Kind of cadence"`
	CadenceValue string `json:"cadence_value" minLength:"1" maxLength:"200" doc:"cron: five fields, such as 0 7 * * 1-5; once: a time, such as 2026-03-01T07:00; interval: a span, such as 2h"`
	Name         string `json:"name,omitempty" minLength:"1" maxLength:"200" doc:"A short name"`
	Timezone     string `json:"timezone,omitempty" minLength:"1" maxLength:"64" doc:"IANA zone, such as Europe/Berlin; UTC if left out"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never" doc:"When to tell the user: always (default), only when a run says so, or never"`
	Misfire      string `json:"misfire,omitempty" enum:"catchup,skip,all" doc:"After a time when nothing could run: one run for all missed (default), none, or each of the last 24 hours, 100 at most"`
}

type search struct {
	Name         string `json:"name,omitempty" maxLength:"200" doc:"Part of the name"`
	Status       string `json:"status,omitempty" enum:"active,paused,completed,disabled"`
	CadenceType  string `json:"cadence_type,omitempty" enum:"cron,once,interval"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never"`
	Limit        int    `json:"limit,omitempty" minimum:"1" maximum:"50" default:"20"`
	Offset       int    `json:"offset,omitempty" minimum:"0" maximum:"100000"`
}

type edit struct {
	ScheduleID   string `json:"schedule_id" minLength:"1" maxLength:"64"`
	Name         string `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Goal         string `json:"goal,omitempty" minLength:"1" maxLength:"8000"`
	CadenceType  string `json:"cadence_type,omitempty" enum:"cron,once,interval" doc:"Give it together with cadence_value"`
	CadenceValue string `json:"cadence_value,omitempty" minLength:"1" maxLength:"200"`
	Timezone     string `json:"timezone,omitempty" minLength:"1" maxLength:"64"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never"`
	Misfire      string `json:"misfire,omitempty" enum:"catchup,skip,all"`
	Status       string `json:"status,omitempty" enum:"active,paused" doc:"Pause or resume it; resuming forgets earlier failures"`
}

type remove struct {
	ScheduleID string `json:"schedule_id" minLength:"1" maxLength:"64"`
	reeve.UndoGuard
}

type history struct {
	ScheduleID string `json:"schedule_id" minLength:"1" maxLength:"64"`
	Limit      int    `json:"limit,omitempty" minimum:"1" maximum:"20" default:"5"`
}

type output struct {
	RunID    string `json:"run_id" minLength:"1" maxLength:"64"`
	Offset   int    `json:"offset,omitempty" minimum:"0" maximum:"100000000" doc:"Characters to skip"`
	MaxChars int    `json:"max_chars,omitempty" minimum:"200" maximum:"8000" default:"4000"`
}

// Tools gives the six tools.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string, effect reeve.Effect) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what, Category: "schedules", Pack: "schedules",
			Effect: effect, TimeoutMS: 10_000}
	}
	return []reeve.Tool{
		reeve.MustTool(tool("schedule_create", "Create Schedule",
			"Make a one-off or recurring scheduled task for the user. Shows when it will run.", reeve.Local), p.create),
		reeve.MustTool(tool("schedule_search", "Search Schedules",
			"List the user's scheduled tasks, filtered and in pages.", reeve.Read), p.search),
		reeve.MustTool(tool("schedule_edit", "Edit Schedule",
			"Change, pause or resume a scheduled task of the user. What is left out stays.", reeve.Local), p.edit),
		reeve.MustTool(tool("schedule_delete", "Delete Schedule",
			"Delete a scheduled task of the user for good. Its past runs stay.", reeve.Local), p.delete),
		reeve.MustTool(tool("schedule_runs", "Schedule Runs",
			"List recent runs of a scheduled task: when, how they ended, what they cost.", reeve.Read), p.runs),
		reeve.MustTool(tool("schedule_run_output", "Schedule Run Output",
			"Read the whole output of one run, in pages that join to the original.", reeve.Read), p.output),
	}
}

// user is whose schedules these are. A call on nobody's behalf has none.
func user(ctx context.Context) (*reeve.Invocation, string, error) {
	inv := reeve.InvocationFrom(ctx)
	if inv.User == "" {
		return inv, "", reeve.Errorf(reeve.ToolFailed,
			"schedules belong to a user, and this call is on nobody's behalf")
	}
	return inv, inv.User, nil
}

// view is a schedule as callers see it.
type view struct {
	reeve.Timer
	Upcoming []time.Time `json:"upcoming,omitempty"`
}

func (p *Pack) create(ctx context.Context, in create) (view, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return view{}, err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return view{}, err
	}
	if err := (reeve.ScheduleRequest{Name: in.Name, Goal: in.Goal}).Validate(); err != nil {
		return view{}, err
	}
	t := reeve.Timer{ID: tx.NewID(reeve.PrefixSchedule), WorkspaceID: inv.Workspace, AgentID: inv.Agent, UserID: who,
		Name: in.Name, Goal: in.Goal, Kind: in.CadenceType,
		Value: in.CadenceValue, Zone: in.Timezone, Misfire: reeve.Misfire(in.Misfire),
		Notify: reeve.Notify(in.Notification), Origin: inv.Thread,
		State: reeve.TimerActive, CreatedAt: tx.Now(), UpdatedAt: tx.Now(), OnBehalfOf: inv.OnBehalfOf(limited(inv))}
	if t.Name == "" {
		t.Name = headline(inv, in.Goal)
	}
	if t.Misfire == "" {
		t.Misfire = reeve.CatchUpOnce
	}
	if t.Notify == "" {
		t.Notify = reeve.NotifyAlways
	}
	if err := p.Planner.CheckScheduleCount(ctx, tx, t); err != nil {
		return view{}, reeve.Errorf(reeve.ToolFailed, "%s", reeve.AsError(err).Message).
			Hintf("%s", reeve.AsError(err).Hint)
	}
	t, upcoming, err := p.Planner.Plan(t, tx.Now())
	if err != nil {
		return view{}, err
	}
	inv.EmitAll(t.Tokens())
	inv.UndoWith("schedule_delete", remove{t.ID, reeve.NewUndoGuard(told(t))})
	return view{t, upcoming}, tx.Queue().PutTimer(ctx, t)
}

// limited tells whether the agent had only some of its tools in the call. Its schedules then have no others either.
func limited(inv *reeve.Invocation) bool {
	n := len(inv.Ancestors)
	return n > 0 && inv.Ancestors[n-1].Tools != nil
}

// headline is a name for a goal that has none.
func headline(inv *reeve.Invocation, goal string) string {
	goal = strings.TrimSpace(goal)
	line, _, _ := strings.Cut(goal, "\n")
	n, more := len(line), ""
	if utf8.RuneCountInString(line) > 60 {
		n, more = chars(line, 59), "…"
	}
	if n == len(goal) {
		return goal
	}
	return inv.RedactedHead(goal, n) + more
}

func (p *Pack) search(ctx context.Context, in search) (map[string]any, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = 20
	}
	var list []reeve.Timer
	total := 0
	err = p.DB.View(ctx, func(s *store.Snap) error {
		list, total, err = s.Queue().
			ListTimers(ctx, inv.Workspace, store.TimerFilter{User: who, Name: in.Name, Kind: in.CadenceType,
				State:  reeve.TimerState(in.Status),
				Notify: reeve.Notify(in.Notification), Offset: in.Offset, Limit: in.Limit})
		return err
	})
	if err != nil {
		return nil, err
	}
	return reeve.Page(inv, len(list), func(n int) (map[string]any, error) {
		remaining := max(0, total-in.Offset-n)
		out := map[string]any{"schedules": list[:n], "total": total, "remaining": remaining}
		if remaining > 0 {
			out["hint"] = fmt.Sprintf("go on with offset %d", in.Offset+n)
		}
		return out, nil
	})
}

// timers is where a schedule is read from: a snapshot, or a transaction that will change it.
type timers interface {
	GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error)
}

// mine reads one of the user's schedules; another's is not there.
func (p *Pack) mine(ctx context.Context, s timers, workspace, who, id string) (reeve.Timer, error) {
	t, err := s.GetTimer(ctx, workspace, who, id)
	if reeve.CodeOf(err) == reeve.NotFound {
		return t, reeve.Errorf(reeve.ToolFailed, "schedule %q not found", id)
	}
	return t, err
}

func (p *Pack) edit(ctx context.Context, in edit) (view, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return view{}, err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return view{}, err
	}
	was, err := p.mine(ctx, tx.Queue(), inv.Workspace, who, in.ScheduleID)
	if err != nil {
		return view{}, err
	}
	t, upcoming, err := p.Planner.ApplyToExisting(ctx, tx, was, reeve.ScheduleRequest{Name: in.Name, Goal: in.Goal,
		CadenceType: in.CadenceType, CadenceValue: in.CadenceValue,
		Timezone: in.Timezone, Misfire: reeve.Misfire(in.Misfire), Notification: reeve.Notify(in.Notification),
		Status: in.Status})
	if err != nil || t.Equal(was) {
		return view{t, upcoming}, err
	}
	// Another agent's schedule that is told a new goal does not do for this agent what this agent may not do.
	self := limited(inv) || t.AgentID != inv.Agent && t.Goal != was.Goal
	t.OnBehalfOf = reeve.JoinDelegators(was.OnBehalfOf, inv.OnBehalfOf(self))
	inv.EmitAll(t.Tokens())
	return view{t, upcoming}, tx.Queue().PutTimer(ctx, t)
}

// told is what people say of a schedule. The rest of it the clock moves.
func told(t reeve.Timer) []string {
	return []string{t.Name, t.Goal, t.Kind, t.Value, t.Zone, string(t.Misfire), string(t.Notify)}
}

func (p *Pack) delete(ctx context.Context, in remove) (string, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return "", err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return "", err
	}
	t, err := p.mine(ctx, tx.Queue(), inv.Workspace, who, in.ScheduleID)
	if err != nil {
		return "", err
	}
	if err := in.Check(told(t)); err != nil {
		return "", err
	}
	inv.EmitAll(t.Tokens())
	return "Deleted " + t.Name + ".", tx.Queue().DeleteTimer(ctx, inv.Workspace, t.ID)
}
