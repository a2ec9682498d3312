package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// scheduleHandlers serves schedules.
type scheduleHandlers struct {
	db        *store.DB
	timetable *wake.Timetable
	queue     *wake.Queue
	announcer changeAnnouncer
}

func (h *scheduleHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Agent  string           `query:"agent" maxLength:"128" doc:"Agent id or name"`
	Name   string           `query:"name" maxLength:"200" doc:"Part of the schedule's name"`
	Status reeve.TimerState `query:"status" enum:"active,paused,completed,disabled"`
	Offset int              `query:"offset" minimum:"0" maximum:"100000"`
	Limit  int              `query:"limit" minimum:"1" maximum:"500" default:"50"`
}) (*body[api.ScheduleList], error) {
	out := &body[api.ScheduleList]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		f := store.TimerFilter{VisibleTo: visibleUser(who), Name: in.Name, State: in.Status, Offset: in.Offset,
			Limit: in.Limit}
		if in.Agent != "" {
			a, err := snap.Agents().GetAgent(ctx, who.Workspace, in.Agent)
			if err != nil {
				return err
			}
			f.Agent = a.ID
		}
		list, total, err := snap.Queue().ListTimers(ctx, who.Workspace, f)
		if err != nil {
			return err
		}
		out.Body.Schedules, out.Body.Total = make([]api.ListedSchedule, len(list)), total
		for i, t := range list {
			reach, err := h.getReach(ctx, snap, t)
			if err != nil {
				return err
			}
			out.Body.Schedules[i] = api.ListedSchedule{Timer: t, Reach: reach}
		}
		return nil
	})
}

func (h *scheduleHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[api.Schedule], error) {
	out := &body[api.Schedule]{}
	return out, h.db.View(ctx, func(snap *store.Snap) error {
		t, err := getVisibleTimer(ctx, snap.Queue(), who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Timer, out.Body.Why = t, h.timetable.WhyDisabled(t)
		if out.Body.Reach, err = h.getReach(ctx, snap, t); err != nil {
			return err
		}
		if t.State == reeve.TimerActive {
			out.Body.Upcoming = h.timetable.Upcoming(t, snap.Now())
		}
		missed, err := snap.Queue().ListMissed(ctx, t.ID, 20)
		for _, at := range missed {
			out.Body.MissedAt = append(out.Body.MissedAt, reeve.FromMillis(at))
		}
		return err
	})
}

// preview returns when a schedule would fire, without creating it.
func (h *scheduleHandlers) preview(ctx context.Context, _ reeve.Principal, in *struct {
	Scoped
	CadenceType  string `query:"cadence_type" required:"true" enum:"cron,once,interval"`
	CadenceValue string `query:"cadence_value" required:"true" minLength:"1" maxLength:"200"`
	Timezone     string `query:"timezone" maxLength:"64" doc:"IANA time zone. Default: UTC"`
}) (*body[api.SchedulePreview], error) {
	out := &body[api.SchedulePreview]{}
	return out, h.db.View(ctx, func(snap *store.Snap) (err error) {
		t := reeve.Timer{Kind: in.CadenceType, Value: in.CadenceValue, Zone: in.Timezone}
		t, out.Body.Upcoming, err = h.timetable.Plan(t, snap.Now())
		out.Body.Timezone = t.Zone
		return err
	})
}

func (h *scheduleHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ScheduleRequest
}) (*body[api.Schedule], error) {
	out := &body[api.Schedule]{}
	err := h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Body.Agent)
		if err == nil {
			err = a.CheckWakes(reeve.ReasonTimer)
		}
		if err != nil {
			return nil, err
		}
		if in.Body.CadenceType == "" {
			return nil, &reeve.Error{Code: reeve.Validation, Message: "a schedule needs a cadence",
				Fields: []reeve.Field{{Path: "/cadence_type", Message: "is missing",
					Expected: "cron, once or interval"}}}
		}
		t := reeve.Timer{ID: tx.NewID(reeve.PrefixSchedule), WorkspaceID: who.Workspace, AgentID: a.ID,
			UserID: who.User, Name: "schedule", Misfire: reeve.CatchUpOnce,
			Notify: reeve.NotifyAlways, State: reeve.TimerActive, CreatedAt: tx.Now(), UpdatedAt: tx.Now()}
		if t, out.Body.Upcoming, err = h.timetable.Apply(t, in.Body, tx.Now()); err != nil {
			return nil, err
		}
		if err := h.timetable.CheckScheduleCount(ctx, tx, t); err != nil {
			return nil, err
		}
		out.Body.Timer = t
		if err := tx.Queue().PutTimer(ctx, t); err != nil {
			return nil, err
		}
		out.Body.Reach = newScheduleReach(t, a)
		if err := recordTimerChange(ctx, tx, who, nil, &t); err != nil {
			return nil, err
		}
		return t.Tokens(), tx.Ledger().SaveResponse(ctx, out.Body)
	})
	if err == nil {
		h.queue.Wakeup()
	}
	return out, err
}

