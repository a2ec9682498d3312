package journal

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

// tasksResult returns the result of a change to two tasks.
func tasksResult(c reeve.TasksChanged) writeResult {
	return writeResult{Task: &c.Task, Other: c.Other, Moved: &c.Moved, Links: c.Links}
}

func (p *Pack) conclusionTools() []reeve.Tool {
	return []reeve.Tool{
		withPreview(p, newWriteTool(p, reeve.Tool{ID: "create_follow_up_task", Name: "Create Follow-up Task",
			Capability: TaskWrite, Identity: []string{"source_task_id", "new_task_title"},
			Description: "Create a task that continues another one. Open checklist items move to it in their order, " +
				"and " +
				"done items stay. The two tasks are linked in both directions."},
			func(ctx context.Context, r *store.JournalReader, in reeve.FollowUp) error {
				if err := r.RecordTaskCategories(ctx, in.SourceTaskID); err != nil {
					return err
				}
				return r.RecordCategories(ctx, in.CategoryID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.FollowUp, inv *reeve.Invocation) (writeResult,
				error) {
				c, err := w.ApplyFollowUp(ctx, in, inv.Base)
				return tasksResult(c), err
			}),
			func(ctx context.Context, r *store.JournalReader, in reeve.FollowUp) (*store.Draft, error) {
				c, err := r.FollowUp(ctx, in)
				return &c.Draft, err
			}),
		withPreview(p, newWriteTool(p, reeve.Tool{ID: "conclude_task_with_rollover",
			Name:       "Conclude Task with Rollover",
			Capability: TaskWrite, Identity: []string{"task_id"},
			Description: "Close a task and move its open checklist items to another task, or to a new one. Done " +
				"items stay, and the two tasks are linked in both directions. Without open items it only " +
				"closes the task."},
			func(ctx context.Context, r *store.JournalReader, in reeve.Rollover) error {
				return r.RecordTaskCategories(ctx, in.TaskID, in.TargetTaskID)
			},
			func(ctx context.Context, w *store.JournalWriter, in reeve.Rollover, inv *reeve.Invocation) (writeResult,
				error) {
				c, err := w.ApplyRollover(ctx, in, inv.Base)
				return tasksResult(c), err
			}),
			func(ctx context.Context, r *store.JournalReader, in reeve.Rollover) (*store.Draft, error) {
				c, err := r.Rollover(ctx, in)
				return &c.Draft, err
			}),
	}
}
