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

// Planner knows what schedules may be, and when timers fire.
type Planner struct {
	limits Limits
	zones  Zones
}

// NewPlanner makes a planner that keeps schedules within limits.
func NewPlanner(limits Limits) *Planner { return &Planner{limits: limits.withDefaults()} }

// CheckScheduleCount refuses one schedule too many. Those that are over do not count.
func (p *Planner) CheckScheduleCount(ctx context.Context, tx *store.Tx, t reeve.Timer) error {
	n, err := tx.Queue().CountTimers(ctx, t.WorkspaceID, t.UserID)
	if err == nil && n >= p.limits.PerUser {
		return reeve.Errorf(reeve.Conflict, "the user has %d schedules already, and %d are allowed", n,
			p.limits.PerUser).Hintf("delete one first")
	}
	return err
}

// ApplyToExisting is Change for a timer that is there: one that is over and lives again counts like a new one.
func (p *Planner) ApplyToExisting(ctx context.Context, tx *store.Tx, t reeve.Timer,
	q reeve.ScheduleRequest) (reeve.Timer, []time.Time, error) {
	is, upcoming, err := p.Apply(t, q, tx.Now())
	if err == nil && t.State == reeve.TimerCompleted && is.State != reeve.TimerCompleted {
		err = p.CheckScheduleCount(ctx, tx, is)
	}
	return is, upcoming, err
}

// Apply applies what a request says to a timer, and plans it anew where its time changed. What is left out stays, and
// so a paused timer stays paused; one that was over or disabled lives again when it gets a new time. A time that is
// said again, in whatever words, changes nothing. It gives the next firings where they changed.
func (p *Planner) Apply(t reeve.Timer, q reeve.ScheduleRequest, now time.Time) (reeve.Timer, []time.Time, error) {
	if (q.CadenceType == "") != (q.CadenceValue == "") {
		return t, nil, &reeve.Error{Code: reeve.Validation, Message: "cadence_type and cadence_value belong together",
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "one is given without the other",
				Expected: "both or neither"}}}
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
	alike := timed && p.alike(t, was)
	// else it means another time when the zone changes
	if alike && t.Zone == was.Zone && (t.Kind != KindOnce || zoneless(t.Value) == zoneless(was.Value)) {
		t.Value = was.Value
	}
	retimed := timed && !alike
	switch {
	case q.Status == string(reeve.TimerPaused) && t.State == reeve.TimerCompleted && !retimed:
		return t, nil, reeve.Errorf(reeve.Conflict, "the schedule is over, and cannot be paused").
			Hintf("give it a new time with cadence_type and cadence_value")
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
	planned, upcoming, err := p.Plan(t, now)
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
func (p *Planner) alike(a, b reeve.Timer) bool {
	c, err := p.zones.ParseCadence(a.Kind, a.Value, a.Zone)
	if err != nil {
		return false
	}
	d, err := p.zones.ParseCadence(b.Kind, b.Value, b.Zone)
	return err == nil && c.same(d)
}

// firingsShown is how many firings a person is shown when a timer is made.
const firingsShown = 5

// Plan checks a timer's cadence against the limits, sets when it fires first, and gives the first few firings.
func (p *Planner) Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error) {
	if t.Zone == "" {
		t.Zone = "UTC"
	}
	c, err := p.zones.ParseCadence(t.Kind, t.Value, t.Zone)
	if err != nil {
		return t, nil, asInput(err)
	}
	if gap, repeats := c.MinInterval(); repeats && gap < p.limits.MinInterval {
		return t, nil, &reeve.Error{Code: reeve.Validation,
			Message: fmt.Sprintf("it would fire every %s; the shortest time allowed is %s", gap, p.limits.MinInterval),
			Fields: []reeve.Field{{Path: "/cadence_value", Message: "is too frequent", Expected: "at least " +
				p.limits.MinInterval.String() + " between firings"}}}
	}
	next := c.WithAnchor(now).Upcoming(now, firingsShown)
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
		if name, ok := map[string]string{"/kind": "/cadence_type", "/value": "/cadence_value",
			"/zone": "/timezone"}[f.Path]; ok {
			e.Fields[i].Path = name
		}
	}
	return &e
}

// Upcoming gives an active timer's next firings.
func (p *Planner) Upcoming(t reeve.Timer, now time.Time) []time.Time {
	c, err := p.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil || t.NextAt == nil {
		return nil
	}
	return anchored(c, *t.NextAt).Upcoming(now, firingsShown)
}

// WhyDisabled says why a timer is disabled; empty if it is not.
func (p *Planner) WhyDisabled(t reeve.Timer) string {
	if t.State != reeve.TimerDisabled {
		return ""
	}
	if _, err := p.zones.ParseStored(t.Kind, t.Value, t.Zone); err != nil {
		return reeve.AsError(err).Message
	}
	if t.Failures == 0 {
		return "its time could not be read"
	}
	return fmt.Sprintf("it failed %d times in a row", t.Failures)
}
