package journal_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/toolbox/journal"
)

// TestL17_Catalogue checks the ids of the tools and their capabilities.
func TestL17_Catalogue(t *testing.T) {
	want := map[string]string{
		"set_task_language": "task.write", "update_task_estimate": "task.write", "update_task_due_date": "task.write",
		"update_task_priority":         "task.write",
		"add_multiple_checklist_items": "checklist.write", "update_checklist_items": "checklist.write",
		"assign_task_labels":      "task.write",
		"list_allowed_categories": "category.read", "list_tasks_in_scope": "task.read",
		"resolve_task_reference": "task.read",
		"create_task":            "task.write", "update_task_fields": "task.write",
		"create_follow_up_task":       "task.write",
		"conclude_task_with_rollover": "task.write",
		"create_checklist":            "checklist.write", "move_checklist_items": "checklist.write",
		"move_checklist_items_to_new_task": "task.write",
		"list_time_entries":                "time.read",
		"create_retrospective_time_entry":  "time.write", "start_task_timer": "time.write",
		"stop_task_timer": "time.write", "annotate_time_entry": "time.write",
		"get_or_create_day_plan": "dayplan.read", "upsert_day_plan_blocks": "dayplan.write",
		"pin_day_plan_tasks": "dayplan.write", "replan_day_blocks": "dayplan.write",
		"get_ratings_summary": "rating.read", "get_rating_for_target": "rating.read",
		"create_or_update_rating": "rating.write",
		"change_get":              "task.read",
	}
	tools := (&journal.Pack{}).Tools()
	if len(tools) != len(want) {
		t.Errorf("%d tools, want %d", len(tools), len(want))
	}
	high := []string{"conclude_task_with_rollover", "create_follow_up_task", "move_checklist_items",
		"move_checklist_items_to_new_task", "replan_day_blocks", "update_task_fields"}
	for _, tool := range tools {
		if want[tool.ID] != tool.Capability || tool.Capability == "" {
			t.Errorf("%s needs %q, want %q", tool.ID, tool.Capability, want[tool.ID])
		}
		if tool.Categories == nil || tool.Pack != "journal" || tool.Category != "journal" || tool.Effect.IsExternal() {
			t.Errorf("%s is not bound to categories, or not of the pack", tool.ID)
		}
		if has := slices.Contains(high, tool.ID); has != (tool.Preview != nil) || has != (tool.Risk == reeve.HighRisk) {
			t.Errorf("%s: preview %v, risk %s", tool.ID, tool.Preview != nil, tool.Risk)
		}
	}
	fx := newFixture(t, host.Config{})
	fx.Want(http.StatusOK, nil, "PUT", "/api/profiles/assistant",
		api.ProfileRequest{Capabilities: []string{"task.read"}})
	a := fx.createAgent("reader", fx.home)
	fx.wantError(reeve.OutOfScope, a, "create_task", map[string]any{"category_id": fx.home, "title": "x"})
	fx.mustCall(a, "list_tasks_in_scope", map[string]any{})
}

// mustChange makes a call and checks that the result names an operation, that its tokens name the changed entities and
// also, and that links lead from the operation to the changed entities.
func (fx *fixture) mustChange(agent, tool string, args any, key string, also ...string) toolResult {
	fx.T.Helper()
	a := fx.mustCall(agent, tool, args)
	if a.Result.OperationID == "" || a.Result.State != reeve.Committed {
		fx.T.Fatalf("%s: no operation: %+v", tool, a.Result)
	}
	has := func(class reeve.TokenClass, name string) bool {
		return slices.Contains(a.Result.Changed, reeve.Token{Class: class, Name: name})
	}
	if !has(reeve.SemanticKey, key) {
		fx.T.Errorf("%s: no token %s in %+v", tool, key, a.Result.Changed)
	}
	if len(a.Changed) == 0 {
		fx.T.Errorf("%s: nothing changed", tool)
	}
	for _, id := range slices.Concat(a.Changed, also) {
		if !has(reeve.EntityID, id) {
			fx.T.Errorf("%s: no token of %s", tool, id)
		}
	}
	var links api.LinkList
	fx.Want(http.StatusOK, &links, "GET", "/api/journal/effects/"+a.Result.OperationID, nil)
	for _, id := range a.Changed {
		if !slices.ContainsFunc(links.Links, func(l reeve.Link) bool {
			return l.FromID == a.Result.OperationID && l.ToID == id && l.Relation == reeve.ToolEffect
		}) {
			fx.T.Errorf("%s: no link to %s", tool, id)
		}
	}
	return a
}

