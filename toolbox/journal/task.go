package journal

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"reeve"
	"reeve/internal/store"
)

type listTasksArgs struct {
	CategoryID string             `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"One category only. Default: all that you may access"`
	TaskID     string             `json:"task_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"One task only"`
	Status     []reeve.TaskStatus `json:"status,omitempty" maxItems:"7" enum:"open,groomed,in_progress,blocked,on_hold,done,rejected" doc:"Default: any status"`
	DueAfter   string             `json:"due_after,omitempty" maxLength:"10" doc:"Due on this day or later, YYYY-MM-DD"`
	DueBefore  string             `json:"due_before,omitempty" maxLength:"10" doc:"Due on this day or earlier, YYYY-MM-DD"`
	LabelID    string             `json:"label_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Text       string             `json:"text,omitempty" maxLength:"200" doc:"Part of the title"`
	Checklists bool               `json:"include_checklists,omitempty" doc:"True to include checklists and their items"`
	Cursor     string             `json:"cursor,omitempty" maxLength:"128" doc:"next_cursor of the previous page"`
	Limit      int                `json:"limit,omitempty" minimum:"1" maximum:"100" default:"20"`
}

type taskPage struct {
	Next  string       `json:"next_cursor,omitempty"`
	Tasks []listedTask `json:"tasks"` // last, so that truncation of a long result keeps the cursor
}

type listedTask struct {
	reeve.Task
	Checklists []reeve.Checklist `json:"checklists,omitempty"`
}

type resolveTaskArgs struct {
	Reference string `json:"reference" minLength:"1" maxLength:"500" doc:"Words of the title as a person used them, or the id"`
	Closed    bool   `json:"include_closed,omitempty" doc:"True to include tasks that are done or rejected"`
	Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"20" default:"5"`
}

type languageArgs struct {
	TaskID   string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Language string `json:"language" maxLength:"35" doc:"Language tag such as en or pt-BR; empty clears it"`
	reeve.UndoGuard
}

type estimateArgs struct {
	TaskID  string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Minutes int64  `json:"estimate_minutes" minimum:"0" maximum:"600000" doc:"Minutes; 0 clears it"`
	reeve.UndoGuard
}

type dueArgs struct {
	TaskID string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Due    string `json:"due_date" maxLength:"10" doc:"YYYY-MM-DD; empty clears it"`
	reeve.UndoGuard
}

type priorityArgs struct {
	TaskID   string         `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	Priority reeve.Priority `json:"priority" enum:"urgent,high,medium,low"`
	reeve.UndoGuard
}

type labelArgs struct {
	TaskID string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	reeve.LabelAssignment
	reeve.UndoGuard
}

type fieldArgs struct {
	TaskID string `json:"task_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
	reeve.TaskChange
	Restore *reeve.TaskLostValues `json:"restore,omitempty" doc:"Set by undo: the remaining fields of the task"`
	reeve.UndoGuard
}

// change returns the change to make, including the fields that an undo restores.
func (a fieldArgs) change() reeve.TaskChange {
	a.TaskChange.LostValues = a.Restore
	return a.TaskChange
}

