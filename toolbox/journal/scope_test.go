package journal_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
	"reeve/toolbox/journal"
)

// argsForEachTool returns arguments for each tool that use one task, its checklist, time entry and plan block.
func argsForEachTool(fx *fixture, task reeve.Task, list reeve.Checklist, entry reeve.TimeEntry,
	block reeve.PlanBlock) map[string]any {
	item := list.Items[0].ID
	return map[string]any{
		"set_task_language":    map[string]any{"task_id": task.ID, "language": "de"},
		"update_task_estimate": map[string]any{"task_id": task.ID, "estimate_minutes": 30},
		"update_task_due_date": map[string]any{"task_id": task.ID, "due_date": "2026-03-01"},
		"update_task_priority": map[string]any{"task_id": task.ID, "priority": "high"},
		"add_multiple_checklist_items": map[string]any{"checklist_id": list.ID,
			"items": []any{map[string]any{"title": "more"}}},
		"update_checklist_items": map[string]any{"checklist_id": list.ID,
			"items": []any{map[string]any{"id": item, "title": "renamed"}}},
		"assign_task_labels":          map[string]any{"task_id": task.ID, "remove_label_ids": []string{}},
		"list_allowed_categories":     map[string]any{},
		"list_tasks_in_scope":         map[string]any{"category_id": task.CategoryID},
		"resolve_task_reference":      map[string]any{"reference": task.Title},
		"create_task":                 map[string]any{"category_id": task.CategoryID, "title": "another"},
		"update_task_fields":          map[string]any{"task_id": task.ID, "title": "changed"},
		"create_follow_up_task":       map[string]any{"source_task_id": task.ID, "new_task_title": "next"},
		"conclude_task_with_rollover": map[string]any{"task_id": task.ID},
		"create_checklist":            map[string]any{"task_id": task.ID, "title": "more"},
		"move_checklist_items": map[string]any{"item_ids": []string{item}, "from_checklist_id": list.ID,
			"to_checklist_id": list.ID},
		"move_checklist_items_to_new_task": map[string]any{"item_ids": []string{item}, "from_checklist_id": list.ID,
			"new_task_title": "own"},
		"list_time_entries": map[string]any{"task_id": task.ID},
		"create_retrospective_time_entry": map[string]any{"task_id": task.ID, "started_at": "2026-01-05T10:00:00Z",
			"ended_at": "2026-01-05T11:00:00Z"},
		"start_task_timer":       map[string]any{"task_id": task.ID},
		"stop_task_timer":        map[string]any{"time_entry_id": entry.ID},
		"annotate_time_entry":    map[string]any{"time_entry_id": entry.ID, "description": "said"},
		"get_or_create_day_plan": map[string]any{"plan_date": "2026-02-18"},
		"upsert_day_plan_blocks": map[string]any{"plan_date": "2026-02-18", "deletes": []string{block.ID}},
		"pin_day_plan_tasks":     map[string]any{"plan_date": "2026-02-18", "task_ids": []string{task.ID}},
		"replan_day_blocks": map[string]any{"plan_date": "2026-02-18",
			"blocks": []any{map[string]any{"id": block.ID, "category_id": task.CategoryID,
				"start_time": "2026-02-18T09:00:00Z", "end_time": "2026-02-18T10:00:00Z"}}},
		"get_ratings_summary":   map[string]any{"category_id": task.CategoryID},
		"get_rating_for_target": map[string]any{"target_kind": "task", "target_id": task.ID},
		"create_or_update_rating": map[string]any{"target_kind": "task", "target_id": task.ID,
			"scores": map[string]any{"focus": 70}},
	}
}

// createFullTask creates a task with a checklist, a running timer and a plan block.
func (fx *fixture) createFullTask(category string) (reeve.Task, reeve.Checklist, reeve.TimeEntry, reeve.PlanBlock) {
	fx.T.Helper()
	task := fx.createTask(category, "Squat twice a week")
	list := fx.createChecklist(task.ID, "Steps", "one", "two")
	var entry reeve.TimeEntry
	fx.Want(http.StatusCreated, &entry, "POST", "/api/journal/timers", reeve.TimerStart{TaskID: task.ID})
	var plan reeve.DayPlan
	fx.Want(http.StatusOK, &plan, "POST", "/api/journal/plans/2026-02-18/blocks",
		reeve.PlanChange{Upserts: []reeve.BlockDraft{
			{CategoryID: category, StartsAt: "2026-02-18T08:00:00Z", EndsAt: "2026-02-18T09:00:00Z"}}})
	return task, list, entry, plan.Blocks[0]
}