// undo undoes an operation.
func (fx *fixture) undo(a toolResult) toolResult {
	fx.T.Helper()
	var res reeve.Result
	fx.Want(http.StatusOK, &res, "POST", "/api/operations/"+a.Result.OperationID+"/undo", nil)
	if res.IsError {
		fx.T.Fatalf("undo: %s", res.Message)
	}
	return toolResult{Result: res}
}

// TestL17_Tasks calls the tools that change tasks and labels.
func TestL17_Tasks(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("clerk", fx.home, fx.gym)
		var red, gymOnly reeve.Label
		fx.Want(http.StatusCreated, &red, "POST", "/api/journal/labels", reeve.LabelRequest{Name: "red"})
		fx.Want(http.StatusCreated, &gymOnly, "POST", "/api/journal/labels",
			reeve.LabelRequest{Name: "legs", CategoryID: fx.gym})
		made := fx.mustChange(a, "create_task", map[string]any{"category_id": fx.home, "title": " Paint ",
			"due_date": "2026-03-01", "label_ids": []string{red.ID}}, "TASK", fx.home)
		id := made.Task.ID
		if made.Task.Title != "Paint" || made.Task.Status != reeve.TaskOpen ||
			made.Task.Priority != reeve.MediumPriority || !slices.Equal(made.Task.LabelIDs, []string{red.ID}) {
			t.Errorf("got %+v", made.Task)
		}
		for tool, args := range map[string]map[string]any{
			"set_task_language": {"language": "pt-BR"}, "update_task_estimate": {"estimate_minutes": 90},
			"update_task_due_date": {"due_date": "2027-01-02"},
			"update_task_priority": {"priority": "urgent"}, "update_task_fields": {"title": "Paint it",
				"status": "in_progress", "description": "twice"},
		} {
			args["task_id"] = id
			before := fx.getTask(id).Task
			done := fx.mustChange(a, tool, args, "TASK", fx.home)
			if after := fx.getTask(id).Task; after.Title+string(after.Status)+string(after.Priority)+after.Language+
				after.DueDate == before.Title+string(before.Status)+string(before.Priority)+before.Language+
				before.DueDate &&
				after.EstimateMinutes == before.EstimateMinutes {
				t.Errorf("%s changed nothing", tool)
			}
			fx.undo(done)
			after := fx.getTask(id).Task
			after.UpdatedAt = before.UpdatedAt
			if after.Title != before.Title || after.Status != before.Status || after.Priority != before.Priority ||
				after.Language != before.Language ||
				after.DueDate != before.DueDate || after.EstimateMinutes != before.EstimateMinutes ||
				after.Description != before.Description {
				t.Errorf("%s was not undone: %+v, want %+v", tool, after, before)
			}
		}
		fx.undo(fx.mustChange(a, "assign_task_labels",
			map[string]any{"task_id": id, "remove_label_ids": []string{red.ID}},
			"TASK", fx.home))
		if l := fx.getTask(id).LabelIDs; !slices.Equal(l, []string{red.ID}) {
			t.Errorf("labels %v", l)
		}
		fx.wantField(fx.wantError(reeve.Validation, a, "assign_task_labels",
			map[string]any{"task_id": id, "add_label_ids": []string{gymOnly.ID}}), "/add_label_ids")
		// A task that moves to another category loses the labels of the old category.
		fx.mustCall(a, "update_task_fields", map[string]any{"task_id": id, "category_id": fx.gym})
		fx.mustCall(a, "assign_task_labels", map[string]any{"task_id": id, "add_label_ids": []string{gymOnly.ID}})
		fx.mustCall(a, "update_task_fields", map[string]any{"task_id": id, "category_id": fx.home})
		if l := fx.getTask(id).LabelIDs; !slices.Equal(l, []string{red.ID}) {
			t.Errorf("labels %v", l)
		}
		// An update with the same values reports no change.
		if same := fx.mustCall(a, "update_task_priority", map[string]any{"task_id": id, "priority": "medium"}); len(same.Changed) != 0 ||
			len(same.Result.Changed) != 0 {
			t.Errorf("got %+v", same)
		}
		got := fx.mustCall(a, "list_tasks_in_scope", map[string]any{"task_id": id, "include_checklists": true})
		if len(got.Tasks) != 1 || got.Tasks[0].Title != "Paint" {
			t.Errorf("got %+v", got.Tasks)
		}
	})
}

