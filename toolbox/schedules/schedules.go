// Package schedules is the pack of tools with which an agent manages the schedules of the user for whom it acts.
//
// Schedules and runs of other users behave as if they did not exist. Operators set limits and budgets; no tool
// parameter does.
package schedules

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// Timetable checks schedules against the operator's limits and computes when they fire. wake.Timetable implements it.
type Timetable interface {
	CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error
	Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error)
	ApplyToExisting(ctx context.Context, tx *store.Tx, t reeve.Timer, q reeve.ScheduleRequest) (reeve.Timer,
		[]time.Time, error)
}

// Pack is the pack of schedule tools.
type Pack struct {
	DB        *store.DB
	Timetable Timetable
}

type createArgs struct {
	Goal         string `json:"goal" minLength:"1" maxLength:"8000" doc:"Complete instructions. The run does not see this conversation"`
	CadenceType  string `json:"cadence_type" enum:"cron,once,interval" doc:"cron, once or interval"`
	CadenceValue string `json:"cadence_value" minLength:"1" maxLength:"200" doc:"By type: 0 7 * * 1-5, 2026-03-01T07:00 or 2h"`
	Name         string `json:"name,omitempty" minLength:"1" maxLength:"200" doc:"Short name. Default: the first words of the goal"`
	Timezone     string `json:"timezone,omitempty" minLength:"1" maxLength:"64" doc:"IANA zone, such as Europe/Berlin. Default: UTC"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never" doc:"When a run notifies the user. Default: always. conditional: if the run says so"`
	Misfire      string `json:"misfire,omitempty" enum:"catchup,skip,all" doc:"After downtime: one run (catchup, default), none (skip), or each missed firing (all)"`
}

type searchArgs struct {
	Name         string `json:"name,omitempty" maxLength:"200" doc:"Part of the name"`
	Status       string `json:"status,omitempty" enum:"active,paused,completed,disabled"`
	CadenceType  string `json:"cadence_type,omitempty" enum:"cron,once,interval"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never"`
	Limit        int    `json:"limit,omitempty" minimum:"1" maximum:"50" default:"20"`
	Offset       int    `json:"offset,omitempty" minimum:"0" maximum:"100000"`
}