// TestL16_Refusals checks that every tool refuses entities in categories that the agent may not access. An agent
// without categories may access nothing. Each refusal has the code out_of_scope and logs an action and its result.
func TestL16_Refusals(t *testing.T) {
	fx := newFixture(t, host.Config{})
	task, list, entry, block := fx.createFullTask(fx.gym)
	outsider, nobody := fx.createAgent("outsider", fx.home), fx.createAgent("nobody")
	// These tools omit entities that are out of scope.
	filtered := []string{"list_allowed_categories", "resolve_task_reference", "get_or_create_day_plan"}
	before := fx.getTask(task.ID)
	args := argsForEachTool(fx, task, list, entry, block)
	if n := len(args) + 1; n != len((&journal.Pack{}).Tools()) { // with change_get
		t.Fatalf("%d tools are tested, there are %d", n, len((&journal.Pack{}).Tools()))
	}
	// To change_get, a change outside the scope looks like a missing one.
	var found api.ChangeList
	fx.Want(http.StatusOK, &found, "GET", "/api/changes?entity="+task.ID, nil)
	change := map[string]any{"change_id": found.Changes[0].ID}
	fx.mustCall(fx.createAgent("insider", fx.gym), "change_get", change)
	fx.wantError(reeve.NotFound, outsider, "change_get", change)
	fx.wantError(reeve.OutOfScope, nobody, "change_get", change)
	for tool, a := range args {
		fx.checkLogged(nobody, tool, fx.wantError(reeve.OutOfScope, nobody, tool, a))
		if slices.Contains(filtered, tool) {
			got := fx.mustCall(outsider, tool, a)
			if strings.Contains(got.Result.Content, task.ID) || strings.Contains(got.Result.Content, fx.gym) ||
				strings.Contains(got.Result.Content, block.ID) {
				t.Errorf("%s shows what is out of scope: %s", tool, got.Result.Content)
			}
			continue
		}
		fx.checkLogged(outsider, tool, fx.wantError(reeve.OutOfScope, outsider, tool, a))
	}
	if after := fx.getTask(task.ID); !after.UpdatedAt.Equal(before.UpdatedAt) || len(after.Checklists) != 1 ||
		joinTitles(after.Checklists[0].Items) != "one two" {
		t.Errorf("a refused call changed something: %+v", after)
	}
}

// checkLogged checks that the messages of the agent contain the refused call and its result.
func (fx *fixture) checkLogged(agent, tool string, r refusal) {
	fx.T.Helper()
	if r.CallID == "" {
		fx.T.Fatalf("%s: the refusal names no call", tool)
	}
	cursor := ""
	for {
		var page api.MessageList
		fx.Want(http.StatusOK, &page, "GET", "/api/agents/"+agent+"/messages?limit=500&cursor="+cursor, nil)
		action, result := false, false
		for _, m := range page.Messages {
			action = action || (m.ID == r.CallID && m.Kind == reeve.Action)
			if m.ActionID == r.CallID {
				var info reeve.ResultInfo
				if err := json.Unmarshal(m.Metadata, &info); err != nil {
					fx.T.Fatal(err)
				}
				result = info.Code == reeve.OutOfScope && m.Kind == reeve.ToolResult
			}
		}
		if action && result {
			return
		}
		if cursor = page.Next; cursor == "" {
			fx.T.Fatalf("%s: action %v, result %v", tool, action, result)
		}
	}
}