// TestL17_Checklists calls the tools that change checklists.
func TestL17_Checklists(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("clerk", fx.home)
		task := fx.createTask(fx.home, "Move house")
		list := fx.mustChange(a, "create_checklist", map[string]any{"task_id": task.ID, "title": "Boxes",
			"items": []string{"a", "b"}}, "CHECKLIST", fx.home, task.ID).Checklist
		got := fx.mustChange(a, "add_multiple_checklist_items", map[string]any{"checklist_id": list.ID,
			"items": []any{map[string]any{"title": "c"}, map[string]any{"title": "d", "checked": true}}},
			"CHECKLIST", fx.home, task.ID, list.ID)
		if joinTitles(got.Checklist.Items) != "a b c d" || !got.Checklist.Items[3].Checked {
			t.Fatalf("got %+v", got.Checklist)
		}
		done := fx.mustChange(a, "update_checklist_items", map[string]any{"checklist_id": list.ID, "items": []any{
			map[string]any{"id": list.Items[0].ID, "checked": true}, map[string]any{"id": list.Items[1].ID,
				"title": "B"}}}, "CHECKLIST", fx.home)
		if joinTitles(done.Checklist.Items) != "a B c d" || !done.Checklist.Items[0].Checked {
			t.Fatalf("got %+v", done.Checklist)
		}
		fx.undo(done)
		if v := fx.getTask(task.ID); joinTitles(v.Checklists[0].Items) != "a b c d" ||
			v.Checklists[0].Items[0].Checked {
			t.Fatalf("got %+v", v)
		}
		other := fx.createChecklist(task.ID, "Other", "x")
		items := got.Checklist.Items
		moved := fx.mustChange(a, "move_checklist_items", map[string]any{"item_ids": []string{items[3].ID, items[0].ID},
			"from_checklist_id": list.ID, "to_checklist_id": other.ID}, "CHECKLIST", fx.home)
		if joinTitles(moved.Checklists[0].Items) != "b c" || joinTitles(moved.Checklists[1].Items) != "x a d" ||
			!moved.Checklists[1].Items[2].Checked {
			t.Fatalf("got %+v", moved.Checklists)
		}
		split := fx.mustChange(a, "move_checklist_items_to_new_task",
			map[string]any{"item_ids": []string{items[0].ID, items[3].ID}, "from_checklist_id": other.ID,
				"new_task_title": "Own", "preserve_checked_state": false}, "TASK", fx.home)
		own := fx.getTask(split.Other.ID)
		if own.Title != "Own" || len(own.Checklists) != 1 || joinTitles(own.Checklists[0].Items) != "a d" ||
			own.Checklists[0].Items[1].Checked {
			t.Fatalf("got %+v", own)
		}
		checkLinked(t, own.Links, task.ID, own.ID, reeve.SplitInto, reeve.SplitFrom)
		fx.wantError(reeve.NotFound, a, "move_checklist_items", map[string]any{"item_ids": []string{items[0].ID},
			"from_checklist_id": list.ID, "to_checklist_id": other.ID})
		fx.wantField(fx.wantError(reeve.Validation, a, "move_checklist_items",
			map[string]any{"item_ids": []string{items[1].ID, items[1].ID}, "from_checklist_id": list.ID,
				"to_checklist_id": other.ID}), "/item_ids")
		fx.wantField(fx.wantError(reeve.Validation, a, "add_multiple_checklist_items",
			map[string]any{"checklist_id": list.ID,
				"items": []any{map[string]any{"title": "   "}}}), "/items/0/title")
	})
}

