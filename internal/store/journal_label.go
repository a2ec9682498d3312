package store

import (
	"context"
	"slices"

	"reeve"
)

const (
	labelColumns     = `name, folded, category_id`
	taskLabelColumns = `task_id, label_id`
)

func scanLabel(r scanner) (l reeve.Label, err error) {
	defer wrapCorrupt("labels", &l.ID, &err)
	h, folded := recordScanner{record: &l.Record}, ""
	return l, h.scan(r, &l.Name, &folded, &l.CategoryID)
}

// taskLabel is a row that connects a task and a label.
type taskLabel struct {
	reeve.Record
	task, label string
}

func scanTaskLabel(r scanner) (l taskLabel, err error) {
	defer wrapCorrupt("task_labels", &l.ID, &err)
	h := recordScanner{record: &l.Record}
	return l, h.scan(r, &l.task, &l.label)
}

// Label returns a label. A label of a category is visible if its category is in the scope.
func (r *JournalReader) Label(ctx context.Context, id string) (reeve.Label, error) {
	l, ok, err := findRecord(ctx, r, scanLabel, "labels", labelColumns, id, false)
	if err == nil && !ok {
		err = notFound("label", id)
	}
	if err == nil && l.CategoryID != "" {
		err = r.useCategory(l.CategoryID)
	}
	return l, err
}

// Labels returns the visible labels, ordered by name.
func (r *JournalReader) Labels(ctx context.Context) ([]reeve.Label, error) {
	var c whereClause
	c.add("workspace_id = ? AND deleted_at = 0", r.scope.Workspace)
	if !r.scope.All {
		c.addIn("category_id", append([]string{""}, r.scope.Categories...))
	}
	return queryAll(ctx, r.snap, scanLabel, `SELECT `+recordColumns+labelColumns+` FROM labels WHERE `+c.String()+
		` ORDER BY folded, id`, c.args...)
}

// loadLabels sets LabelIDs of tasks, in the order in which the labels were assigned.
func (r *JournalReader) loadLabels(ctx context.Context, tasks []reeve.Task) error {
	at := map[string]int{}
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		at[t.ID], ids[i] = i, t.ID
	}
	found, err := queryIn(ctx, r.snap, func(s scanner) (l taskLabel, err error) { return l, s.Scan(&l.task, &l.label) },
		`SELECT tl.task_id, tl.label_id FROM task_labels tl JOIN labels l ON l.id = tl.label_id WHERE tl.deleted_at = 0
			AND l.deleted_at = 0 AND tl.task_id IN (?) ORDER BY tl.created_at, tl.label_id`, ids)
	for _, l := range found {
		t := &tasks[at[l.task]]
		t.LabelIDs = append(t.LabelIDs, l.label)
	}
	return err
}

// CreateLabel creates a label.
func (w *JournalWriter) CreateLabel(ctx context.Context, in reeve.LabelRequest) (l reeve.Label, err error) {
	if l.Name, err = w.checkNameFree(ctx, "labels", "label", "", in.Name); err != nil {
		return l, err
	}
	if in.CategoryID != "" {
		if _, err := w.Category(ctx, in.CategoryID); err != nil {
			return l, err
		}
	}
	l.ID, l.CategoryID = w.newID(reeve.PrefixLabel), in.CategoryID
	return l, w.putLabel(ctx, &l)
}

func (w *JournalWriter) putLabel(ctx context.Context, l *reeve.Label) error {
	w.emitChange(reeve.KeyLabel, l.CategoryID)
	return w.putRecord(ctx, "labels", labelColumns, &l.Record, l.Name, foldText(l.Name), l.CategoryID)
}

// UpdateLabel renames a label.
func (w *JournalWriter) UpdateLabel(ctx context.Context, id string, in reeve.LabelChange) (reeve.Label, error) {
	l, err := w.Label(ctx, id)
	if err != nil || in.Name == nil {
		return l, err
	}
	name, err := w.checkNameFree(ctx, "labels", "label", id, *in.Name)
	if err != nil || name == l.Name {
		return l, err
	}
	l.Name = name
	return l, w.putLabel(ctx, &l)
}

// DeleteLabel deletes a label. Tasks lose it.
func (w *JournalWriter) DeleteLabel(ctx context.Context, id string) error {
	l, err := w.Label(ctx, id)
	if err != nil {
		return err
	}
	w.markDeleted(&l.Record)
	return w.putLabel(ctx, &l)
}

// checkLabelFits checks that a task of a category can have a label.
func (r *JournalReader) checkLabelFits(ctx context.Context, path, id, category string) error {
	l, err := r.Label(ctx, id)
	if err != nil {
		return err
	}
	if l.CategoryID != "" && l.CategoryID != category {
		return reeve.InvalidField(path, "is a label of another category",
			"a label of the task's category, or of no category")
	}
	return nil
}

// AssignLabels adds labels to a task and removes others. It returns the task and the labels that it actually added and
// removed.
func (w *JournalWriter) AssignLabels(ctx context.Context, id string,
	in reeve.LabelAssignment) (t reeve.Task, done reeve.LabelAssignment, err error) {
	if err := reeve.CheckDistinct("/add_label_ids", slices.Concat(in.Add, in.Remove)); err != nil {
		return t, done, err
	}
	if t, err = w.Task(ctx, id); err != nil {
		return t, done, err
	}
	for _, l := range in.Add {
		if err := w.checkLabelFits(ctx, "/add_label_ids", l, t.CategoryID); err != nil {
			return t, done, err
		}
		if !slices.Contains(t.LabelIDs, l) {
			done.Add = append(done.Add, l)
		}
	}
	for _, l := range in.Remove {
		if _, err := w.Label(ctx, l); err != nil {
			return t, done, err
		}
		if slices.Contains(t.LabelIDs, l) {
			done.Remove = append(done.Remove, l)
		}
	}
	if len(done.Add)+len(done.Remove) == 0 {
		return t, done, nil
	}
	if err := w.setLabels(ctx, &t, done); err != nil {
		return t, done, err
	}
	return t, done, w.putTask(ctx, &t)
}

// setLabels writes the added and removed labels of a task. The caller writes the task itself.
func (w *JournalWriter) setLabels(ctx context.Context, t *reeve.Task, in reeve.LabelAssignment) error {
	if err := w.rememberBefore(ctx, t.ID); err != nil {
		return err
	}
	set := func(label string, on bool) error {
		id := derivedID(reeve.PrefixTaskLabel, w.scope.Workspace, t.ID, label)
		l, _, err := findRecord(ctx, w.JournalReader, scanTaskLabel, "task_labels", taskLabelColumns, id, true)
		if err != nil {
			return err
		}
		l.ID, l.task, l.label, l.DeletedAt = id, t.ID, label, nil
		if !on {
			w.markDeleted(&l.Record)
		}
		return w.putRecord(ctx, "task_labels", taskLabelColumns, &l.Record, l.task, l.label)
	}
	for _, l := range in.Add {
		if err := set(l, true); err != nil {
			return err
		}
		t.LabelIDs = append(t.LabelIDs, l)
	}
	for _, l := range in.Remove {
		if err := set(l, false); err != nil {
			return err
		}
		t.LabelIDs = slices.DeleteFunc(t.LabelIDs, func(have string) bool { return have == l })
	}
	return nil
}
