package store

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
)

// Entity reads anything of the journal by its id, whosever it is, as what an expression about it sees: its fields, its kind, and
// its category even where it has that from its task. False means that it is not there.
func (r *JournalReader) Entity(ctx context.Context, id string) (map[string]any, bool, error) {
	prefix, _, _ := strings.Cut(id, "_")
	switch prefix {
	case reeve.PrefixCategory:
		v, ok, err := record(ctx, r, scanCategory, "categories", categoryColumns, id, false)
		return entity("category", v, v.ID, ok, err)
	case reeve.PrefixLabel:
		v, ok, err := record(ctx, r, scanLabel, "labels", labelColumns, id, false)
		return entity("label", v, v.CategoryID, ok, err)
	case reeve.PrefixTask:
		v, ok, err := record(ctx, r, scanTask, "tasks", taskColumns, id, false)
		if err != nil || !ok {
			return nil, false, err
		}
		one := []reeve.Task{v}
		err = r.withLabels(ctx, one)
		return entity("task", one[0], v.CategoryID, true, err)
	case reeve.PrefixChecklist:
		v, ok, err := record(ctx, r, scanChecklist, "checklists", checklistColumns, id, false)
		return r.part(ctx, "checklist", v, v.TaskID, ok, err)
	case reeve.PrefixChecklistItem:
		v, ok, err := record(ctx, r, scanItem, "checklist_items", itemColumns, id, false)
		if err != nil || !ok {
			return nil, false, err
		}
		c, ok, err := record(ctx, r, scanChecklist, "checklists", checklistColumns, v.ChecklistID, true)
		return r.part(ctx, "checklist_item", v, c.TaskID, ok, err)
	case reeve.PrefixTimeEntry:
		v, ok, err := record(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, false)
		return r.part(ctx, "time_entry", v, v.TaskID, ok, err)
	case reeve.PrefixDayPlan:
		v, ok, err := record(ctx, r, scanPlan, "day_plans", planColumns, id, false)
		return entity("day_plan", v, "", ok, err)
	case reeve.PrefixPlanBlock:
		v, ok, err := record(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
		return entity("plan_block", v, v.CategoryID, ok, err)
	case reeve.PrefixRating:
		v, ok, err := record(ctx, r, scanRating, "ratings", ratingColumns, id, false)
		return entity("rating", v, "", ok, err)
	}
	return nil, false, nil
}

// part is an entity that has its category from a task.
func (r *JournalReader) part(ctx context.Context, kind string, v any, task string, ok bool, err error) (map[string]any, bool, error) {
	if err != nil || !ok {
		return nil, false, err
	}
	t, _, err := record(ctx, r, scanTask, "tasks", taskColumns, task, true)
	m, ok, err := entity(kind, v, t.CategoryID, true, err)
	if ok {
		m["task_id"] = task
	}
	return m, ok, err
}

func entity(kind string, v any, category string, ok bool, err error) (map[string]any, bool, error) {
	if err != nil || !ok {
		return nil, false, err
	}
	m := map[string]any{}
	if err := json.Unmarshal([]byte(text(v)), &m); err != nil {
		return nil, false, err
	}
	m["kind"] = kind
	if category != "" {
		m["category_id"] = category
	}
	return m, true, nil
}
