package wake

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// fireTimers queues wakes for due timers and sets their next firings. It reports whether more timers may be due.
func (r *Scheduler) fireTimers(ctx context.Context, tx *store.Tx, due []reeve.Timer) (more bool, err error) {
	if len(due) == 0 {
		return false, nil
	}
	agents := make([]string, len(due))
	for i, t := range due {
		agents[i] = t.AgentID
	}
	automations, err := tx.Automations().ScriptAgents(ctx, agents)
	if err != nil {
		return false, err
	}
	var wakes []reeve.Wake
	for i, t := range due {
		var fired []reeve.Wake
		if due[i], fired, err = r.fireTimer(ctx, tx, t, automations[t.AgentID]); err != nil {
			return false, err
		}
		wakes = append(wakes, fired...)
	}
	if err := tx.Queue().InsertWakes(ctx, wakes); err != nil {
		return false, err
	}
	if err := signalFirings(ctx, tx, due, wakes); err != nil {
		return false, err
	}
	return len(due) == maxTimersPerStep, tx.Queue().AdvanceTimers(ctx, due)
}

// anchorAt returns a cadence whose interval, if it has one, fires at the given instant.
func anchorAt(c Cadence, at time.Time) Cadence {
	if gap, ok := c.MinInterval(); ok && c.Kind() == KindInterval {
		return c.WithAnchor(at.Add(-gap))
	}
	return c
}

// fireTimer handles all instants of a timer from NextAt up to now. It returns the updated timer and the wakes to queue.
// NextAt comes from the row and not from the clock. Thus setting the clock back repeats no firing, and setting it
// forward records the skipped firings as missed.
//
// An automation gets a wake in the lane of the agent even if the timer is a schedule, so that it never runs twice at
// the same time.
func (r *Scheduler) fireTimer(ctx context.Context, tx *store.Tx, t reeve.Timer,
	isAutomation bool) (updated reeve.Timer, wakes []reeve.Wake, err error) {
	c, err := r.Timetable.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil { // for example a zone that a newer tzdata no longer has
		t.State, t.NextAt = reeve.TimerDisabled, nil
		return t, nil, r.reportDisabledTimer(ctx, tx, t, reeve.AsError(err))
	}
	d := anchorAt(c, *t.NextAt).Due(t.NextAt.Add(-time.Millisecond), tx.Now(), t.Misfire)
	for _, f := range d.Run {
		w := newFiring(t, f.At, isAutomation)
		if f.CatchUp {
			w.Reason = reeve.ReasonCatchup
		}
		wakes = append(wakes, w)
		t.LastAt = &f.At
	}
	for _, at := range d.Missed {
		if err := tx.Queue().InsertMissed(ctx, t.ID, reeve.Millis(at), firingKey(t, at)); err != nil {
			return t, nil, err
		}
	}
	t.Missed += len(d.Missed)
	if t.NextAt = &d.Next; d.Next.IsZero() {
		t.NextAt, t.State = nil, reeve.TimerCompleted
	}
	return t, wakes, nil
}

// newFiring returns the wake of a timer that fires at an instant.
func newFiring(t reeve.Timer, at time.Time, isAutomation bool) reeve.Wake {
	w := reeve.Wake{RunKey: firingKey(t, at), WorkspaceID: t.WorkspaceID, AgentID: t.AgentID,
		Reason: reeve.ReasonTimer, ReasonID: t.ID, UserID: t.UserID,
		SessionID: store.TimerSession + t.ID, Input: t.Goal, ScheduledAt: &at, DueAt: at,
		State:      reeve.WakeQueued,
		OnBehalfOf: t.OnBehalfOf}
	if t.Goal != "" && !isAutomation {
		w.SessionID = store.ScheduleSession + t.ID
	}
	return w
}

// firingKey returns the run key of a firing. It is the same on every server and after every crash.
func firingKey(t reeve.Timer, at time.Time) string {
	return reeve.DeriveID("wake", string(reeve.ReasonTimer), t.AgentID, t.ID, fmt.Sprint(reeve.Millis(at)))
}
