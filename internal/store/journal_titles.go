package store

import (
	"context"
	"slices"

	"reeve"
)

// FindTasks returns the tasks with the given ids that the scope includes, without deleted ones, in no certain order.
func (r *JournalReader) FindTasks(ctx context.Context, ids []string) ([]reeve.Task, error) {
	list, err := queryIn(ctx, r.snap, scanTask, `SELECT `+recordColumns+taskColumns+` FROM tasks WHERE id IN (?)`, ids)
	return slices.DeleteFunc(list, func(t reeve.Task) bool {
		return t.WorkspaceID != r.scope.Workspace || t.DeletedAt != nil ||
			!r.scope.All && !slices.Contains(r.scope.Categories, t.CategoryID)
	}), err
}