func (h *scheduleHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ScheduleRequest
}) (*body[api.Schedule], error) {
	out := &body[api.Schedule]{}
	err := h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		t, err := getVisibleTimer(ctx, tx.Queue(), who, in.ID)
		if err != nil {
			return nil, err
		}
		old := t
		if in.Body.Agent != "" {
			a, err := tx.Agents().GetAgent(ctx, who.Workspace, in.Body.Agent)
			if err == nil && a.ID != t.AgentID {
				err = a.CheckWakes(reeve.ReasonTimer)
			}
			if err != nil {
				return nil, err
			}
			t.AgentID = a.ID
		}
		if t, out.Body.Upcoming, err = h.timetable.ApplyToExisting(ctx, tx, t, in.Body); err != nil {
			return nil, err
		}
		out.Body.Timer = t
		if out.Body.Reach, err = h.getReach(ctx, &tx.Snap, t); err != nil || t.Equal(old) {
			return nil, err
		}
		out.Body.UpdatedAt = tx.Now()
		if err := recordTimerChange(ctx, tx, who, &old, &t); err != nil {
			return nil, err
		}
		return t.Tokens(), tx.Queue().PutTimer(ctx, t)
	})
	if err == nil {
		h.queue.Wakeup()
	}
	return out, err
}

func (h *scheduleHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		t, err := getVisibleTimer(ctx, tx.Queue(), who, in.ID)
		if err != nil {
			return nil, err
		}
		if err := recordTimerChange(ctx, tx, who, &t, nil); err != nil {
			return nil, err
		}
		return t.Tokens(), tx.Queue().DeleteTimer(ctx, who.Workspace, t.ID)
	})
}

func (h *scheduleHandlers) run(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Wake], error) {
	out := &body[reeve.Wake]{}
	err := h.db.Update(ctx, func(tx *store.Tx) error {
		t, err := getVisibleTimer(ctx, tx.Queue(), who, in.ID)
		if err != nil {
			return err
		}
		if out.Body, err = h.queue.Fire(ctx, tx, t); err != nil {
			return err
		}
		return tx.Ledger().SaveResponse(ctx, out.Body)
	})
	if err == nil {
		h.queue.Wakeup()
	}
	return out, err
}

// recordTimerChange records what a person changed of a schedule.
func recordTimerChange(ctx context.Context, tx *store.Tx, who reeve.Principal, before, after *reeve.Timer) error {
	change, err := store.DiffTimer(before, after)
	if err != nil {
		return err
	}
	return tx.Queue().InsertPersonChanges(ctx, who.Workspace, who.User, change)
}

// newScheduleReach reports whether a schedule of an agent can fire.
func newScheduleReach(t reeve.Timer, a reeve.Agent) api.Reach {
	why := a.WhyNotWoken(reeve.ReasonTimer)
	if t.State != reeve.TimerActive {
		why = "the schedule is " + string(t.State)
	}
	return api.Reach{CanFire: why == "", WhyNot: why}
}

// getReach is newScheduleReach for the schedule's agent.
func (h *scheduleHandlers) getReach(ctx context.Context, snap *store.Snap, t reeve.Timer) (api.Reach, error) {
	a, found, err := snap.Agents().FindAgent(ctx, t.WorkspaceID, t.AgentID)
	if err == nil && !found {
		return api.Reach{WhyNot: "the agent is gone"}, nil
	}
	return newScheduleReach(t, a), err
}

func (h *scheduleHandlers) listRuns(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Page
}) (*body[api.RunList], error) {
	if err := checkCursor(in.Cursor); err != nil {
		return nil, err
	}
	out := &body[api.RunList]{}
	err := h.db.View(ctx, func(snap *store.Snap) error {
		t, err := getVisibleTimer(ctx, snap.Queue(), who, in.ID)
		if err != nil {
			return err
		}
		out.Body.Runs, err = snap.Runs().
			ListRuns(ctx, who.Workspace, store.RunFilter{ReasonID: t.ID, VisibleTo: visibleUser(who), Before: in.Cursor,
				Limit: in.Limit})
		return err
	})
	if n := len(out.Body.Runs); n == in.Limit {
		out.Body.Next = out.Body.Runs[n-1].ID
	}
	return out, err
}