// TestL16_Reads checks that reads return only entities in the agent's categories.
func TestL16_Reads(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		mine, other := fx.createTask(fx.gym, "Row for an hour"), fx.createTask(fx.home, "Row of hedges")
		both := fx.createAgent("both", fx.gym, fx.home)
		coach := fx.createAgent("coach", fx.gym)
		if got := fx.mustCall(both, "list_tasks_in_scope", map[string]any{}); len(got.Tasks) != 2 {
			t.Fatalf("got %d tasks", len(got.Tasks))
		}
		got := fx.mustCall(coach, "list_tasks_in_scope", map[string]any{"text": "ROW"})
		if len(got.Tasks) != 1 || got.Tasks[0].ID != mine.ID {
			t.Fatalf("got %+v", got.Tasks)
		}
		if c := fx.mustCall(coach, "list_allowed_categories", map[string]any{}); len(c.Categories) != 1 ||
			c.Categories[0].ID != fx.gym {
			t.Fatalf("got %+v", c.Categories)
		}
		if r := fx.mustCall(coach, "resolve_task_reference", map[string]any{"reference": "row"}).Result.Content; strings.Contains(r, other.ID) || !strings.Contains(r, mine.ID) {
			t.Fatal(r)
		}
		// Plans and ratings contain only the entries in the agent's categories.
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-02-18/blocks",
			reeve.PlanChange{Upserts: []reeve.BlockDraft{
				{CategoryID: fx.gym, StartsAt: "2026-02-18T08:00:00Z", EndsAt: "2026-02-18T09:00:00Z"},
				{CategoryID: fx.home, StartsAt: "2026-02-18T10:00:00Z", EndsAt: "2026-02-18T11:00:00Z"}}})
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-02-18/pins",
			reeve.PinChange{Pin: []string{other.ID, mine.ID}})
		plan := fx.mustCall(coach, "get_or_create_day_plan", map[string]any{"plan_date": "2026-02-18"}).Plan
		if len(plan.Blocks) != 1 || plan.Blocks[0].CategoryID != fx.gym || len(plan.Pinned) != 1 ||
			plan.Pinned[0] != mine.ID {
			t.Fatalf("got %+v", plan)
		}
		for _, task := range []reeve.Task{mine, other} {
			fx.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", reeve.RatingDraft{Target: reeve.RatedTask,
				TargetID: task.ID, Scores: map[string]int64{"focus": 50}})
		}
		if s := fx.mustCall(coach, "get_ratings_summary", map[string]any{}); s.Count != 1 {
			t.Fatalf("got %+v", s)
		}
		// Replanning keeps the blocks that the agent cannot see.
		fx.mustCall(coach, "replan_day_blocks", map[string]any{"plan_date": "2026-02-18", "blocks": []any{}})
		var left reeve.DayPlan
		fx.Want(http.StatusOK, &left, "GET", "/api/journal/plans/2026-02-18", nil)
		if len(left.Blocks) != 1 || left.Blocks[0].CategoryID != fx.home {
			t.Fatalf("got %+v", left.Blocks)
		}
	})
}

// TestL16_Moves checks that a move between categories requires access to both.
func TestL16_Moves(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		here, there := fx.createTask(fx.gym, "Here"), fx.createTask(fx.home, "There")
		from, to := fx.createChecklist(here.ID, "From", "a", "b"), fx.createChecklist(there.ID, "To")
		coach, both := fx.createAgent("coach", fx.gym), fx.createAgent("both", fx.gym, fx.home)
		for tool, args := range map[string]map[string]any{
			"move_checklist_items": {"item_ids": []string{from.Items[0].ID}, "from_checklist_id": from.ID,
				"to_checklist_id": to.ID},
			"update_task_fields": {"task_id": here.ID, "category_id": fx.home},
			"create_follow_up_task": {"source_task_id": here.ID, "new_task_title": "Next",
				"preserve_category_and_labels": false, "category_id": fx.home},
			"conclude_task_with_rollover": {"task_id": here.ID, "target_task_id": there.ID},
			"move_checklist_items_to_new_task": {"item_ids": []string{from.Items[0].ID}, "from_checklist_id": from.ID,
				"new_task_title": "Own", "category_id": fx.home},
		} {
			fx.wantError(reeve.OutOfScope, coach, tool, args)
		}
		// The opposite direction is refused too, because the agent may not access the source.
		fx.wantError(reeve.OutOfScope, coach, "move_checklist_items", map[string]any{"item_ids": []string{"item_x"},
			"from_checklist_id": to.ID, "to_checklist_id": from.ID})
		if v := fx.getTask(here.ID); v.CategoryID != fx.gym || joinTitles(v.Checklists[0].Items) != "a b" ||
			len(v.Links) != 0 {
			t.Fatalf("a refused call changed something: %+v", v)
		}
		fx.mustCall(both, "move_checklist_items", map[string]any{"item_ids": []string{from.Items[0].ID},
			"from_checklist_id": from.ID, "to_checklist_id": to.ID})
		fx.mustCall(both, "update_task_fields", map[string]any{"task_id": here.ID, "category_id": fx.home})
		if v := fx.getTask(here.ID); v.CategoryID != fx.home || joinTitles(v.Checklists[0].Items) != "b" {
			t.Fatalf("got %+v", v)
		}
	})
}