// checkLinked checks that two tasks are linked in both directions.
func checkLinked(t *testing.T, links []reeve.Link, from, to string, there, back reeve.Relation) {
	t.Helper()
	for _, want := range []reeve.Link{{FromID: from, ToID: to, Relation: there},
		{FromID: to, ToID: from, Relation: back}} {
		if !slices.ContainsFunc(links, func(l reeve.Link) bool {
			return l.FromID == want.FromID && l.ToID == want.ToID && l.Relation == want.Relation
		}) {
			t.Errorf("no link %s from %s to %s", want.Relation, want.FromID, want.ToID)
		}
	}
}

// TestL17_Plans calls the tools for day plans and ratings.
func TestL17_Plans(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("planner", fx.home)
		task := fx.createTask(fx.home, "Write")
		const day = "2026-02-18"
		if p := fx.mustChange(a, "get_or_create_day_plan", map[string]any{"plan_date": day}, "DAY_PLAN").Plan; p.Day != day || len(p.Blocks) != 0 {
			t.Fatalf("got %+v", p)
		}
		if p := fx.mustCall(a, "get_or_create_day_plan", map[string]any{"plan_date": day}); len(p.Changed) != 0 {
			t.Fatalf("created twice: %+v", p)
		}
		block := func(id, from, to string) map[string]any {
			b := map[string]any{"category_id": fx.home, "start_time": day + "T" + from + ":00-05:00", "end_time": day +
				"T" + to + ":00-05:00"}
			if id != "" {
				b["id"] = id
			}
			return b
		}
		first := block("", "09:00", "11:00")
		first["task_id"] = task.ID
		p := fx.mustChange(a, "upsert_day_plan_blocks",
			map[string]any{"plan_date": day, "upserts": []any{first, block("", "13:00", "14:00")}}, "DAY_PLAN", fx.home,
			task.ID).Plan
		if len(p.Blocks) != 2 || p.Blocks[0].TaskID != task.ID ||
			p.Blocks[0].StartsAt.Format("15:04 -0700") != "09:00 -0500" {
			t.Fatalf("got %+v", p.Blocks)
		}
		p = fx.mustChange(a, "upsert_day_plan_blocks",
			map[string]any{"plan_date": day, "upserts": []any{block(p.Blocks[1].ID, "15:00", "16:00")},
				"deletes": []string{p.Blocks[0].ID}}, "DAY_PLAN", fx.home).Plan
		if len(p.Blocks) != 1 || p.Blocks[0].StartsAt.Hour() != 15 {
			t.Fatalf("got %+v", p.Blocks)
		}
		done := fx.mustChange(a, "pin_day_plan_tasks", map[string]any{"plan_date": day, "task_ids": []string{task.ID}},
			"DAY_PLAN", task.ID)
		if !slices.Equal(done.Plan.Pinned, []string{task.ID}) {
			t.Fatalf("got %+v", done.Plan)
		}
		fx.undo(done)
		before := p.Blocks[0].ID
		p = fx.mustChange(a, "replan_day_blocks",
			map[string]any{"plan_date": day, "blocks": []any{block("", "08:00", "09:00"), block("", "23:00", "23:30")}},
			"DAY_PLAN", fx.home).Plan
		if len(p.Blocks) != 2 || p.Blocks[0].ID == before || len(p.Pinned) != 0 {
			t.Fatalf("got %+v", p)
		}
		kept := fx.mustCall(a, "replan_day_blocks", map[string]any{"plan_date": day, "blocks": []any{}, "from": day +
			"T12:00:00-05:00"}).Plan
		if len(kept.Blocks) != 1 || kept.Blocks[0].StartsAt.Hour() != 8 {
			t.Fatalf("got %+v", kept.Blocks)
		}
		fx.wantField(fx.wantError(reeve.Validation, a, "upsert_day_plan_blocks",
			map[string]any{"plan_date": "2026-02-30",
				"deletes": []string{before}}), "/plan_date")
		fx.wantField(fx.wantError(reeve.Validation, a, "replan_day_blocks",
			map[string]any{"plan_date": day, "blocks": []any{block("", "08:00", "07:00")}}), "/blocks/0/end_time")
		fx.wantField(fx.wantError(reeve.Validation, a, "replan_day_blocks", map[string]any{"plan_date": "2026-02-19",
			"blocks": []any{block("", "08:00", "09:00")}}), "/blocks/0/start_time")

		rated := fx.mustChange(a, "create_or_update_rating", map[string]any{"target_kind": "plan_block",
			"target_id": kept.Blocks[0].ID, "scores": map[string]any{"focus": 40}}, "RATING", fx.home,
			kept.Blocks[0].ID)
		again := fx.mustChange(a, "create_or_update_rating", map[string]any{"target_kind": "plan_block",
			"target_id": kept.Blocks[0].ID, "scores": map[string]any{"focus": 80, "energy": 10}}, "RATING", fx.home)
		if rated.Rating.ID != again.Rating.ID {
			t.Errorf("rated twice")
		}
		fx.mustCall(a, "create_or_update_rating", map[string]any{"target_kind": "task", "target_id": task.ID,
			"scores": map[string]any{"focus": 20}})
		sum := fx.mustCall(a, "get_ratings_summary", map[string]any{})
		if sum.Count != 2 || len(sum.Summary) != 2 || sum.Summary[1].Name != "focus" || sum.Summary[1].Mean != 50 ||
			sum.Summary[1].Max != 80 {
			t.Errorf("got %+v", sum)
		}
		fx.undo(again)
		if r := fx.mustCall(a, "get_rating_for_target", map[string]any{"target_kind": "plan_block",
			"target_id": kept.Blocks[0].ID}).Rating; r == nil || r.Scores["focus"] != 40 || len(r.Scores) != 1 {
			t.Errorf("got %+v", r)
		}
		fx.wantField(fx.wantError(reeve.Validation, a, "create_or_update_rating", map[string]any{"target_kind": "task",
			"target_id": task.ID, "scores": map[string]any{"focus": 101}}), "/scores/focus")
		fx.wantField(fx.wantError(reeve.Validation, a, "create_or_update_rating", map[string]any{"target_kind": "task",
			"target_id": task.ID, "scores": map[string]any{}}), "/scores")
	})
}

