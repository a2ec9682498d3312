package wake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Limits is what operators allow schedules to be. Models neither see nor set them.
type Limits struct {
	PerUser      int           // schedules one user may have. Default: 50
	MinInterval  time.Duration // the shortest time between two firings. Default: 1 minute
	AlertAfter   int           // failures in a row after which the person is told. Default: 3
	DisableAfter int           // failures in a row after which it is disabled. Default: 5
	Budget       reeve.Amount  // what one scheduled run may spend. Default: no limit
}

func (l Limits) withDefaults() Limits {
	if l.PerUser == 0 {
		l.PerUser = 50
	}
	if l.MinInterval == 0 {
		l.MinInterval = time.Minute
	}
	if l.AlertAfter == 0 {
		l.AlertAfter = 3
	}
	if l.DisableAfter == 0 {
		l.DisableAfter = 5
	}
	return l
}

// Admit refuses one schedule too many. Those that are over do not count.
func (r *Room) Admit(ctx context.Context, tx *store.Tx, t reeve.Timer) error {
	n, err := tx.CountTimers(ctx, t.WorkspaceID, t.UserID)
	if err == nil && n >= r.Limits.PerUser {
		return reeve.Errorf(reeve.Conflict, "the user has %d schedules already, and %d are allowed", n, r.Limits.PerUser).Hintf("delete one first")
	}
	return err
}

// Revise is Change for a timer that is there: one that is over and lives again counts like a new one.
func (r *Room) Revise(ctx context.Context, tx *store.Tx, t reeve.Timer, q reeve.ScheduleRequest) (reeve.Timer, []time.Time, error) {
	is, upcoming, err := r.Change(t, q, tx.Now())
	if err == nil && t.State == reeve.TimerCompleted && is.State != reeve.TimerCompleted {
		err = r.Admit(ctx, tx, is)
	}
	return is, upcoming, err
}

// Change applies what a request says to a timer, and plans it anew where its time changed. What is left out stays, and so a
// paused timer stays paused; one that was over or disabled lives again when it gets a new time. A time that is said again, in
// whatever words, changes nothing. It gives the next firings where they changed.
func (r *Room) Change(t reeve.Timer, q reeve.ScheduleRequest, now time.Time) (reeve.Timer, []time.Time, error) {
	if (q.CadenceType == "") != (q.CadenceValue == "") {
		return t, nil, &reeve.Error{Code: reeve.Validation, Message: "cadence_type and cadence_value belong together",
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "one is given without the other", Expected: "both or neither"}}}
	}
	if err := q.Validate(); err != nil {
		return t, nil, err
	}
	was := t
	set := func(p *string, v string) {
		if v != "" {
			*p = v
		}
	}
	set(&t.Name, q.Name)
	set(&t.Goal, q.Goal)
	set(&t.Kind, q.CadenceType)
	set(&t.Value, q.CadenceValue)
	set(&t.Zone, q.Timezone)
	set((*string)(&t.Misfire), string(q.Misfire))
	set((*string)(&t.Notify), string(q.Notification))
	timed := q.CadenceType != "" || q.Timezone != ""
	alike := timed && r.alike(t, was)
	if alike && t.Zone == was.Zone && (t.Kind != KindOnce || zoneless(t.Value) == zoneless(was.Value)) { // else it means another time when the zone changes
		t.Value = was.Value
	}
	retimed := timed && !alike
	switch {
	case q.Status == string(reeve.TimerPaused) && t.State == reeve.TimerCompleted && !retimed:
		return t, nil, reeve.Errorf(reeve.Conflict, "the schedule is over, and cannot be paused").Hintf("give it a new time with cadence_type and cadence_value")
	case q.Status == string(reeve.TimerPaused):
		t.State, t.NextAt = reeve.TimerPaused, nil
	case q.Status == string(reeve.TimerActive):
		retimed = retimed || t.State != reeve.TimerActive
		t.State, t.Failures = reeve.TimerActive, 0
	case retimed && t.State != reeve.TimerActive && t.State != reeve.TimerPaused:
		t.State, t.Failures = reeve.TimerActive, 0
	}
	if !retimed {
		return t, nil, nil
	}
	planned, upcoming, err := r.Plan(t, now)
	if err != nil {
		return t, nil, err
	}
	if t.State != reeve.TimerActive { // then it was only checked
		t.Zone = planned.Zone
		return t, nil, nil
	}
	return planned, upcoming, nil
}

// alike tells whether the times of two timers are the same, in other words at most.
func (r *Room) alike(a, b reeve.Timer) bool {
	c, err := r.zones.ParseCadence(a.Kind, a.Value, a.Zone)
	if err != nil {
		return false
	}
	d, err := r.zones.ParseCadence(b.Kind, b.Value, b.Zone)
	return err == nil && c.same(d)
}

// firingsShown is how many firings a person is shown when a timer is made.
const firingsShown = 5

