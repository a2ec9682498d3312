package store

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
)

// Entity returns a row of the journal by its id, in the form in which predicates see it: its fields, its kind, and its
// category even if it gets that from its task. It returns false if the row does not exist, is outside the scope, or
// belongs to another user.
func (r *JournalReader) Entity(ctx context.Context, id string) (map[string]any, bool, error) {
	m, ok, err := r.findEntity(ctx, id)
	if err != nil || !ok {
		return nil, false, err
	}
	ok, err = r.isVisible(ctx, m)
	return m, ok, err
}

// isVisible reports whether an entity is in the scope and does not belong to another user.
func (r *JournalReader) isVisible(ctx context.Context, m map[string]any) (bool, error) {
	field := func(name string) string { s, _ := m[name].(string); return s }
	user, category := field("user_id"), field("category_id")
	switch m["kind"] {
	case "plan_block":
		plan, _, err := findRecord(ctx, r, scanPlan, "day_plans", planColumns, field("plan_id"), true)
		if err != nil {
			return false, err
		}
		user = plan.UserID
	case "rating": // has the category of its target
		if user == r.scope.User {
			err := r.RecordTargetCategory(ctx, reeve.RatingTarget(field("target_kind")), field("target_id"))
			return err == nil, ignoreHidden(err)
		}
	case "time_entry", "day_plan":
	default:
		user = r.scope.User // not private
	}
	return user == r.scope.User && (category == "" || r.useCategory(category) == nil), nil
}

// ignoreHidden returns nil for OutOfScope and NotFound errors.
func ignoreHidden(err error) error {
	if code := reeve.CodeOf(err); code == reeve.OutOfScope || code == reeve.NotFound {
		return nil
	}
	return err
}

// findEntity returns an entity regardless of its category and user.
func (r *JournalReader) findEntity(ctx context.Context, id string) (map[string]any, bool, error) {
	prefix, _, _ := strings.Cut(id, "_")
	switch prefix {
	case reeve.PrefixCategory:
		v, ok, err := findRecord(ctx, r, scanCategory, "categories", categoryColumns, id, false)
		return encodeEntity("category", v, v.ID, ok, err)
	case reeve.PrefixLabel:
		v, ok, err := findRecord(ctx, r, scanLabel, "labels", labelColumns, id, false)
		return encodeEntity("label", v, v.CategoryID, ok, err)
	case reeve.PrefixTask:
		v, ok, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, id, false)
		if err != nil || !ok {
			return nil, false, err
		}
		one := []reeve.Task{v}
		err = r.loadLabels(ctx, one)
		return encodeEntity("task", one[0], v.CategoryID, true, err)
	case reeve.PrefixChecklist:
		v, ok, err := findRecord(ctx, r, scanChecklist, "checklists", checklistColumns, id, false)
		return r.findTaskPart(ctx, "checklist", v, v.TaskID, ok, err)
	case reeve.PrefixChecklistItem:
		v, ok, err := findRecord(ctx, r, scanItem, "checklist_items", itemColumns, id, false)
		if err != nil || !ok {
			return nil, false, err
		}
		c, ok, err := findRecord(ctx, r, scanChecklist, "checklists", checklistColumns, v.ChecklistID, true)
		return r.findTaskPart(ctx, "checklist_item", v, c.TaskID, ok, err)
	case reeve.PrefixTimeEntry:
		v, ok, err := findRecord(ctx, r, scanTimeEntry, "time_entries", timeColumns, id, false)
		return r.findTaskPart(ctx, "time_entry", v, v.TaskID, ok, err)
	case reeve.PrefixDayPlan:
		v, ok, err := findRecord(ctx, r, scanPlan, "day_plans", planColumns, id, false)
		return encodeEntity("day_plan", v, "", ok, err)
	case reeve.PrefixPlanBlock:
		v, ok, err := findRecord(ctx, r, scanBlock, "plan_blocks", blockColumns, id, false)
		return encodeEntity("plan_block", v, v.CategoryID, ok, err)
	case reeve.PrefixRating:
		v, ok, err := findRecord(ctx, r, scanRating, "ratings", ratingColumns, id, false)
		return encodeEntity("rating", v, "", ok, err)
	}
	return nil, false, nil
}

// findTaskPart encodes an entity that has the category of its task.
func (r *JournalReader) findTaskPart(ctx context.Context, kind string, v any, task string, ok bool,
	err error) (map[string]any, bool, error) {
	if err != nil || !ok {
		return nil, false, err
	}
	t, _, err := findRecord(ctx, r, scanTask, "tasks", taskColumns, task, true)
	m, ok, err := encodeEntity(kind, v, t.CategoryID, true, err)
	if ok {
		m["task_id"] = task
	}
	return m, ok, err
}

// encodeEntity converts a row to a map with its kind and category.
func encodeEntity(kind string, v any, category string, ok bool, err error) (map[string]any, bool, error) {
	if err != nil || !ok {
		return nil, false, err
	}
	m := map[string]any{}
	if err := json.Unmarshal([]byte(encodeJSON(v)), &m); err != nil {
		return nil, false, err
	}
	m["kind"] = kind
	if category != "" {
		m["category_id"] = category
	}
	return m, true, nil
}
