package store

import (
	"context"
	"strconv"

	"reeve"
)

const taskColumns = `category_id, title, folded, description, status, priority, estimate_minutes, due_date, language, closed_at, created_by`

func scanTask(r scanner) (t reeve.Task, err error) {
	defer wrapCorrupt("tasks", &t.ID, &err)
	h, folded, closed := head{to: &t.Record}, "", int64(0)
	err = h.scan(r, &t.CategoryID, &t.Title, &folded, &t.Description, &t.Status, &t.Priority, &t.EstimateMinutes,
		&t.DueDate, &t.Language, &closed, &t.CreatedBy)
	t.ClosedAt = optional(closed)
	return t, err
}

// Task reads a task.
func (r *JournalReader) Task(ctx context.Context, id string) (reeve.Task, error) {
	t, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, id, false)
	if err == nil && !ok {
		err = notFound("task", id)
	}
	if err == nil {
		err = r.see(t.CategoryID)
	}
	if err != nil {
		return t, err
	}
	one := []reeve.Task{t}
	err = r.withLabels(ctx, one)
	return one[0], err
}

// TaskView reads a task with all it has.
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

// TaskFilter chooses tasks.
type TaskFilter struct {
	Category  string
	Status    []reeve.TaskStatus
	Open      bool   // leave out those that are closed
	DueAfter  string // a day; those due on it or later
	DueBefore string // a day; those due on it or earlier
	Label     string
	Text      string // in the title, whatever the case
	Before    Cursor
	Limit     int
}

// Tasks reads a page of the tasks the hand sees, newest first.
func (r *JournalReader) Tasks(ctx context.Context, f TaskFilter) ([]reeve.Task, error) {
	if f.Category != "" {
		if _, err := r.Category(ctx, f.Category); err != nil {
			return nil, err
		}
	}
	var c clause
	c.add("workspace_id = ? AND deleted_at = 0", r.who.Workspace)
	r.within(&c, "category_id")
	if f.Category != "" {
		c.add("category_id = ?", f.Category)
	}
	if len(f.Status) > 0 {
		c.among("status", texts(f.Status))
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
		c.add(`folded LIKE ? ESCAPE '\'`, like(f.Text))
	}
	if f.Before.ID != "" {
		c.add("(created_at < ? OR (created_at = ? AND id < ?))", f.Before.At, f.Before.At, f.Before.ID)
	}
	c.args = append(c.args, f.Limit)
	list, err := all(ctx, r.snap, scanTask, `SELECT `+recordColumns+taskColumns+` FROM tasks WHERE `+c.String()+
		` ORDER BY created_at DESC, id DESC LIMIT $`+strconv.Itoa(len(c.args)), c.args...)
	if err != nil {
		return nil, err
	}
	return list, r.withLabels(ctx, list)
}

// texts makes texts of a list of words.
func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

func (w *JournalWriter) putTask(ctx context.Context, t *reeve.Task) error {
	if !t.Status.Closed() {
		t.ClosedAt = nil
	} else if t.ClosedAt == nil {
		now := w.tx.now
		t.ClosedAt = &now
	}
	w.tell(reeve.KeyTask, t.CategoryID)
	w.emit(reeve.Subtype, "task."+string(t.Status))
	return w.put(ctx, "tasks", taskColumns, &t.Record, t.CategoryID, t.Title, fold(t.Title), t.Description,
		string(t.Status), string(t.Priority),
		t.EstimateMinutes, t.DueDate, t.Language, orZero(t.ClosedAt), t.CreatedBy)
}

// draftTask checks what a new task would be, but for its id.
func (r *JournalReader) draftTask(ctx context.Context, in reeve.TaskDraft) (t reeve.Task, err error) {
	if _, err := r.Category(ctx, in.CategoryID); err != nil {
		return t, err
	}
	if err := reeve.CheckDistinct("/label_ids", in.LabelIDs); err != nil {
		return t, err
	}
	for i, l := range in.LabelIDs {
		if err := r.fit(ctx, "/label_ids/"+strconv.Itoa(i), l, in.CategoryID); err != nil {
			return t, err
		}
	}
	t = reeve.Task{CategoryID: in.CategoryID, Title: in.Title, Description: in.Description, Status: in.Status,
		Priority:        in.Priority,
		EstimateMinutes: in.EstimateMinutes, DueDate: in.DueDate, Language: in.Language, CreatedBy: r.who.User}
	if r.who.Agent != "" {
		t.CreatedBy = r.who.Agent
	}
	if t.Status == "" {
		t.Status = reeve.TaskOpen
	}
	if t.Priority == "" {
		t.Priority = reeve.MediumPriority
	}
	return t, t.Validate()
}

// CreateTask makes a task.
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

// DeleteTask removes a task, and from sight what it has. Its time entries stay: the time was spent.
func (w *JournalWriter) DeleteTask(ctx context.Context, id string) error {
	t, err := w.Task(ctx, id)
	if err != nil {
		return err
	}
	w.remove(&t.Record)
	return w.putTask(ctx, &t)
}
