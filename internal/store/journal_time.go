package store

import (
	"context"
	"strconv"
	"time"

	"reeve"
)

const timeColumns = `task_id, user_id, started_at, start_offset, ended_at, end_offset, note, source_id`

func scanTimeEntry(r scanner) (e reeve.TimeEntry, err error) {
	defer wrapCorrupt("time_entries", &e.ID, &err)
	h := head{to: &e.Record}
	var start, startOffset, end, endOffset int64
	if err := h.scan(r, &e.TaskID, &e.UserID, &start, &startOffset, &end, &endOffset, &e.Note,
		&e.SourceID); err != nil {
		return e, err
	}
	e.StartedAt = reeve.InOffset(start, startOffset)
	if end != 0 {
		t := reeve.InOffset(end, endOffset)
		e.EndedAt = &t
	}
	return e, nil
}

// offsetOf is a time's offset from UTC in seconds: what people's clocks showed.
func offsetOf(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

func (w *JournalWriter) putTimeEntry(ctx context.Context, e *reeve.TimeEntry, category string) error {
	end, endOffset, state := int64(0), int64(0), "time_entry.running"
	if e.EndedAt != nil {
		end, endOffset, state = e.EndedAt.UnixMilli(), offsetOf(*e.EndedAt), "time_entry.ended"
	}
	w.tell(reeve.KeyTimeEntry, category)
	w.emit(reeve.Subtype, state)
	w.emit(reeve.EntityID, e.TaskID)
	return w.put(ctx, "time_entries", timeColumns, &e.Record, e.TaskID, e.UserID, e.StartedAt.UnixMilli(),
		offsetOf(e.StartedAt), end, endOffset, e.Note, e.SourceID)
}

// TimeEntry reads a time entry of the user's own, and its task, even if that was deleted since.
func (r *JournalReader) TimeEntry(ctx context.Context, id string) (reeve.TimeEntry, reeve.Task, error) {
	e, ok, err := record(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, false)
	if err == nil && (!ok || e.UserID != r.who.User) {
		err = notFound("time entry", id)
	}
	if err != nil {
		return e, reeve.Task{}, err
	}
	t, _, err := record(ctx, r, scanTask, "tasks", taskColumns, e.TaskID, true)
	if err == nil {
		err = r.see(t.CategoryID)
	}
	return e, t, err
}

// TimeFilter chooses time entries.
type TimeFilter struct {
	Task    string
	From    time.Time // those that end after this
	To      time.Time // those that start before this
	Running bool      // only the running one
	Before  Cursor
	Limit   int
}

// TimeEntries reads a page of the user's time entries, the last begun first.
func (r *JournalReader) TimeEntries(ctx context.Context, f TimeFilter) ([]reeve.TimeEntry, error) {
	var c clause
	c.add("workspace_id = ? AND user_id = ? AND deleted_at = 0", r.who.Workspace, r.who.User)
	if !r.who.All {
		in := clause{args: c.args, parts: []string{"t.id = time_entries.task_id"}}
		in.among("t.category_id", r.who.Categories)
		c.args = in.args
		c.parts = append(c.parts, "EXISTS (SELECT 1 FROM tasks t WHERE "+in.String()+")")
	}
	if f.Task != "" {
		c.add("task_id = ?", f.Task)
	}
	if !f.From.IsZero() {
		c.add("(ended_at > ? OR ended_at = 0)", f.From.UnixMilli())
	}
	if !f.To.IsZero() {
		c.add("started_at < ?", f.To.UnixMilli())
	}
	if f.Running {
		c.add("ended_at = 0")
	}
	if f.Before.ID != "" {
		c.add("(started_at < ? OR (started_at = ? AND id < ?))", f.Before.At, f.Before.At, f.Before.ID)
	}
	c.args = append(c.args, f.Limit)
	return all(ctx, r.snap, scanTimeEntry, `SELECT `+recordColumns+timeColumns+` FROM time_entries WHERE `+c.String()+
		` ORDER BY started_at DESC, id DESC LIMIT $`+strconv.Itoa(len(c.args)), c.args...)
}

// span checks when time was spent: it has an end, the end is behind its start, and neither is in the future.
func (r *JournalReader) span(start, end string) (from, to time.Time, err error) {
	if from, err = reeve.ParseTimeWithOffset("/started_at", start); err != nil {
		return from, to, err
	}
	if to, err = reeve.ParseTimeWithOffset("/ended_at", end); err != nil {
		return from, to, err
	}
	return from, to, r.checkSpan(from, to)
}

func (r *JournalReader) checkSpan(from, to time.Time) error {
	if !to.After(from) {
		return reeve.InvalidField("/ended_at", "is not after started_at", "a time after started_at")
	}
	if to.After(r.snap.now) {
		return reeve.InvalidField("/ended_at", "is in the future", "a time that has passed")
	}
	return nil
}

// free refuses a span in which the user has other time. A running timer takes all time from its start on.
func (w *JournalWriter) free(ctx context.Context, from, to time.Time, except string) error {
	other, taken, err := one(ctx, w.snap, value[string], `SELECT id FROM time_entries WHERE workspace_id = $1 AND user_id = $2 AND deleted_at = 0
		AND started_at < $3 AND (ended_at > $4 OR ended_at = 0) AND id <> $5 ORDER BY started_at, id LIMIT 1`,
		w.who.Workspace, w.who.User, to.UnixMilli(), from.UnixMilli(), except)
	if err == nil && taken {
		err = &reeve.Error{Code: reeve.Conflict, Message: "the time overlaps that of " + other,
			Hint: "change the times, or the other entry",
			Fields: []reeve.Field{{Path: "/started_at", Message: "overlaps " + other,
				Expected: "a span in which the user has no other time entry"}}}
	}
	return err
}

// CreateTimeEntry records time that was spent.
func (w *JournalWriter) CreateTimeEntry(ctx context.Context, in reeve.TimeDraft) (e reeve.TimeEntry, err error) {
	t, err := w.Task(ctx, in.TaskID)
	if err != nil {
		return e, err
	}
	from, to, err := w.span(in.StartedAt, in.EndedAt)
	if err != nil {
		return e, err
	}
	if err := reeve.CheckText("/description", in.Note); err != nil {
		return e, err
	}
	if err := w.free(ctx, from, to, ""); err != nil {
		return e, err
	}
	e = reeve.TimeEntry{TaskID: t.ID, UserID: w.who.User, StartedAt: from, EndedAt: &to, Note: in.Note,
		SourceID: in.SourceID}
	e.ID = w.newID(reeve.PrefixTimeEntry)
	return e, w.putTimeEntry(ctx, &e, t.CategoryID)
}

// UpdateTimeEntry changes a time entry. A running one can be annotated and its start corrected; it is ended by stopping
// it.
func (w *JournalWriter) UpdateTimeEntry(ctx context.Context, id string,
	in reeve.TimeChange) (e reeve.TimeEntry, err error) {
	e, t, err := w.TimeEntry(ctx, id)
	if err != nil {
		return e, err
	}
	was := e
	if in.Note != nil {
		if err := reeve.CheckText("/description", *in.Note); err != nil {
			return e, err
		}
		e.Note = *in.Note
	}
	if in.StartedAt != nil {
		if e.StartedAt, err = reeve.ParseTimeWithOffset("/started_at", *in.StartedAt); err != nil {
			return e, err
		}
	}
	if in.EndedAt != nil {
		if e.EndedAt == nil {
			return e, reeve.InvalidField("/ended_at", "is not set while the timer runs", "stop the timer first")
		}
		end, err := reeve.ParseTimeWithOffset("/ended_at", *in.EndedAt)
		if err != nil {
			return e, err
		}
		e.EndedAt = &end
	}
	if in.StartedAt != nil || in.EndedAt != nil {
		if err := w.checkTimes(ctx, e); err != nil {
			return e, err
		}
	}
	if sameTimes(e, was) && e.Note == was.Note {
		return was, nil
	}
	return e, w.putTimeEntry(ctx, &e, t.CategoryID)
}

// sameTimes tells whether two entries span the same time, as the same clocks showed it.
func sameTimes(a, b reeve.TimeEntry) bool {
	same := func(x, y time.Time) bool { return x.Equal(y) && offsetOf(x) == offsetOf(y) }
	return same(a.StartedAt, b.StartedAt) && (a.EndedAt == nil) == (b.EndedAt == nil) &&
		(a.EndedAt == nil || same(*a.EndedAt, *b.EndedAt))
}

func (w *JournalWriter) checkTimes(ctx context.Context, e reeve.TimeEntry) error {
	to := w.tx.now
	if e.EndedAt != nil {
		to = *e.EndedAt
		if err := w.checkSpan(e.StartedAt, to); err != nil {
			return err
		}
	} else if e.StartedAt.After(to) {
		return reeve.InvalidField("/started_at", "is in the future", "a time that has passed")
	}
	return w.free(ctx, e.StartedAt, to, e.ID)
}

// DeleteTimeEntry removes a time entry.
func (w *JournalWriter) DeleteTimeEntry(ctx context.Context, id string) error {
	e, t, err := w.TimeEntry(ctx, id)
	if err != nil {
		return err
	}
	w.remove(&e.Record)
	return w.putTimeEntry(ctx, &e, t.CategoryID)
}