// TestL16_OtherWorkspace checks that entities of another workspace are not found.
func TestL16_OtherWorkspace(t *testing.T) {
	fx := newFixture(t, host.Config{})
	task, list, entry, block := fx.createFullTask(fx.gym)
	fx.Want(http.StatusCreated, nil, "POST", "/api/workspaces", api.WorkspaceRequest{ID: "acme"})
	var p api.Problem
	acme := []string{"X-Workspace-Id", "acme"}
	fx.Want(http.StatusNotFound, &p, "GET", "/api/journal/tasks/"+task.ID, nil, acme...)
	existing := p.Detail
	fx.Want(http.StatusNotFound, &p, "GET", "/api/journal/tasks/task_none", nil, acme...)
	if strings.ReplaceAll(existing, task.ID, "?") != strings.ReplaceAll(p.Detail, "task_none", "?") {
		t.Errorf("the messages differ: %q and %q", existing, p.Detail)
	}
	for _, path := range []string{"checklists/" + list.ID, "time-entries/" + entry.ID, "ratings/plan_block/" + block.ID,
		"categories/" + fx.gym} {
		fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/"+path, nil, acme...)
	}
	agent := fx.createAgent("coach", fx.gym)
	fx.wantError(reeve.NotFound, agent, "update_task_estimate", map[string]any{"task_id": "task_none",
		"estimate_minutes": 1})
	fx.wantError(reeve.NotFound, agent, "create_task", map[string]any{"category_id": "cat_none", "title": "x"})
}

// TestL16_MovedMeanwhile checks that an entity that leaves the agent's categories between the gate's check and the
// change is not changed. The gate checks an approved call again, and the handler checks the scope too.
func TestL16_MovedMeanwhile(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		task := fx.createTask(fx.gym, "Run")
		coach := fx.createAgent("coach", fx.gym)
		fx.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+coach,
			map[string]any{"policy": map[string]any{"tools": map[string]string{"create_checklist": "ask"}}})
		res := fx.Call(coach, "create_checklist", map[string]any{"task_id": task.ID, "title": "Steps"})
		if res.Code != reeve.ApprovalRequired {
			t.Fatalf("got %+v", res)
		}
		fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/tasks/"+task.ID, map[string]any{"category_id": fx.home})
		fx.Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
			api.DecisionRequest{Decision: "approve"})
		fx.RunUntilIdle(t.Context())
		var op reeve.Operation
		fx.Want(http.StatusOK, &op, "GET", "/api/operations/"+res.OperationID, nil)
		if op.Code != reeve.OutOfScope || op.State == reeve.Committed {
			t.Fatalf("got %+v", op)
		}
		if v := fx.getTask(task.ID); len(v.Checklists) != 0 {
			t.Fatalf("the call changed the task: %+v", v)
		}
	})
	t.Run("between check and handler", func(t *testing.T) {
		ctx := t.Context()
		e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(t.TempDir(), "db")})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, e, storetest.Key)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var gym, home reeve.Category
		var task reeve.Task
		update := func(f func(jw *store.JournalWriter) error) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				jw, err := tx.JournalWriter(ctx, store.JournalScope{Workspace: "default", User: "ann", All: true})
				if err != nil {
					return err
				}
				return f(jw)
			})
		}
		err = update(func(jw *store.JournalWriter) (err error) {
			if gym, err = jw.CreateCategory(ctx, reeve.CategoryRequest{Name: "Gym"}); err != nil {
				return err
			}
			if home, err = jw.CreateCategory(ctx, reeve.CategoryRequest{Name: "Home"}); err != nil {
				return err
			}
			task, err = jw.CreateTask(ctx, reeve.TaskDraft{CategoryID: gym.ID, Title: "Run"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range (&journal.Pack{DB: db}).Tools() {
			if tool.ID != "update_task_estimate" {
				continue
			}
			inv := func() *reeve.Invocation {
				return &reeve.Invocation{Workspace: "default", Agent: "agt_coach", Operation: "op_1",
					Args:       []byte(`{"task_id":"` + task.ID + `","estimate_minutes":5}`),
					Categories: []string{gym.ID}}
			}
			if seen, err := tool.Categories(ctx, inv()); err != nil || !slices.Equal(seen, []string{gym.ID}) {
				t.Fatalf("checked categories %v, %v", seen, err)
			}
			if err := update(func(jw *store.JournalWriter) error {
				_, err := jw.UpdateTask(ctx, task.ID, reeve.TaskChange{CategoryID: &home.ID}, "")
				return err
			}); err != nil {
				t.Fatal(err)
			}
			err := db.Update(ctx, func(tx *store.Tx) error {
				_, err := tool.Handler(store.WithTx(context.WithoutCancel(ctx), tx), inv())
				return err
			})
			if reeve.CodeOf(err) != reeve.OutOfScope {
				t.Fatalf("got %v", err)
			}
		}
	})
}
