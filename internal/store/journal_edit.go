package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"reeve"
)

// TaskEdit is a drafted change of one task.
type TaskEdit struct {
	Draft
	Before         reeve.Task
	After          reeve.Task
	Changes        reeve.TaskChange // the fields that actually change, with their new values
	Undo           reeve.TaskChange // undoes the change
	removedLabels  []string         // labels that do not belong to the new category
	restoredLabels []string         // labels that an undo restores
}

// EditTask drafts a change of a task. A task that moves to another category loses the labels that belong to the old
// one.
func (r *JournalReader) EditTask(ctx context.Context, id string, in reeve.TaskChange) (e TaskEdit, err error) {
	if e.Before, err = r.Task(ctx, id); err != nil {
		return e, err
	}
	e.After = e.Before
	e.After.LabelIDs = slices.Clone(e.Before.LabelIDs)
	e.addBase(e.Before.Record)
	was, is := &e.Before, &e.After
	if in.Title != nil { // trimmed as it will be stored, so that spaces alone are not a change
		in.Title = new(strings.TrimSpace(*in.Title))
	}
	is.Title, e.Changes.Title, e.Undo.Title = editField(&e.Draft, "title", was.Title, in.Title)
	is.Description, e.Changes.Description, e.Undo.Description = editField(&e.Draft, "description", was.Description,
		in.Description)
	is.Status, e.Changes.Status, e.Undo.Status = editField(&e.Draft, "status", was.Status, in.Status)
	is.Priority, e.Changes.Priority, e.Undo.Priority = editField(&e.Draft, "priority", was.Priority, in.Priority)
	is.EstimateMinutes, e.Changes.EstimateMinutes, e.Undo.EstimateMinutes = editField(&e.Draft, "estimate in minutes",
		was.EstimateMinutes, in.EstimateMinutes)
	is.DueDate, e.Changes.DueDate, e.Undo.DueDate = editField(&e.Draft, "due date", was.DueDate, in.DueDate)
	is.Language, e.Changes.Language, e.Undo.Language = editField(&e.Draft, "language", was.Language, in.Language)
	if err := is.Validate(); err != nil {
		return e, err
	}
	if in.CategoryID != nil && *in.CategoryID != was.CategoryID {
		if err := r.changeCategory(ctx, &e, *in.CategoryID); err != nil {
			return e, err
		}
	}
	rest := reeve.TaskLostValues{LabelIDs: e.removedLabels}
	if was.ClosedAt != nil && !is.Status.IsClosed() {
		rest.ClosedAt = was.ClosedAt.Format(time.RFC3339Nano)
	}
	if len(rest.LabelIDs) > 0 || rest.ClosedAt != "" {
		e.Undo.LostValues = &rest
	}
	return e, r.restoreTask(ctx, &e, in.LostValues)
}

// restoreTask adds to a draft what an undo restores besides fields. It returns Stale if a label no longer exists or
// does not belong to the task's category.
func (r *JournalReader) restoreTask(ctx context.Context, e *TaskEdit, rest *reeve.TaskLostValues) error {
	if rest == nil {
		return nil
	}
	if err := reeve.CheckDistinct("/restore/label_ids", rest.LabelIDs); err != nil {
		return err
	}
	for _, id := range rest.LabelIDs {
		l, ok, err := findRecord(ctx, r, scanLabel, "labels", labelColumns, id, false)
		switch {
		case err != nil:
			return err
		case !ok || l.CategoryID != "" && l.CategoryID != e.After.CategoryID:
			return reeve.Errorf(reeve.Stale, "label %s cannot be restored on the task", id).
				Hintf("read the task and change it; nothing was undone")
		case !slices.Contains(e.After.LabelIDs, id):
			e.addLine("label %q (%s) is restored", l.Name, l.ID)
			e.restoredLabels = append(e.restoredLabels, id)
		}
	}
	if rest.ClosedAt == "" || e.Before.Status.IsClosed() || !e.After.Status.IsClosed() {
		return nil
	}
	at, err := reeve.ParseTimeWithOffset("/restore/closed_at", rest.ClosedAt)
	if at = at.UTC(); at.After(r.snap.now) {
		at = r.snap.now
	}
	e.After.ClosedAt = &at
	return err
}

// NewValues returns the changed fields after the edit, and all labels of the task if labels change. An undo checks that
// the task still has these values.
func (e *TaskEdit) NewValues() any { return e.values(e.Changes, e.After.LabelIDs) }

// OldValues returns the changed fields before the edit, in the same form as NewValues.
func (e *TaskEdit) OldValues() any { return e.values(e.Undo, e.Before.LabelIDs) }

func (e *TaskEdit) values(c reeve.TaskChange, labels []string) any {
	out := struct {
		reeve.TaskChange
		LabelIDs []string `json:"label_ids,omitempty"`
	}{TaskChange: c}
	if len(e.removedLabels)+len(e.restoredLabels) > 0 {
		out.LabelIDs = slices.Sorted(slices.Values(labels))
	}
	return out
}

// editField returns a field's new value. If it differs, it also returns the change and its undo, and describes the
// change in the draft.
func editField[T comparable](d *Draft, name string, was T, want *T) (is T, made, undo *T) {
	if want == nil || *want == was {
		return was, nil, nil
	}
	d.addLine("%s: %v → %v", name, quoteText(was), quoteText(*want))
	return *want, want, &was
}

// quoteText quotes a value if it is text, so that its end is visible.
func quoteText(v any) any {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return v
}

// changeCategory adds the move to another category to a draft.
func (r *JournalReader) changeCategory(ctx context.Context, e *TaskEdit, to string) error {
	dest, err := r.Category(ctx, to)
	if err != nil {
		return err
	}
	from, _, err := findRecord(ctx, r, scanCategory, "categories", categoryColumns, e.Before.CategoryID, true)
	if err != nil {
		return err
	}
	e.addBase(dest.Record)
	e.addLine("category: %q (%s) → %q (%s), with its checklists and time entries", from.Name, e.Before.CategoryID,
		dest.Name, dest.ID)
	e.After.CategoryID, e.Changes.CategoryID, e.Undo.CategoryID = dest.ID, &dest.ID, &e.Before.CategoryID
	for _, id := range e.Before.LabelIDs {
		l, ok, err := findRecord(ctx, r, scanLabel, "labels", labelColumns, id, false)
		if err != nil {
			return err
		}
		if ok && l.CategoryID != "" && l.CategoryID != dest.ID {
			e.addLine("label %q (%s) is removed because it belongs to the old category", l.Name, l.ID)
			e.removedLabels = append(e.removedLabels, l.ID)
		}
	}
	return nil
}

// IsNoop reports whether the edit changes nothing.
func (e *TaskEdit) IsNoop() bool { return len(e.lines) == 0 }

// UpdateTask changes a task. If base is not empty, it must be the base of the current draft.
func (w *JournalWriter) UpdateTask(ctx context.Context, id string, in reeve.TaskChange, base string) (TaskEdit, error) {
	e, err := w.EditTask(ctx, id, in)
	if err == nil {
		err = e.CheckBase(base)
	}
	if err != nil || e.IsNoop() {
		return e, err
	}
	if err := w.setLabels(ctx, &e.After, reeve.LabelAssignment{Add: e.restoredLabels,
		Remove: e.removedLabels}); err != nil {
		return e, err
	}
	w.emitChange(reeve.KeyTask, e.Before.CategoryID)
	return e, w.putTask(ctx, &e.After)
}
