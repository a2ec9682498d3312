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
	h := recordScanner{record: &e.Record}
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

// utcOffset returns a time's offset from UTC in seconds. It is stored with the time, so that the local time is kept.
func utcOffset(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

func (w *JournalWriter) putTimeEntry(ctx context.Context, e *reeve.TimeEntry, category string) error {
	end, endOffset, state := int64(0), int64(0), "time_entry.running"
	if e.EndedAt != nil {
		end, endOffset, state = e.EndedAt.UnixMilli(), utcOffset(*e.EndedAt), "time_entry.ended"
	}
	w.emitChange(reeve.KeyTimeEntry, category)
	w.emit(reeve.Subtype, state)
	w.emit(reeve.EntityID, e.TaskID)
	return w.putRecord(ctx, "time_entries", timeColumns, &e.Record, e.TaskID, e.UserID, e.StartedAt.UnixMilli(),
		utcOffset(e.StartedAt), end, endOffset, e.Note, e.SourceID)
}

// TimeEntry returns a time entry of the user and its task, even if the task was deleted.
func (r *JournalReader) TimeEntry(ctx context.Context, id string) (reeve.TimeEntry, reeve.Task, error) {
	e, ok, err := findRecord(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, false)
	if err == nil && (!ok || e.UserID != r.scope.User) {
		err = notFound("time entry", id)
	}
	if err != nil {
		return e, reeve.Task{}, err
	}
	t, _, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, e.TaskID, true)
	if err == nil {
		err = r.useCategory(t.CategoryID)
	}
	return e, t, err
}

// TimeFilter selects time entries. Empty fields do not restrict the list.
type TimeFilter struct {
	Task    string
	From    time.Time // ends after this time
	To      time.Time // starts before this time
	Running bool      // only the running entry
	Before  Cursor
	Limit   int
}

// TimeEntries returns a page of the user's time entries, ordered from the latest start.
func (r *JournalReader) TimeEntries(ctx context.Context, f TimeFilter) ([]reeve.TimeEntry, error) {
	var c whereClause
	c.add("workspace_id = ? AND user_id = ? AND deleted_at = 0", r.scope.Workspace, r.scope.User)
	if !r.scope.All {
		in := whereClause{args: c.args, parts: []string{"t.id = time_entries.task_id"}}
		in.addIn("t.category_id", r.scope.Categories)
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
	return queryAll(ctx, r.snap, scanTimeEntry, `SELECT `+recordColumns+timeColumns+` FROM time_entries
		WHERE `+c.String()+
		` ORDER BY started_at DESC, id DESC LIMIT $`+strconv.Itoa(len(c.args)), c.args...)
}

// parseSpan parses the start and the end of a time entry. The end must be after the start and not in the future.
func (r *JournalReader) parseSpan(start, end string) (from, to time.Time, err error) {
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

// checkNoOverlap returns a Conflict if the user has another time entry in the span. A running timer occupies all time
// from its start.
func (w *JournalWriter) checkNoOverlap(ctx context.Context, from, to time.Time, except string) error {
	other, taken, err := queryOne(ctx, w.snap, scanValue[string], `SELECT id FROM time_entries WHERE workspace_id = $1
		AND user_id = $2 AND deleted_at = 0
		AND started_at < $3 AND (ended_at > $4 OR ended_at = 0) AND id <> $5 ORDER BY started_at, id LIMIT 1`,
		w.scope.Workspace, w.scope.User, to.UnixMilli(), from.UnixMilli(), except)
	if err == nil && taken {
		err = &reeve.Error{Code: reeve.Conflict, Message: "time overlaps time entry " + other,
			Hint: "change the times, or change the other entry",
			Fields: []reeve.Field{{Path: "/started_at", Message: "overlaps " + other,
				Expected: "a span in which the user has no other time entry"}}}
	}
	return err
}

// CreateTimeEntry creates a time entry that has ended.
func (w *JournalWriter) CreateTimeEntry(ctx context.Context, in reeve.TimeDraft) (e reeve.TimeEntry, err error) {
	t, err := w.Task(ctx, in.TaskID)
	if err != nil {
		return e, err
	}
	from, to, err := w.parseSpan(in.StartedAt, in.EndedAt)
	if err != nil {
		return e, err
	}
	if err := reeve.CheckText("/description", in.Note); err != nil {
		return e, err
	}
	if err := w.checkNoOverlap(ctx, from, to, ""); err != nil {
		return e, err
	}
	e = reeve.TimeEntry{TaskID: t.ID, UserID: w.scope.User, StartedAt: from, EndedAt: &to, Note: in.Note,
		SourceID: in.SourceID}
	e.ID = w.newID(reeve.PrefixTimeEntry)
	return e, w.putTimeEntry(ctx, &e, t.CategoryID)
}

// UpdateTimeEntry changes a time entry. The note and the start of a running entry can be changed; use StopTimer to end
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
			return e, reeve.InvalidField("/ended_at", "cannot be set while the timer runs", "stop the timer first")
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

// sameTimes reports whether two entries have the same times with the same offsets.
func sameTimes(a, b reeve.TimeEntry) bool {
	same := func(x, y time.Time) bool { return x.Equal(y) && utcOffset(x) == utcOffset(y) }
	return same(a.StartedAt, b.StartedAt) && (a.EndedAt == nil) == (b.EndedAt == nil) &&
		(a.EndedAt == nil || same(*a.EndedAt, *b.EndedAt))
}

// checkTimes checks the times of a changed entry.
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
	return w.checkNoOverlap(ctx, e.StartedAt, to, e.ID)
}

// DeleteTimeEntry deletes a time entry.
func (w *JournalWriter) DeleteTimeEntry(ctx context.Context, id string) error {
	e, t, err := w.TimeEntry(ctx, id)
	if err != nil {
		return err
	}
	w.markDeleted(&e.Record)
	return w.putTimeEntry(ctx, &e, t.CategoryID)
}
