package store

import (
	"context"
	"strconv"

	"reeve"
)

const taskColumns = `category_id, title, folded, description, status, priority, ` +
	`estimate_minutes, due_date, language, closed_at, created_by`

func scanTask(r scanner) (t reeve.Task, err error) {
	defer wrapCorrupt("tasks", &t.ID, &err)
	h, folded, closed := recordScanner{record: &t.Record}, "", int64(0)
	err = h.scan(r, &t.CategoryID, &t.Title, &folded, &t.Description, &t.Status, &t.Priority, &t.EstimateMinutes,
		&t.DueDate, &t.Language, &closed, &t.CreatedBy)
	t.ClosedAt = timeOrNil(closed)
	return t, err
}

// Task returns a task with its labels.
func (r *JournalReader) Task(ctx context.Context, id string) (reeve.Task, error) {
	t, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, id, false)
	if err == nil && !ok {
		err = notFound("task", id)
	}
	if err == nil {
		err = r.useCategory(t.CategoryID)
	}
	if err != nil {
		return t, err
	}
	one := []reeve.Task{t}
	err = r.loadLabels(ctx, one)
	return one[0], err
}

// TaskView returns a task with its checklists and links.
func (r *JournalReader) TaskView(ctx context.Context, id string) (v reeve.TaskView, err error) {
	if v.Task, err = r.Task(ctx, id); err != nil {
		return v, err
	}
	if v.Checklists, err = r.Checklists(ctx, id); err != nil {
		return v, err
	}
	v.Links, err = r.Links(ctx, id)
	return v, err
}

// TaskFilter selects tasks. Empty fields do not restrict the list.
type TaskFilter struct {
	Category  string
	Status    []reeve.TaskStatus
	Open      bool   // leave out closed tasks
	DueAfter  string // due on this day or later
	DueBefore string // due on this day or earlier
	Label     string
	Text      string // a part of the title, ignoring case
	Before    Cursor
	Limit     int
}

// Tasks returns a page of the tasks in the scope, newest first.
func (r *JournalReader) Tasks(ctx context.Context, f TaskFilter) ([]reeve.Task, error) {
	if f.Category != "" {
		if _, err := r.Category(ctx, f.Category); err != nil {
			return nil, err
		}
	}
	var c whereClause
	c.add("workspace_id = ? AND deleted_at = 0", r.scope.Workspace)
	r.addScope(&c, "category_id")
	if f.Category != "" {
		c.add("category_id = ?", f.Category)
	}
	if len(f.Status) > 0 {
		c.addIn("status", toStrings(f.Status))
	}
	if f.Open {
		c.add("closed_at = 0")
	}
	if f.DueAfter != "" {
		c.add("due_date >= ?", f.DueAfter)
	}
	if f.DueBefore != "" {
		c.add("due_date <> '' AND due_date <= ?", f.DueBefore)
	}
	if f.Label != "" {
		c.add("id IN (SELECT task_id FROM task_labels WHERE label_id = ? AND deleted_at = 0)", f.Label)
	}
	if f.Text != "" {
		c.add(`folded LIKE ? ESCAPE '\'`, likePattern(f.Text))
	}
	if f.Before.ID != "" {
		c.add("(created_at < ? OR (created_at = ? AND id < ?))", f.Before.At, f.Before.At, f.Before.ID)
	}
	c.args = append(c.args, f.Limit)
	list, err := queryAll(ctx, r.snap, scanTask, `SELECT `+recordColumns+taskColumns+` FROM tasks WHERE `+c.String()+
		` ORDER BY created_at DESC, id DESC LIMIT $`+strconv.Itoa(len(c.args)), c.args...)
	if err != nil {
		return nil, err
	}
	return list, r.loadLabels(ctx, list)
}

// toStrings converts a list to strings.
func toStrings[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func (w *JournalWriter) putTask(ctx context.Context, t *reeve.Task) error {
	if !t.Status.IsClosed() {
		t.ClosedAt = nil
	} else if t.ClosedAt == nil {
		now := w.tx.now
		t.ClosedAt = &now
	}
	w.emitChange(reeve.KeyTask, t.CategoryID)
	w.emit(reeve.Subtype, "task."+string(t.Status))
	return w.putRecord(ctx, "tasks", taskColumns, &t.Record, t.CategoryID, t.Title, foldText(t.Title), t.Description,
		string(t.Status), string(t.Priority),
		t.EstimateMinutes, t.DueDate, t.Language, millisOrZero(t.ClosedAt), t.CreatedBy)
}

// draftTask checks a new task and returns it without an id.
func (r *JournalReader) draftTask(ctx context.Context, in reeve.TaskDraft) (t reeve.Task, err error) {
	if _, err := r.Category(ctx, in.CategoryID); err != nil {
		return t, err
	}
	if err := reeve.CheckDistinct("/label_ids", in.LabelIDs); err != nil {
		return t, err
	}
	for i, l := range in.LabelIDs {
		if err := r.checkLabelFits(ctx, "/label_ids/"+strconv.Itoa(i), l, in.CategoryID); err != nil {
			return t, err
		}
	}
	t = reeve.Task{CategoryID: in.CategoryID, Title: in.Title, Description: in.Description, Status: in.Status,
		Priority:        in.Priority,
		EstimateMinutes: in.EstimateMinutes, DueDate: in.DueDate, Language: in.Language, CreatedBy: r.scope.User}
	if r.scope.Agent != "" {
		t.CreatedBy = r.scope.Agent
	}
	if t.Status == "" {
		t.Status = reeve.TaskOpen
	}
	if t.Priority == "" {
		t.Priority = reeve.MediumPriority
	}
	return t, t.Validate()
}

// CreateTask creates a task.
func (w *JournalWriter) CreateTask(ctx context.Context, in reeve.TaskDraft) (reeve.Task, error) {
	t, err := w.draftTask(ctx, in)
	if err != nil {
		return t, err
	}
	t.ID = w.newID(reeve.PrefixTask)
	if err := w.setLabels(ctx, &t, reeve.LabelAssignment{Add: in.LabelIDs}); err != nil {
		return t, err
	}
	return t, w.putTask(ctx, &t)
}

// DeleteTask deletes a task and hides what belongs to it. Its time entries stay visible.
func (w *JournalWriter) DeleteTask(ctx context.Context, id string) error {
	t, err := w.Task(ctx, id)
	if err != nil {
		return err
	}
	w.markDeleted(&t.Record)
	return w.putTask(ctx, &t)
}
