package wake

import (
	"context"
	"fmt"
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

// MostPerUser is how many schedules one user may have.
func (r *Room) MostPerUser() int { return r.Limits.PerUser }

// firingsShown is how many firings a person is shown when a timer is made.
const firingsShown = 5

// Plan checks a timer's cadence against the limits, sets when it fires first, and gives the first few firings.
func (r *Room) Plan(t reeve.Timer, now time.Time) (reeve.Timer, []time.Time, error) {
	c, err := r.zones.ParseCadence(t.Kind, t.Value, t.Zone)
	if err != nil {
		return t, nil, err
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
	t.NextAt, t.LastAt = &next[0], &now
	return t, next, nil
}

// fire queues a wake for each timer whose time has come, and sets its next time, in one transaction.
func (r *Room) fire(ctx context.Context, tx *store.Tx) error {
	due, err := tx.DueTimers(ctx, 100)
	if err != nil {
		return err
	}
	for _, t := range due {
		if err := r.fireOne(ctx, tx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *Room) fireOne(ctx context.Context, tx *store.Tx, t reeve.Timer) error {
	c, err := r.zones.ParseCadence(t.Kind, t.Value, t.Zone)
	if err != nil { // a zone that was known when it was made
		t.State, t.NextAt = reeve.TimerDisabled, nil
		return tx.PutTimer(ctx, t)
	}
	last := t.CreatedAt
	if t.LastAt != nil {
		last = *t.LastAt
	}
	d := c.Due(last, tx.Now(), Misfire{Policy: string(t.Misfire)})
	for _, f := range d.Run {
		w := reeve.Wake{RunKey: timerKey(t, f.At), WorkspaceID: t.WorkspaceID, AgentID: t.AgentID, Reason: reeve.ReasonTimer, ReasonID: t.ID, UserID: t.UserID,
			Input: t.Goal, ScheduledAt: &f.At, DueAt: tx.Now(), State: reeve.WakeQueued}
		if f.CatchUp {
			w.Reason = reeve.ReasonCatchup
		}
		if t.Goal != "" {
			w.SessionID = "schedule:" + t.ID // a goal is served by a run of its own
		}
		if _, err := tx.InsertWake(ctx, w); err != nil {
			return err
		}
		last = f.At
	}
	for _, at := range d.Missed {
		if err := tx.InsertMissed(ctx, t.ID, reeve.Millis(at), timerKey(t, at)); err != nil {
			return err
		}
		if at.After(last) {
			last = at
		}
	}
	t.Missed += len(d.Missed)
	t.LastAt = &last
	if t.NextAt = &d.Next; d.Next.IsZero() {
		t.NextAt, t.State = nil, reeve.TimerCompleted
	}
	return tx.PutTimer(ctx, t)
}

// timerKey is the run key of a firing: the same on every server and after every crash.
func timerKey(t reeve.Timer, at time.Time) string {
	return reeve.Key("wake", string(reeve.ReasonTimer), t.AgentID, t.ID, fmt.Sprint(reeve.Millis(at)))
}
