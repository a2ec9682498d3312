package wake

import (
	"context"
	"fmt"
	"time"

	"reeve"
	"reeve/internal/store"
)

// fire queues a wake for each timer whose time has come, and sets its next time. It tells whether there may
// be more of them.
func (r *Scheduler) fire(ctx context.Context, tx *store.Tx, due []reeve.Timer) (more bool, err error) {
	if len(due) == 0 {
		return false, nil
	}
	agents := make([]string, len(due))
	for i, t := range due {
		agents[i] = t.AgentID
	}
	scripts, err := tx.Automations().ScriptAgents(ctx, agents)
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
	if err := tx.Queue().InsertWakes(ctx, wakes); err != nil {
		return false, err
	}
	return len(due) == mostTimers, tx.Queue().AdvanceTimers(ctx, due)
}

// anchored counts an interval so that an instant is one of its firings; other cadences know theirs.
func anchored(c Cadence, at time.Time) Cadence {
	if gap, ok := c.MinInterval(); ok && c.Kind() == KindInterval {
		return c.WithAnchor(at.Add(-gap))
	}
	return c
}

// fireOne deals with every instant from the one that the timer waits for up to now. That instant is in the row, and not
// worked out from the clock: put back, the clock repeats nothing, and put forward it skips nothing in silence. It gives
// the timer as it is then, and the wakes. An automation never runs beside itself, whatever the schedule.
func (r *Scheduler) fireOne(ctx context.Context, tx *store.Tx, t reeve.Timer,
	script bool) (is reeve.Timer, wakes []reeve.Wake, err error) {
	c, err := r.Planner.zones.ParseStored(t.Kind, t.Value, t.Zone)
	if err != nil { // a zone that was known when it was made
		t.State, t.NextAt = reeve.TimerDisabled, nil
		return t, nil, r.disable(ctx, tx, t, reeve.AsError(err))
	}
	d := anchored(c, *t.NextAt).Due(t.NextAt.Add(-time.Millisecond), tx.Now(), t.Misfire)
	for _, f := range d.Run {
		w := reeve.Wake{RunKey: timerKey(t, f.At), WorkspaceID: t.WorkspaceID, AgentID: t.AgentID,
			Reason: reeve.ReasonTimer, ReasonID: t.ID, UserID: t.UserID,
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
		if err := tx.Queue().InsertMissed(ctx, t.ID, reeve.Millis(at), timerKey(t, at)); err != nil {
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
