package store

import (
	"context"

	"reeve"
)

// The methods here find the categories that a call touches, for the gate to judge it by. They ask only whose a thing
// is, not how it stands, and find what has been deleted too: a call that is made again must be judged as it was the
// first time.

// TouchCategory notes categories. An empty id is nothing, here and below.
func (r *JournalReader) TouchCategory(ctx context.Context, ids ...string) error {
	return touch(ids, "category", r, func(id string) (string, bool, error) {
		c, ok, err := record(ctx, r, scanCategory, "categories", categoryColumns, id, true)
		return c.ID, ok, err
	})
}

// TouchTask notes the categories of tasks.
func (r *JournalReader) TouchTask(ctx context.Context, ids ...string) error {
	return touch(ids, "task", r, func(id string) (string, bool, error) {
		t, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, id, true)
		return t.CategoryID, ok, err
	})
}

// TouchChecklist notes the categories of checklists.
func (r *JournalReader) TouchChecklist(ctx context.Context, ids ...string) error {
	return touch(ids, "checklist", r, func(id string) (string, bool, error) {
		c, ok, err := record(ctx, r, scanChecklist, "checklists", checklistColumns, id, true)
		if err != nil || !ok {
			return "", false, err
		}
		t, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, c.TaskID, true)
		return t.CategoryID, ok, err
	})
}

// TouchTimeEntry notes the categories of the user's time entries.
func (r *JournalReader) TouchTimeEntry(ctx context.Context, ids ...string) error {
	return touch(ids, "time entry", r, func(id string) (string, bool, error) {
		e, ok, err := record(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, true)
		if err != nil || !ok || e.UserID != r.who.User {
			return "", false, err
		}
		t, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, e.TaskID, true)
		return t.CategoryID, ok, err
	})
}

// TouchBlock notes the categories of blocks of the user's plans.
func (r *JournalReader) TouchBlock(ctx context.Context, ids ...string) error {
	return touch(ids, "plan block", r, func(id string) (string, bool, error) {
		b, ok, err := record(ctx, r, scanBlock, "plan_blocks", blockColumns, id, true)
		if err != nil || !ok {
			return "", false, err
		}
		p, ok, err := record(ctx, r, scanPlan, "day_plans", planColumns, b.PlanID, true)
		return b.CategoryID, ok && p.UserID == r.who.User, err
	})
}

// TouchLabel notes the categories of labels that belong to one.
func (r *JournalReader) TouchLabel(ctx context.Context, ids ...string) error {
	return touch(ids, "label", r, func(id string) (string, bool, error) {
		l, ok, err := record(ctx, r, scanLabel, "labels", labelColumns, id, true)
		return l.CategoryID, ok, err
	})
}

// TouchTarget notes the category of what a rating is about.
func (r *JournalReader) TouchTarget(ctx context.Context, kind reeve.RatingTarget, id string) error {
	switch kind {
	case reeve.RatedTask:
		return r.TouchTask(ctx, id)
	case reeve.RatedTimeEntry:
		return r.TouchTimeEntry(ctx, id)
	case reeve.RatedPlanBlock:
		return r.TouchBlock(ctx, id)
	}
	return reeve.InvalidField("/target_kind", "cannot be rated", "task, time_entry or plan_block")
}

func touch(ids []string, what string, r *JournalReader, category func(id string) (string, bool, error)) error {
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
		if err := r.see(c); err != nil {
			return err
		}
	}
	return nil
}
