package store

import (
	"context"
	"encoding/json"
	"strings"

	"reeve"
)

// Entity reads anything of the journal by its id, as what an expression about it sees: its fields, its kind, and its
// category even where it has that from its task. False means that it is not there for this hand: it is in a category
// that an agent may not see, or another user's own.
func (r *JournalReader) Entity(ctx context.Context, id string) (map[string]any, bool, error) {
	m, ok, err := r.anybodys(ctx, id)
	if err != nil || !ok {
		return nil, false, err
	}
	ok, err = r.sees(ctx, m)
	return m, ok, err
}

// sees tells whether an entity is there for this hand.
func (r *JournalReader) sees(ctx context.Context, m map[string]any) (bool, error) {
	field := func(name string) string { s, _ := m[name].(string); return s }
	user, category := field("user_id"), field("category_id")
	switch m["kind"] {
	case "plan_block":
		plan, _, err := record(ctx, r, scanPlan, "day_plans", planColumns, field("plan_id"), true)
		if err != nil {
			return false, err
		}
		user = plan.UserID
	case "rating": // in the category of what it is about
		if user == r.who.User {
			err := r.TouchTarget(ctx, reeve.RatingTarget(field("target_kind")), field("target_id"))
			return err == nil, passOver(err)
		}
	case "time_entry", "day_plan":
	default:
		user = r.who.User // nobody's own
	}
	return user == r.who.User && (category == "" || r.see(category) == nil), nil
}

// passOver takes it for no failure that something is not there to be seen.
func passOver(err error) error {
	if code := reeve.CodeOf(err); code == reeve.OutOfScope || code == reeve.NotFound {
		return nil
	}
	return err
}

// anybodys reads it whosever it is.
func (r *JournalReader) anybodys(ctx context.Context, id string) (map[string]any, bool, error) {
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
func (r *JournalReader) part(ctx context.Context, kind string, v any, task string, ok bool,
	err error) (map[string]any, bool, error) {
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
