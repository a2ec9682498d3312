package store

import (
	"context"

	"reeve"
)

// The methods in this file record the categories that a call uses, so that the gate can decide on the call. They check
// only the category and the user of a row, and also find deleted rows, so that the decision on a repeated call is the
// same as on the first one.

// RecordCategories records categories. It ignores empty ids, like the other methods in this file.
func (r *JournalReader) RecordCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "category", r, func(id string) (string, bool, error) {
		c, ok, err := findRecord(ctx, r, scanCategory, "categories", categoryColumns, id, true)
		return c.ID, ok, err
	})
}

// RecordTaskCategories records the categories of tasks.
func (r *JournalReader) RecordTaskCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "task", r, func(id string) (string, bool, error) {
		t, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, id, true)
		return t.CategoryID, ok, err
	})
}

// RecordChecklistCategories records the categories of checklists.
func (r *JournalReader) RecordChecklistCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "checklist", r, func(id string) (string, bool, error) {
		c, ok, err := findRecord(ctx, r, scanChecklist, "checklists", checklistColumns, id, true)
		if err != nil || !ok {
			return "", false, err
		}
		t, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, c.TaskID, true)
		return t.CategoryID, ok, err
	})
}

// RecordTimeEntryCategories records the categories of the user's time entries.
func (r *JournalReader) RecordTimeEntryCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "time entry", r, func(id string) (string, bool, error) {
		e, ok, err := findRecord(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, true)
		if err != nil || !ok || e.UserID != r.scope.User {
			return "", false, err
		}
		t, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, e.TaskID, true)
		return t.CategoryID, ok, err
	})
}

// RecordBlockCategories records the categories of blocks of the user's plans.
func (r *JournalReader) RecordBlockCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "plan block", r, func(id string) (string, bool, error) {
		b, ok, err := findRecord(ctx, r, scanBlock, "plan_blocks", blockColumns, id, true)
		if err != nil || !ok {
			return "", false, err
		}
		p, ok, err := findRecord(ctx, r, scanPlan, "day_plans", planColumns, b.PlanID, true)
		return b.CategoryID, ok && p.UserID == r.scope.User, err
	})
}

// RecordLabelCategories records the categories of labels that belong to one.
func (r *JournalReader) RecordLabelCategories(ctx context.Context, ids ...string) error {
	return useCategories(ids, "label", r, func(id string) (string, bool, error) {
		l, ok, err := findRecord(ctx, r, scanLabel, "labels", labelColumns, id, true)
		return l.CategoryID, ok, err
	})
}

// RecordTargetCategory records the category of a rating's target.
func (r *JournalReader) RecordTargetCategory(ctx context.Context, kind reeve.RatingTarget, id string) error {
	switch kind {
	case reeve.RatedTask:
		return r.RecordTaskCategories(ctx, id)
	case reeve.RatedTimeEntry:
		return r.RecordTimeEntryCategories(ctx, id)
	case reeve.RatedPlanBlock:
		return r.RecordBlockCategories(ctx, id)
	}
	return reeve.InvalidField("/target_kind", "cannot be rated", "task, time_entry or plan_block")
}

// useCategories records the category of each id.
func useCategories(ids []string, what string, r *JournalReader, category func(id string) (string, bool, error)) error {
	for _, id := range ids {
		if id == "" {
			continue
		}
		c, ok, err := category(id)
		if err != nil || !ok {
			return orNotFound(err, what, id)
		}
		if c == "" {
			continue
		}
		if err := r.useCategory(c); err != nil {
			return err
		}
	}
	return nil
}
