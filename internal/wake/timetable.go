package wake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reeve"
	"reeve/internal/store"
)

// Limits are the operator's limits for schedules. Models neither see nor set them.
type Limits struct {
	PerUser      int           // schedules per user. Default: 50
	MinInterval  time.Duration // minimum time between two firings. Default: 1 minute
	AlertAfter   int           // consecutive failures after which the user is notified. Default: 3
	DisableAfter int           // consecutive failures after which a schedule is disabled. Default: 5
	Budget       reeve.Amount  // budget of one scheduled run. Default: no limit

	LimitScriptJobs bool // Budget applies to runs of the planner and the maintainer too. Default: false
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

// Timetable checks schedules against the limits and computes when timers fire.
type Timetable struct {
	limits Limits
	zones  Zones
}

// NewTimetable returns a timetable that enforces limits.
func NewTimetable(limits Limits) *Timetable { return &Timetable{limits: limits.withDefaults()} }

// CheckScheduleCount fails with Conflict if the user cannot have another schedule. Completed schedules do not count.
func (tt *Timetable) CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error {
	n, err := tx.Queue().CountTimers(ctx, t.WorkspaceID, t.UserID)
	if err == nil && n >= tt.limits.PerUser {
		return reeve.Errorf(reeve.Conflict, "the user already has %d schedules, and the limit is %d", n,
			tt.limits.PerUser).Hintf("delete a schedule first")
	}
	return err
}

// ApplyToExisting is Apply for a stored timer. A completed schedule that becomes active again counts as a new one.
func (tt *Timetable) ApplyToExisting(ctx context.Context, tx *store.Tx, t reeve.Timer,
	q reeve.ScheduleRequest) (reeve.Timer, []time.Time, error) {
	updated, upcoming, err := tt.Apply(t, q, tx.Now())
	if err == nil && t.State == reeve.TimerCompleted && updated.State != reeve.TimerCompleted {
		err = tt.CheckScheduleCount(ctx, tx, updated)
	}
	return updated, upcoming, err
}

// Apply returns a timer with the changes of a request, and its next firings if they changed. Empty fields of the
// request change nothing, so a paused timer stays paused. A completed or disabled timer becomes active again if it gets
// a new time. A cadence written differently but with the same meaning is not a new time.
func (tt *Timetable) Apply(t reeve.Timer, q reeve.ScheduleRequest, now time.Time) (reeve.Timer, []time.Time, error) {
	if (q.CadenceType == "") != (q.CadenceValue == "") {
		return t, nil, &reeve.Error{Code: reeve.Validation,
			Message: "cadence_type and cadence_value must be set together",
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "one is set without the other",
				Expected: "both or neither"}}}
	}
	if err := q.Validate(); err != nil {
		return t, nil, err
	}
	before := t
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
	hasTime := q.CadenceType != "" || q.Timezone != ""
	isSame := hasTime && tt.hasSameTimes(t, before)
	// Keep the value as the user wrote it before. Exception: only one of the two has an offset, because a later change
	// of the zone would move the other.
	if isSame && t.Zone == before.Zone && (t.Kind != KindOnce || isInstant(t.Value) == isInstant(before.Value)) {
		t.Value = before.Value
	}
	isRetimed := hasTime && !isSame
	switch {
	case q.Status == string(reeve.TimerPaused) && t.State == reeve.TimerCompleted && !isRetimed:
		return t, nil, reeve.Errorf(reeve.Conflict, "the schedule has completed and cannot be paused").
			Hintf("set a new time with cadence_type and cadence_value")
	case q.Status == string(reeve.TimerPaused):
		t.State, t.NextAt = reeve.TimerPaused, nil
	case q.Status == string(reeve.TimerActive):
		isRetimed = isRetimed || t.State != reeve.TimerActive
		t.State, t.Failures = reeve.TimerActive, 0
	case isRetimed && t.State != reeve.TimerActive && t.State != reeve.TimerPaused:
		t.State, t.Failures = reeve.TimerActive, 0
	}
	if !isRetimed {
		return t, nil, nil
	}
	planned, upcoming, err := tt.Plan(t, now)
	if err != nil {
		return t, nil, err
	}
	if t.State != reeve.TimerActive { // the plan was only a check
		t.Zone = planned.Zone
		return t, nil, nil
	}
	return planned, upcoming, nil
}

// hasSameTimes reports whether two timers fire at the same times.
func (tt *Timetable) hasSameTimes(a, b reeve.Timer) bool {
	c, err := tt.zones.ParseCadence(a.Kind, a.Value, a.Zone)
	if err != nil {
		return false
	}
	d, err := tt.zones.ParseCadence(b.Kind, b.Value, b.Zone)
	return err == nil && c.equal(d)
}

// firingsShown is the number of upcoming firings that a user is shown.
const firingsShown = 10

// Plan checks a timer's cadence against the limits. It returns the timer with its first firing set, and the first few
// firings.
func (tt *Timetable) Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error) {
	if t.Zone == "" {
		t.Zone = "UTC"
	}
	c, err := tt.zones.ParseCadence(t.Kind, t.Value, t.Zone)
	if err != nil {
		return t, nil, useRequestFieldNames(err)
	}
	if gap, repeats := c.MinInterval(); repeats && gap < tt.limits.MinInterval {
		return t, nil, &reeve.Error{Code: reeve.Validation,
			Message: fmt.Sprintf("the schedule would fire every %s, and the minimum is %s", gap, tt.limits.MinInterval),
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "is too frequent", Expected: "at least " +
				tt.limits.MinInterval.String() + " between firings"}}}
	}
	next := c.WithAnchor(now).Upcoming(now, firingsShown)
	if len(next) == 0 {
		return t, nil, &reeve.Error{Code: reeve.Validation,
			Message: "the schedule would never fire: its time has passed",
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "is in the past",
				Expected: "a time in the future"}}}
	}
	t.NextAt = &next[0]
	return t, next, nil
}

// useRequestFieldNames renames the fields of a cadence error to those of a schedule request.
func useRequestFieldNames(err error) error {
	e := *reeve.AsError(err)
	e.Fields = slices.Clone(e.Fields)
	for i, f := range e.Fields {
		if name, ok := map[string]string{"/kind": "/cadence_type", "/value": "/cadence_value",
			"/zone": "/timezone"}[f.Path]; ok {
			e.Fields[i].Path = name
		}
	}
	return &e
}

// Upcoming returns the next firings of an active timer.
func (tt *Timetable) Upcoming(t reeve.Timer, now time.Time) []time.Time {
	c, err := tt.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil || t.NextAt == nil {
		return nil
	}
	return anchorAt(c, *t.NextAt).Upcoming(now, firingsShown)
}

// WhyDisabled returns the reason why a timer is disabled, or an empty string if it is not.
func (tt *Timetable) WhyDisabled(t reeve.Timer) string {
	if t.State != reeve.TimerDisabled {
		return ""
	}
	if _, err := tt.zones.ParseStored(t.Kind, t.Value, t.Zone); err != nil {
		return reeve.AsError(err).Message
	}
	if t.Failures == 0 {
		return "its cadence could not be read"
	}
	return fmt.Sprintf("it failed %d times in a row", t.Failures)
}