// Plan checks a timer's cadence against the limits, sets when it fires first, and gives the first few firings.
func (r *Room) Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error) {
	if t.Zone == "" {
		t.Zone = "UTC"
	}
	c, err := r.zones.ParseCadence(t.Kind, t.Value, t.Zone)
	if err != nil {
		return t, nil, asInput(err)
	}
	if gap, repeats := c.MinInterval(); repeats && gap < r.Limits.MinInterval {
		return t, nil, &reeve.Error{Code: reeve.Validation, Message: fmt.Sprintf("it would fire every %s; the shortest time allowed is %s", gap, r.Limits.MinInterval),
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "is too frequent", Expected: "at least " + r.Limits.MinInterval.String() + " between firings"}}}
	}
	next := c.From(now).Upcoming(now, firingsShown)
	if len(next) == 0 {
		return t, nil, &reeve.Error{Code: reeve.Validation, Message: "it would never fire: its time has passed",
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "is in the past", Expected: "a time to come"}}}
	}
	t.NextAt = &next[0]
	return t, next, nil
}

// asInput names the fields of a cadence as callers do.
func asInput(err error) error {
	e := *reeve.AsError(err)
	e.Fields = slices.Clone(e.Fields)
	for i, f := range e.Fields {
		if name, ok := map[string]string{"/kind": "/cadence_type", "/value": "/cadence_value", "/zone": "/timezone"}[f.Path]; ok {
			e.Fields[i].Path = name
		}
	}
	return &e
}

// fire queues a wake for each timer whose time has come, and sets its next time. It tells whether there may
// be more of them.
func (r *Room) fire(ctx context.Context, tx *store.Tx, due []reeve.Timer) (more bool, err error) {
	if len(due) == 0 {
		return false, nil
	}
	agents := make([]string, len(due))
	for i, t := range due {
		agents[i] = t.AgentID
	}
	scripts, err := tx.ScriptAgents(ctx, agents)
	if err != nil {
		return false, err
	}
	var wakes []reeve.Wake
	for i, t := range due {
		var own []reeve.Wake
		if due[i], own, err = r.fireOne(ctx, tx, t, scripts[t.AgentID]); err != nil {
			return false, err
		}
		wakes = append(wakes, own...)
	}
	if err := tx.InsertWakes(ctx, wakes); err != nil {
		return false, err
	}
	return len(due) == mostTimers, tx.AdvanceTimers(ctx, due)
}

// anchored counts an interval so that an instant is one of its firings; other cadences know theirs.
func anchored(c Cadence, at time.Time) Cadence {
	if gap, ok := c.MinInterval(); ok && c.Kind() == KindInterval {
		return c.From(at.Add(-gap))
	}
	return c
}

// fireOne deals with every instant from the one that the timer waits for up to now. That instant is in the row, and not worked
// out from the clock: put back, the clock repeats nothing, and put forward it skips nothing in silence. It gives the timer as it is
// then, and the wakes. An automation never runs beside itself, whatever the schedule.
func (r *Room) fireOne(ctx context.Context, tx *store.Tx, t reeve.Timer, script bool) (is reeve.Timer, wakes []reeve.Wake, err error) {
	c, err := r.zones.Stored(t.Kind, t.Value, t.Zone)
	if err != nil { // a zone that was known when it was made
		t.State, t.NextAt = reeve.TimerDisabled, nil
		return t, nil, r.disable(ctx, tx, t, reeve.AsError(err))
	}
	d := anchored(c, *t.NextAt).Due(t.NextAt.Add(-time.Millisecond), tx.Now(), t.Misfire)
	for _, f := range d.Run {
		w := reeve.Wake{RunKey: timerKey(t, f.At), WorkspaceID: t.WorkspaceID, AgentID: t.AgentID, Reason: reeve.ReasonTimer, ReasonID: t.ID, UserID: t.UserID,
			SessionID: store.TimerLane + t.ID, Input: t.Goal, ScheduledAt: &f.At, DueAt: f.At, State: reeve.WakeQueued,
			OnBehalfOf: t.OnBehalfOf}
		if f.CatchUp {
			w.Reason = reeve.ReasonCatchup
		}
		if t.Goal != "" && !script {
			w.SessionID = store.ScheduleLane + t.ID
		}
		wakes = append(wakes, w)
		t.LastAt = &f.At
	}
	for _, at := range d.Missed {
		if err := tx.InsertMissed(ctx, t.ID, reeve.Millis(at), timerKey(t, at)); err != nil {
			return t, nil, err
		}
	}
	t.Missed += len(d.Missed)
	if t.NextAt = &d.Next; d.Next.IsZero() {
		t.NextAt, t.State = nil, reeve.TimerCompleted
	}
	return t, wakes, nil
}

// timerKey is the run key of a firing: the same on every server and after every crash.
func timerKey(t reeve.Timer, at time.Time) string {
	return reeve.Key("wake", string(reeve.ReasonTimer), t.AgentID, t.ID, fmt.Sprint(reeve.Millis(at)))
}

// Upcoming gives an active timer's next firings.
func (r *Room) Upcoming(t reeve.Timer, now time.Time) []time.Time {
	c, err := r.zones.Stored(t.Kind, t.Value, t.Zone)
	if err != nil || t.NextAt == nil {
		return nil
	}
	return anchored(c, *t.NextAt).Upcoming(now, firingsShown)
}

// Why says why a timer is disabled; empty if it is not.
func (r *Room) Why(t reeve.Timer) string {
	if t.State != reeve.TimerDisabled {
		return ""
	}
	if _, err := r.zones.Stored(t.Kind, t.Value, t.Zone); err != nil {
		return reeve.AsError(err).Message
	}
	if t.Failures == 0 {
		return "its time could not be read"
	}
	return fmt.Sprintf("it failed %d times in a row", t.Failures)
}