func (p *Pack) taskTools() []reeve.Tool {
	one := []string{"task_id"}
	return []reeve.Tool{
		newReadTool(p, reeve.Tool{ID: "list_tasks_in_scope", Name: "List Tasks", Capability: TaskRead,
			Description: "List tasks in the categories that you may access, newest first. Filter by category, " +
				"status, due " +
				"date, label or title. Set task_id and include_checklists to get one whole task."},
			func(ctx context.Context, r *store.JournalReader, in listTasksArgs) error {
				if err := r.RecordCategories(ctx, in.CategoryID); err != nil {
					return err
				}
				return r.RecordTaskCategories(ctx, in.TaskID)
			}, findTasks),
		newReadTool(p, reeve.Tool{ID: "resolve_task_reference", Name: "Resolve Task Reference", Capability: TaskRead,
			Description: "Find the tasks that a person may mean, most likely first. Other tools need a task_id, so " +
				"ask the " +
				"user if the result is ambiguous."}, nil,
			func(ctx context.Context, r *store.JournalReader, in resolveTaskArgs) (reeve.TaskCandidates, error) {
				return r.ResolveTask(ctx, in.Reference, in.Closed, cmp.Or(in.Limit, 5))
			}),
		newEditTool(p, reeve.Tool{ID: "set_task_language", Name: "Set Task Language", Identity: one,
			Risk:        reeve.LowRisk,
			Description: "Set the language of a task's texts."},
			func(in languageArgs) (string, reeve.TaskChange, reeve.UndoGuard) {
				return in.TaskID, reeve.TaskChange{Language: &in.Language}, in.UndoGuard
			},
			func(id string, c reeve.TaskChange, u reeve.UndoGuard) any { return languageArgs{id, *c.Language, u} }),
		newEditTool(p, reeve.Tool{ID: "update_task_estimate", Name: "Update Task Estimate", Identity: one,
			Risk:        reeve.LowRisk,
			Description: "Set the estimated duration of a task in minutes."},
			func(in estimateArgs) (string, reeve.TaskChange, reeve.UndoGuard) {
				return in.TaskID, reeve.TaskChange{EstimateMinutes: &in.Minutes}, in.UndoGuard
			},
			func(id string, c reeve.TaskChange, u reeve.UndoGuard) any {
				return estimateArgs{id, *c.EstimateMinutes, u}
			}),
		newEditTool(p, reeve.Tool{ID: "update_task_due_date", Name: "Update Task Due Date", Identity: one,
			Risk:        reeve.LowRisk,
			Description: "Set the day a task is due."},
			func(in dueArgs) (string, reeve.TaskChange, reeve.UndoGuard) {
				return in.TaskID, reeve.TaskChange{DueDate: &in.Due}, in.UndoGuard
			},
			func(id string, c reeve.TaskChange, u reeve.UndoGuard) any { return dueArgs{id, *c.DueDate, u} }),
		newEditTool(p, reeve.Tool{ID: "update_task_priority", Name: "Update Task Priority", Identity: one,
			Risk:        reeve.LowRisk,
			Description: "Set the priority of a task."},
			func(in priorityArgs) (string, reeve.TaskChange, reeve.UndoGuard) {
				return in.TaskID, reeve.TaskChange{Priority: &in.Priority}, in.UndoGuard
			},
			func(id string, c reeve.TaskChange, u reeve.UndoGuard) any { return priorityArgs{id, *c.Priority, u} }),
		newWriteTool(p, reeve.Tool{ID: "assign_task_labels", Name: "Assign Task Labels", Capability: TaskWrite,
			Undoable: true, Identity: one,
			Risk:        reeve.LowRisk,
			Description: "Add labels to a task or remove them. Get label ids from list_allowed_categories."},
			func(ctx context.Context, r *store.JournalReader, in labelArgs) error {
				if err := r.RecordTaskCategories(ctx, in.TaskID); err != nil {
					return err
				}
				return r.RecordLabelCategories(ctx, append(append([]string{}, in.Add...), in.Remove...)...)
			}, assignLabels),
		newWriteTool(p, reeve.Tool{ID: "create_task", Name: "Create Task", Capability: TaskWrite,
			Description: "Create a task in a category."},
			func(ctx context.Context, r *store.JournalReader, in reeve.TaskDraft) error {
				if err := r.RecordCategories(ctx, in.CategoryID); err != nil {
					return err
				}
				return r.RecordLabelCategories(ctx, in.LabelIDs...)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.TaskDraft, _ *reeve.Invocation) (writeResult,
				error) {
				t, err := w.CreateTask(ctx, in)
				return writeResult{Task: &t}, err
			}),
		withPreview(p, newEditTool(p, reeve.Tool{ID: "update_task_fields", Name: "Update Task", Identity: one,
			Description: "Change several fields of a task at once: title, description, status, priority, estimate, " +
				"due date, language, category. Fields that you leave out stay unchanged. To move a task to another " +
				"category, you need access to both."},
			func(in fieldArgs) (string, reeve.TaskChange, reeve.UndoGuard) {
				return in.TaskID, in.change(), in.UndoGuard
			},
			func(id string, c reeve.TaskChange, u reeve.UndoGuard) any { return fieldArgs{id, c, c.LostValues, u} }),
			func(ctx context.Context, r *store.JournalReader, in fieldArgs) (*store.Draft, error) {
				e, err := r.EditTask(ctx, in.TaskID, in.change())
				return &e.Draft, err
			}),
	}
}