type editArgs struct {
	ScheduleID   string `json:"schedule_id" minLength:"1" maxLength:"64"`
	Name         string `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Goal         string `json:"goal,omitempty" minLength:"1" maxLength:"8000"`
	CadenceType  string `json:"cadence_type,omitempty" enum:"cron,once,interval" doc:"Requires cadence_value"`
	CadenceValue string `json:"cadence_value,omitempty" minLength:"1" maxLength:"200"`
	Timezone     string `json:"timezone,omitempty" minLength:"1" maxLength:"64"`
	Notification string `json:"notification,omitempty" enum:"always,conditional,never"`
	Misfire      string `json:"misfire,omitempty" enum:"catchup,skip,all"`
	Status       string `json:"status,omitempty" enum:"active,paused" doc:"Pause or resume. Resuming resets the failure count"`
}

type deleteArgs struct {
	ScheduleID string `json:"schedule_id" minLength:"1" maxLength:"64"`
	reeve.UndoGuard
}

type runsArgs struct {
	ScheduleID string `json:"schedule_id" minLength:"1" maxLength:"64"`
	Limit      int    `json:"limit,omitempty" minimum:"1" maximum:"20" default:"5"`
}

type outputArgs struct {
	RunID    string `json:"run_id" minLength:"1" maxLength:"64"`
	Offset   int    `json:"offset,omitempty" minimum:"0" maximum:"100000000" doc:"Characters to skip"`
	MaxChars int    `json:"max_chars,omitempty" minimum:"200" maximum:"8000" default:"4000"`
}

// Tools returns the six schedule tools.
func (p *Pack) Tools() []reeve.Tool {
	tool := func(id, name, what string, effect reeve.Effect) reeve.Tool {
		return reeve.Tool{ID: id, Name: name, Description: what, Category: "schedules", Pack: "schedules",
			Effect: effect, TimeoutMS: 10_000, Undoable: id == "schedule_create"}
	}
	return []reeve.Tool{
		reeve.MustTool(tool("schedule_create", "Create Schedule",
			"Create a task for the user that runs once or repeatedly, by the clock. Returns the schedule and its "+
				"next runs.", reeve.Local), p.create),
		reeve.MustTool(tool("schedule_search", "Search Schedules",
			"List the user's schedules, filtered by name, status or type, in pages.", reeve.Read), p.search),
		reeve.MustTool(tool("schedule_edit", "Edit Schedule",
			"Change, pause or resume a schedule of the user. Fields that you leave out stay unchanged.", reeve.Local),
			p.edit),
		reeve.MustTool(tool("schedule_delete", "Delete Schedule",
			"Delete a schedule of the user. Its past runs stay. To stop it for a while, pause it with schedule_edit.",
			reeve.Local), p.delete),
		reeve.MustTool(tool("schedule_runs", "Schedule Runs",
			"List recent runs of a schedule: when they ran, how they ended, what they cost, and missed firings.",
			reeve.Read), p.runs),
		reeve.MustTool(tool("schedule_run_output", "Schedule Run Output",
			"Read the output of one run, in pages. To read on, pass next_offset as offset until remaining is 0.",
			reeve.Read), p.output),
	}
}

// requireUser returns the user for whom the call acts. It fails if there is none.
func requireUser(ctx context.Context) (*reeve.Invocation, string, error) {
	inv := reeve.InvocationFrom(ctx)
	if inv.User == "" {
		return inv, "", reeve.Errorf(reeve.ToolFailed, "schedules belong to a user, and this call acts for no user")
	}
	return inv, inv.User, nil
}

// view is a schedule with its next firings.
type view struct {
	reeve.Timer
	Upcoming []time.Time `json:"upcoming,omitempty"`
}

func (p *Pack) create(ctx context.Context, in createArgs) (view, error) {
	inv, user, err := requireUser(ctx)
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
	origin, err := findOrigin(ctx, tx, inv)
	if err != nil {
		return view{}, err
	}
	t := reeve.Timer{ID: tx.NewID(reeve.PrefixSchedule), WorkspaceID: inv.Workspace, AgentID: inv.Agent, UserID: user,
		Name: in.Name, Goal: in.Goal, Kind: in.CadenceType,
		Value: in.CadenceValue, Zone: in.Timezone, Misfire: reeve.Misfire(in.Misfire),
		Notify: reeve.Notify(in.Notification), Origin: origin,
		State: reeve.TimerActive, CreatedAt: tx.Now(), UpdatedAt: tx.Now(),
		OnBehalfOf: inv.OnBehalfOf(inv.HasLimitedTools())}
	if t.Name == "" {
		t.Name = nameFromGoal(inv, in.Goal)
	}
	if t.Misfire == "" {
		t.Misfire = reeve.CatchUpOnce
	}
	if t.Notify == "" {
		t.Notify = reeve.NotifyAlways
	}
	a, err := tx.Agents().GetAgent(ctx, inv.Workspace, inv.Agent)
	if err == nil {
		err = a.CheckWakes(reeve.ReasonTimer)
	}
	if err != nil {
		return view{}, reeve.Errorf(reeve.ToolFailed, "%s", reeve.AsError(err).Message).
			Hintf("%s", reeve.AsError(err).Hint)
	}
	if err := p.Timetable.CheckScheduleCount(ctx, tx, t); err != nil {
		return view{}, reeve.Errorf(reeve.ToolFailed, "%s", reeve.AsError(err).Message).
			Hintf("%s", reeve.AsError(err).Hint)
	}
	t, upcoming, err := p.Timetable.Plan(t, tx.Now())
	if err != nil {
		return view{}, err
	}
	inv.EmitAll(t.Tokens())
	inv.UndoWith("schedule_delete", deleteArgs{t.ID, reeve.NewUndoGuard(userFields(t))})
	if err := recordChange(ctx, tx, inv, nil, &t); err != nil {
		return view{}, err
	}
	return view{t, upcoming}, tx.Queue().PutTimer(ctx, t)
}

// findOrigin returns the thread to which the reports of a new schedule go: where the person is who asked for the run. A
// delegated run answers an agent, so the first run of the chain decides.
func findOrigin(ctx context.Context, tx *store.Tx, inv *reeve.Invocation) (string, error) {
	first := inv.Run
	if len(inv.Ancestors) > 0 {
		first = inv.Ancestors[0].RunID
	}
	if first == "" {
		return inv.Thread, nil
	}
	run, err := tx.Runs().GetRun(ctx, inv.Workspace, first)
	if err != nil {
		return "", err
	}
	thread, err := tx.Runs().RequestThread(ctx, run)
	return cmp.Or(thread, inv.Thread), err
}

// nameFromGoal returns the first words of a goal, without part of a secret.
func nameFromGoal(inv *reeve.Invocation, goal string) string {
	goal = strings.TrimSpace(goal)
	line, _, _ := strings.Cut(goal, "\n")
	n, more := len(line), ""
	if utf8.RuneCountInString(line) > 60 {
		n, more = prefixLen(line, 59), "…"
	}
	if n == len(goal) {
		return goal
	}
	return inv.RedactedHead(goal, n) + more
}

func (p *Pack) search(ctx context.Context, in searchArgs) (map[string]any, error) {
	inv, user, err := requireUser(ctx)
	if err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = 20
	}
	var list []reeve.Timer
	total := 0
	err = p.DB.View(ctx, func(s *store.Snap) error {
		list, total, err = s.Queue().ListTimers(ctx, inv.Workspace, store.TimerFilter{User: user, Name: in.Name,
			Kind: in.CadenceType, State: reeve.TimerState(in.Status), Notify: reeve.Notify(in.Notification),
			Offset: in.Offset, Limit: in.Limit})
		return err
	})
	if err != nil {
		return nil, err
	}
	return reeve.LongestPage(inv, len(list), func(n int) (map[string]any, error) {
		remaining := max(0, total-in.Offset-n)
		out := map[string]any{"schedules": list[:n], "total": total, "remaining": remaining}
		if remaining > 0 {
			out["hint"] = fmt.Sprintf("to read on, use offset %d", in.Offset+n)
		}
		return out, nil
	})
}

// timerReader reads a schedule: from a snapshot, or from a transaction that locks the row.
type timerReader interface {
	GetTimer(ctx context.Context, workspace, user, id string) (reeve.Timer, error)
}

// getOwn reads a schedule of the user.
func (p *Pack) getOwn(ctx context.Context, s timerReader, workspace, user, id string) (reeve.Timer, error) {
	t, err := s.GetTimer(ctx, workspace, user, id)
	if reeve.CodeOf(err) == reeve.NotFound {
		return t, reeve.Errorf(reeve.ToolFailed, "schedule %q not found", id)
	}
	return t, err
}

func (p *Pack) edit(ctx context.Context, in editArgs) (view, error) {
	inv, user, err := requireUser(ctx)
	if err != nil {
		return view{}, err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return view{}, err
	}
	was, err := p.getOwn(ctx, tx.Queue(), inv.Workspace, user, in.ScheduleID)
	if err != nil {
		return view{}, err
	}
	t, upcoming, err := p.Timetable.ApplyToExisting(ctx, tx, was, reeve.ScheduleRequest{Name: in.Name, Goal: in.Goal,
		CadenceType: in.CadenceType, CadenceValue: in.CadenceValue,
		Timezone: in.Timezone, Misfire: reeve.Misfire(in.Misfire), Notification: reeve.Notify(in.Notification),
		Status: in.Status})
	if err != nil || t.Equal(was) {
		return view{t, upcoming}, err
	}
	// With a new goal, another agent's schedule works on behalf of this agent, and so within this agent's rights.
	self := inv.HasLimitedTools() || t.AgentID != inv.Agent && t.Goal != was.Goal
	t.OnBehalfOf = reeve.JoinDelegators(was.OnBehalfOf, inv.OnBehalfOf(self))
	inv.EmitAll(t.Tokens())
	if err := recordChange(ctx, tx, inv, &was, &t); err != nil {
		return view{}, err
	}
	return view{t, upcoming}, tx.Queue().PutTimer(ctx, t)
}

// recordChange records what the call changes of a schedule.
func recordChange(ctx context.Context, tx *store.Tx, inv *reeve.Invocation, before, after *reeve.Timer) error {
	change, err := store.DiffTimer(before, after)
	if err != nil {
		return err
	}
	return tx.Queue().InsertEntityChanges(ctx, store.ChangeAuthor{Workspace: inv.Workspace, Change: inv.Operation,
		Agent: inv.Agent, User: inv.User, Run: inv.Run}, []reeve.EntityChange{change})
}

// userFields returns the fields of a schedule that users set. The clock changes the others.
func userFields(t reeve.Timer) []string {
	return []string{t.Name, t.Goal, t.Kind, t.Value, t.Zone, string(t.Misfire), string(t.Notify)}
}

func (p *Pack) delete(ctx context.Context, in deleteArgs) (string, error) {
	inv, user, err := requireUser(ctx)
	if err != nil {
		return "", err
	}
	tx, err := store.TxFrom(ctx)
	if err != nil {
		return "", err
	}
	t, err := p.getOwn(ctx, tx.Queue(), inv.Workspace, user, in.ScheduleID)
	if err != nil {
		return "", err
	}
	if err := in.Check(userFields(t)); err != nil {
		return "", err
	}
	inv.EmitAll(t.Tokens())
	if err := recordChange(ctx, tx, inv, &t, nil); err != nil {
		return "", err
	}
	return "Deleted " + t.Name + ".", tx.Queue().DeleteTimer(ctx, inv.Workspace, t.ID)
}
