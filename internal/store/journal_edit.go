package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// TaskEdit is a change of one task that was worked out and not made.
type TaskEdit struct {
	Draft
	Before reeve.Task
	After  reeve.Task
	Made   reeve.TaskChange // what it really changes, as it will be
	Undo   reeve.TaskChange // takes the change back
	lost   []string         // labels that the new category does not know
	back   []string         // labels that an undo puts on again
}

// EditTask works out a change of a task. A task that goes to another category loses the labels that belong to the old
// one.
func (r *JournalReader) EditTask(ctx context.Context, id string, in reeve.TaskChange) (e TaskEdit, err error) {
	if e.Before, err = r.Task(ctx, id); err != nil {
		return e, err
	}
	e.After = e.Before
	e.After.LabelIDs = slices.Clone(e.Before.LabelIDs)
	e.rest(e.Before.Record)
	was, is := &e.Before, &e.After
	if in.Title != nil { // as it would be kept: spaces around it are no change
		in.Title = new(strings.TrimSpace(*in.Title))
	}
	is.Title, e.Made.Title, e.Undo.Title = edited(&e.Draft, "title", was.Title, in.Title)
	is.Description, e.Made.Description, e.Undo.Description = edited(&e.Draft, "description", was.Description,
		in.Description)
	is.Status, e.Made.Status, e.Undo.Status = edited(&e.Draft, "status", was.Status, in.Status)
	is.Priority, e.Made.Priority, e.Undo.Priority = edited(&e.Draft, "priority", was.Priority, in.Priority)
	is.EstimateMinutes, e.Made.EstimateMinutes, e.Undo.EstimateMinutes = edited(&e.Draft, "estimate in minutes",
		was.EstimateMinutes, in.EstimateMinutes)
	is.DueDate, e.Made.DueDate, e.Undo.DueDate = edited(&e.Draft, "due date", was.DueDate, in.DueDate)
	is.Language, e.Made.Language, e.Undo.Language = edited(&e.Draft, "language", was.Language, in.Language)
	if err := is.Validate(); err != nil {
		return e, err
	}
	if in.CategoryID != nil && *in.CategoryID != was.CategoryID {
		if err := r.moveTask(ctx, &e, *in.CategoryID); err != nil {
			return e, err
		}
	}
	rest := reeve.TaskRemainder{LabelIDs: e.lost}
	if was.ClosedAt != nil && !is.Status.Closed() {
		rest.ClosedAt = was.ClosedAt.Format(time.RFC3339Nano)
	}
	if len(rest.LabelIDs) > 0 || rest.ClosedAt != "" {
		e.Undo.Rest = &rest
	}
	return e, r.restoreTask(ctx, &e, in.Rest)
}

// restoreTask works out what an undo puts back besides fields. A label that is gone, or that the task can have no more,
// cannot be put back, and then nothing is.
func (r *JournalReader) restoreTask(ctx context.Context, e *TaskEdit, rest *reeve.TaskRemainder) error {
	if rest == nil {
		return nil
	}
	if err := reeve.CheckDistinct("/restore/label_ids", rest.LabelIDs); err != nil {
		return err
	}
	for _, id := range rest.LabelIDs {
		l, ok, err := record(ctx, r, scanLabel, "labels", labelColumns, id, false)
		switch {
		case err != nil:
			return err
		case !ok || l.CategoryID != "" && l.CategoryID != e.After.CategoryID:
			return reeve.Errorf(reeve.Stale, "the label %s cannot be put back on the task", id).
				Hintf("look at what is there now, and change that; nothing was taken back")
		case !slices.Contains(e.After.LabelIDs, id):
			e.say("label %q (%s) is put back", l.Name, l.ID)
			e.back = append(e.back, id)
		}
	}
	if rest.ClosedAt == "" || e.Before.Status.Closed() || !e.After.Status.Closed() {
		return nil
	}
	at, err := reeve.ParseTimeWithOffset("/restore/closed_at", rest.ClosedAt)
	if at = at.UTC(); at.After(r.snap.now) {
		at = r.snap.now
	}
	e.After.ClosedAt = &at
	return err
}

// NewValues is what the edit leaves, and what an undo of it must find: what was changed, and all labels of the task
// where some were taken off or put on with that.
func (e *TaskEdit) NewValues() any { return e.told(e.Made, e.After.LabelIDs) }

// OldValues is what was there before, in the same words.
func (e *TaskEdit) OldValues() any { return e.told(e.Undo, e.Before.LabelIDs) }

func (e *TaskEdit) told(c reeve.TaskChange, labels []string) any {
	out := struct {
		reeve.TaskChange
		LabelIDs []string `json:"label_ids,omitempty"`
	}{TaskChange: c}
	if len(e.lost)+len(e.back) > 0 {
		out.LabelIDs = slices.Sorted(slices.Values(labels))
	}
	return out
}

// edited gives a field's new value and, where it differs, the change and what takes it back.
func edited[T comparable](d *Draft, name string, was T, want *T) (is T, made, undo *T) {
	if want == nil || *want == was {
		return was, nil, nil
	}
	d.say("%s: %v → %v", name, shown(was), shown(*want))
	return *want, want, &was
}

// shown writes a value of a preview so that where it ends is seen.
func shown(v any) any {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return v
}

func (r *JournalReader) moveTask(ctx context.Context, e *TaskEdit, to string) error {
	dest, err := r.Category(ctx, to)
	if err != nil {
		return err
	}
	from, _, err := record(ctx, r, scanCategory, "categories", categoryColumns, e.Before.CategoryID, true)
	if err != nil {
		return err
	}
	e.rest(dest.Record)
	e.say("category: %q (%s) → %q (%s), with its checklists and time entries", from.Name, e.Before.CategoryID,
		dest.Name, dest.ID)
	e.After.CategoryID, e.Made.CategoryID, e.Undo.CategoryID = dest.ID, &dest.ID, &e.Before.CategoryID
	for _, id := range e.Before.LabelIDs {
		l, ok, err := record(ctx, r, scanLabel, "labels", labelColumns, id, false)
		if err != nil {
			return err
		}
		if ok && l.CategoryID != "" && l.CategoryID != dest.ID {
			e.say("label %q (%s) is taken off: it belongs to the old category", l.Name, l.ID)
			e.lost = append(e.lost, l.ID)
		}
	}
	return nil
}

// IsNoop tells whether the edit changes nothing.
func (e *TaskEdit) IsNoop() bool { return len(e.lines) == 0 }

// UpdateTask changes a task, if base is empty or still holds.
func (w *JournalWriter) UpdateTask(ctx context.Context, id string, in reeve.TaskChange, base string) (TaskEdit, error) {
	e, err := w.EditTask(ctx, id, in)
	if err == nil {
		err = e.CheckBase(base)
	}
	if err != nil || e.IsNoop() {
		return e, err
	}
	if err := w.setLabels(ctx, &e.After, reeve.LabelAssignment{Add: e.back, Remove: e.lost}); err != nil {
		return e, err
	}
	w.tell(reeve.KeyTask, e.Before.CategoryID)
	return e, w.putTask(ctx, &e.After)
}
