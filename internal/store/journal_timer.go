package store

import (
	"context"
	"time"

	"reeve"
)

// RunningTimer returns the user's running timer. It returns false if there is none. It ignores the scope, because a
// user has one timer in all categories.
func (r *JournalReader) RunningTimer(ctx context.Context) (reeve.TimeEntry, bool, error) {
	return queryOne(ctx, r.snap, scanTimeEntry, `SELECT `+recordColumns+timeColumns+` FROM time_entries
		WHERE workspace_id = $1 AND user_id = $2 AND deleted_at = 0
		AND ended_at = 0 ORDER BY started_at, id LIMIT 1`, r.scope.Workspace, r.scope.User)
}

// StartTimer starts a timer on a task.
func (w *JournalWriter) StartTimer(ctx context.Context, in reeve.TimerStart) (e reeve.TimeEntry, err error) {
	t, err := w.Task(ctx, in.TaskID)
	if err != nil {
		return e, err
	}
	if err := reeve.CheckText("/description", in.Note); err != nil {
		return e, err
	}
	running, ok, err := w.RunningTimer(ctx)
	if err != nil {
		return e, err
	}
	if ok {
		return e, reeve.Errorf(reeve.Conflict, "timer %s is running", running.ID).
			Hintf("a user can have one running timer; stop it first")
	}
	// the clock may have been set back
	if err := w.checkNoOverlap(ctx, w.tx.now, w.tx.now.Add(time.Millisecond), ""); err != nil {
		return e, err
	}
	e = reeve.TimeEntry{TaskID: t.ID, UserID: w.scope.User, StartedAt: w.tx.now, Note: in.Note}
	e.ID = w.newID(reeve.PrefixTimeEntry)
	return e, w.putTimeEntry(ctx, &e, t.CategoryID)
}

// findTimerToStop returns the given time entry, or the running timer if none is given.
func (r *JournalReader) findTimerToStop(ctx context.Context,
	in reeve.TimerStop) (e reeve.TimeEntry, t reeve.Task, err error) {
	id := in.TimeEntryID
	if id == "" {
		running, ok, err := r.RunningTimer(ctx)
		if err != nil {
			return e, t, err
		}
		if !ok {
			return e, t, reeve.Errorf(reeve.Conflict, "no timer is running")
		}
		id = running.ID
	}
	return r.TimeEntry(ctx, id)
}

// StopTimer stops a timer. It does nothing to a stopped timer except updating its note. The entry lasts at least a
// millisecond, even if the clock was set back.
func (w *JournalWriter) StopTimer(ctx context.Context, in reeve.TimerStop) (e reeve.TimeEntry, err error) {
	e, t, err := w.findTimerToStop(ctx, in)
	if err != nil {
		return e, err
	}
	if err := reeve.CheckText("/description", in.Note); err != nil {
		return e, err
	}
	if e.EndedAt != nil && (in.Note == "" || in.Note == e.Note) {
		return e, nil
	}
	if in.Note != "" {
		e.Note = in.Note
	}
	if e.EndedAt != nil {
		return e, w.putTimeEntry(ctx, &e, t.CategoryID)
	}
	end := w.tx.now
	if !end.After(e.StartedAt) {
		end = e.StartedAt.Add(time.Millisecond)
	}
	e.EndedAt = &end
	return e, w.putTimeEntry(ctx, &e, t.CategoryID)
}