// newEditTool returns a tool that changes one task. in converts arguments to a change, and back converts a change to
// arguments for the undo.
func newEditTool[In any](p *Pack, t reeve.Tool, in func(In) (string, reeve.TaskChange, reeve.UndoGuard),
	back func(string, reeve.TaskChange, reeve.UndoGuard) any) reeve.Tool {
	t.Capability = TaskWrite
	t.Undoable = true
	return newWriteTool(p, t, func(ctx context.Context, r *store.JournalReader, args In) error {
		id, c, _ := in(args)
		if err := r.RecordTaskCategories(ctx, id); err != nil || c.CategoryID == nil {
			return err
		}
		return r.RecordCategories(ctx, *c.CategoryID)
	}, func(ctx context.Context, w *store.JournalWriter, args In, inv *reeve.Invocation) (writeResult, error) {
		id, c, undo := in(args)
		if c == (reeve.TaskChange{}) {
			return writeResult{}, reeve.InvalidField("", "contains no change", "at least one field besides task_id")
		}
		e, err := w.UpdateTask(ctx, id, c, inv.Base)
		if err == nil {
			err = undo.Check(e.OldValues())
		}
		if err == nil && !e.IsNoop() {
			inv.UndoWith(t.ID, back(id, e.Undo, reeve.NewUndoGuard(e.NewValues())))
		}
		return writeResult{Task: &e.After}, err
	})
}

func assignLabels(ctx context.Context, w *store.JournalWriter, in labelArgs,
	inv *reeve.Invocation) (writeResult, error) {
	if len(in.Add)+len(in.Remove) == 0 {
		return writeResult{}, reeve.InvalidField("", "names no label", "add_label_ids or remove_label_ids")
	}
	t, done, err := w.AssignLabels(ctx, in.TaskID, in.LabelAssignment)
	back := reeve.LabelAssignment{Add: done.Remove, Remove: done.Add}
	if err == nil {
		err = in.Check(back) // back holds the labels that the task had and had not
	}
	if err == nil && len(done.Add)+len(done.Remove) > 0 {
		inv.UndoWith("assign_task_labels", labelArgs{in.TaskID, back, reeve.NewUndoGuard(done)})
	}
	return writeResult{Task: &t}, err
}

func findTasks(ctx context.Context, r *store.JournalReader, in listTasksArgs) (out taskPage, err error) {
	out.Tasks = []listedTask{}
	var list []reeve.Task
	if in.TaskID != "" {
		t, err := r.Task(ctx, in.TaskID)
		if err != nil {
			return out, err
		}
		list = []reeve.Task{t}
	} else if list, out.Next, err = listTasksPage(ctx, r, in); err != nil {
		return out, err
	}
	for _, t := range list {
		v := listedTask{Task: t}
		if in.Checklists {
			if v.Checklists, err = r.Checklists(ctx, t.ID); err != nil {
				return out, err
			}
		}
		out.Tasks = append(out.Tasks, v)
	}
	return reeve.LongestPage(reeve.InvocationFrom(ctx), len(out.Tasks), func(n int) (taskPage, error) {
		page := out
		if n < len(out.Tasks) {
			page.Tasks, page.Next = out.Tasks[:n], formatCursor(out.Tasks[n-1].CreatedAt, out.Tasks[n-1].ID)
		}
		return page, nil
	})
}

func listTasksPage(ctx context.Context, r *store.JournalReader, in listTasksArgs) ([]reeve.Task, string, error) {
	for path, day := range map[string]string{"/due_after": in.DueAfter, "/due_before": in.DueBefore} {
		if day != "" {
			if err := reeve.CheckDay(path, day); err != nil {
				return nil, "", err
			}
		}
	}
	f := store.TaskFilter{Category: in.CategoryID, Status: in.Status, DueAfter: in.DueAfter, DueBefore: in.DueBefore,
		Label: in.LabelID, Text: in.Text, Limit: cmp.Or(in.Limit, 20)}
	var err error
	if f.Before, err = parseCursor(in.Cursor); err != nil {
		return nil, "", err
	}
	list, err := r.Tasks(ctx, f)
	if err != nil || len(list) < f.Limit {
		return list, "", err
	}
	last := list[len(list)-1]
	return list, formatCursor(last.CreatedAt, last.ID), nil
}

// formatCursor returns the cursor of the page after a row.
func formatCursor(at time.Time, id string) string {
	return strconv.FormatInt(reeve.Millis(at), 10) + "." + id
}

// parseCursor parses a cursor. An empty cursor means the first page.
func parseCursor(text string) (store.Cursor, error) {
	if text == "" {
		return store.Cursor{}, nil
	}
	at, id, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !reeve.IsID(id) {
		return store.Cursor{}, reeve.InvalidField("/cursor", "is not a valid cursor",
			"next_cursor of the previous page")
	}
	return store.Cursor{At: ms, ID: id}, nil
}