// TestL17_Limits checks that invalid arguments are refused with the name of the field, and that nothing changes.
func TestL17_Limits(t *testing.T) {
	fx := newFixture(t, host.Config{})
	a := fx.createAgent("clerk", fx.home)
	task := fx.createTask(fx.home, "Task")
	list := fx.createChecklist(task.ID, "List")
	many := make([]any, 1001)
	for i := range many {
		many[i] = map[string]any{"title": "x"}
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		path string
	}{
		{"create_task", map[string]any{"category_id": fx.home, "title": ""}, "/title"},
		{"create_task", map[string]any{"category_id": fx.home, "title": " \t"}, "/title"},
		{"create_task", map[string]any{"category_id": fx.home, "title": strings.Repeat("ä", 501)}, "/title"},
		{"create_task", map[string]any{"category_id": fx.home, "title": "two\nlines"}, "/title"},
		{"create_task", map[string]any{"category_id": fx.home, "title": "x",
			"description": strings.Repeat("ä", 60_000)},
			"/description"},
		{"create_task", map[string]any{"category_id": fx.home, "title": "x", "due_date": "2026-02-29"}, "/due_date"},
		{"create_task", map[string]any{"category_id": fx.home, "title": "x", "status": "DONE"}, "/status"},
		{"create_task", map[string]any{"category_id": fx.home, "title": "x", "categoryId": fx.home}, ""},
		{"set_task_language", map[string]any{"task_id": task.ID, "language": "not a tag"}, "/language"},
		{"update_task_estimate", map[string]any{"task_id": task.ID, "estimate_minutes": -1}, "/estimate_minutes"},
		{"update_task_fields", map[string]any{"task_id": task.ID}, ""},
		{"add_multiple_checklist_items", map[string]any{"checklist_id": list.ID, "items": many}, "/items"},
		{"create_follow_up_task", map[string]any{"source_task_id": task.ID, "new_task_title": "x",
			"preserve_category_and_labels": false}, "/category_id"},
		{"list_tasks_in_scope", map[string]any{"cursor": "nonsense"}, "/cursor"},
	} {
		fx.wantField(fx.wantError(reeve.Validation, a, c.tool, c.args), c.path)
	}
	if l := fx.mustCall(a, "list_tasks_in_scope", map[string]any{}); len(l.Tasks) != 1 {
		t.Errorf("%d tasks", len(l.Tasks))
	}
	fx.mustCall(a, "create_task", map[string]any{"category_id": fx.home, "title": strings.Repeat("ä", 500)})
}
