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

// everything gives arguments for each tool that touch one task, its checklist, time entry and block.
func everything(w *world, task reeve.Task, list reeve.Checklist, entry reeve.TimeEntry,
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

// filled is a task with a checklist, a running timer and a block.
func (w *world) filled(category string) (reeve.Task, reeve.Checklist, reeve.TimeEntry, reeve.PlanBlock) {
	w.T.Helper()
	task := w.task(category, "Squat twice a week")
	list := w.checklist(task.ID, "Steps", "one", "two")
	var entry reeve.TimeEntry
	w.Want(http.StatusCreated, &entry, "POST", "/api/journal/timers", reeve.TimerStart{TaskID: task.ID})
	var plan reeve.DayPlan
	w.Want(http.StatusOK, &plan, "POST", "/api/journal/plans/2026-02-18/blocks",
		reeve.PlanChange{Upserts: []reeve.BlockDraft{
			{CategoryID: category, StartsAt: "2026-02-18T08:00:00Z", EndsAt: "2026-02-18T09:00:00Z"}}})
	return task, list, entry, plan.Blocks[0]
}

// TestL16_Refusals: every tool refuses what is in a category that is not the agent's, and with no category everything;
// each refusal is out_of_scope and leaves an action and its result, and nothing else.
func TestL16_Refusals(t *testing.T) {
	w := start(t, host.Config{})
	task, list, entry, block := w.filled(w.gym)
	outsider, nobody := w.agent("outsider", w.home), w.agent("nobody")
	// see nothing of it, rather than being refused
	filtered := []string{"list_allowed_categories", "resolve_task_reference", "get_or_create_day_plan"}
	before := w.view(task.ID)
	args := everything(w, task, list, entry, block)
	if len(args) != len((&journal.Pack{}).Tools()) {
		t.Fatalf("%d tools are tried, there are %d", len(args), len((&journal.Pack{}).Tools()))
	}
	for tool, a := range args {
		w.audit(nobody, tool, w.refused(reeve.OutOfScope, nobody, tool, a))
		if slices.Contains(filtered, tool) {
			got := w.does(outsider, tool, a)
			if strings.Contains(got.Result.Content, task.ID) || strings.Contains(got.Result.Content, w.gym) ||
				strings.Contains(got.Result.Content, block.ID) {
				t.Errorf("%s shows what is out of scope: %s", tool, got.Result.Content)
			}
			continue
		}
		w.audit(outsider, tool, w.refused(reeve.OutOfScope, outsider, tool, a))
	}
	if after := w.view(task.ID); !after.UpdatedAt.Equal(before.UpdatedAt) || len(after.Checklists) != 1 ||
		titles(after.Checklists[0].Items) != "one two" {
		t.Errorf("a refused call changed something: %+v", after)
	}
}

// audit checks that a refused call left its pair of messages.
func (w *world) audit(agent, tool string, r refusal) {
	w.T.Helper()
	if r.CallID == "" {
		w.T.Fatalf("%s: the refusal names no call", tool)
	}
	cursor := ""
	for {
		var page api.MessageList
		w.Want(http.StatusOK, &page, "GET", "/api/agents/"+agent+"/messages?limit=500&cursor="+cursor, nil)
		action, result := false, false
		for _, m := range page.Messages {
			action = action || (m.ID == r.CallID && m.Kind == reeve.Action)
			if m.ActionID == r.CallID {
				var info reeve.ResultInfo
				if err := json.Unmarshal(m.Metadata, &info); err != nil {
					w.T.Fatal(err)
				}
				result = info.Code == reeve.OutOfScope && m.Kind == reeve.ToolResult
			}
		}
		if action && result {
			return
		}
		if cursor = page.Next; cursor == "" {
			w.T.Fatalf("%s: action %v, result %v", tool, action, result)
		}
	}
}

// TestL16_Reads: reads show only the agent's categories.
func TestL16_Reads(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		mine, other := w.task(w.gym, "Row for an hour"), w.task(w.home, "Row of hedges")
		both := w.agent("both", w.gym, w.home)
		coach := w.agent("coach", w.gym)
		if got := w.does(both, "list_tasks_in_scope", map[string]any{}); len(got.Tasks) != 2 {
			t.Fatalf("got %d tasks", len(got.Tasks))
		}
		got := w.does(coach, "list_tasks_in_scope", map[string]any{"text": "ROW"})
		if len(got.Tasks) != 1 || got.Tasks[0].ID != mine.ID {
			t.Fatalf("got %+v", got.Tasks)
		}
		if c := w.does(coach, "list_allowed_categories", map[string]any{}); len(c.Categories) != 1 ||
			c.Categories[0].ID != w.gym {
			t.Fatalf("got %+v", c.Categories)
		}
		if r := w.does(coach, "resolve_task_reference", map[string]any{"reference": "row"}).
			Result.Content; strings.Contains(r, other.ID) || !strings.Contains(r, mine.ID) {
			t.Fatal(r)
		}
		// A plan and ratings show the part that is the agent's.
		w.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-02-18/blocks",
			reeve.PlanChange{Upserts: []reeve.BlockDraft{
				{CategoryID: w.gym, StartsAt: "2026-02-18T08:00:00Z", EndsAt: "2026-02-18T09:00:00Z"},
				{CategoryID: w.home, StartsAt: "2026-02-18T10:00:00Z", EndsAt: "2026-02-18T11:00:00Z"}}})
		w.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-02-18/pins",
			reeve.PinChange{Pin: []string{other.ID, mine.ID}})
		plan := w.does(coach, "get_or_create_day_plan", map[string]any{"plan_date": "2026-02-18"}).Plan
		if len(plan.Blocks) != 1 || plan.Blocks[0].CategoryID != w.gym || len(plan.Pinned) != 1 ||
			plan.Pinned[0] != mine.ID {
			t.Fatalf("got %+v", plan)
		}
		for _, task := range []reeve.Task{mine, other} {
			w.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", reeve.RatingDraft{Target: reeve.RatedTask,
				TargetID: task.ID, Scores: map[string]int64{"focus": 50}})
		}
		if s := w.does(coach, "get_ratings_summary", map[string]any{}); s.Count != 1 {
			t.Fatalf("got %+v", s)
		}
		// Replanning leaves what cannot be seen.
		w.does(coach, "replan_day_blocks", map[string]any{"plan_date": "2026-02-18", "blocks": []any{}})
		var left reeve.DayPlan
		w.Want(http.StatusOK, &left, "GET", "/api/journal/plans/2026-02-18", nil)
		if len(left.Blocks) != 1 || left.Blocks[0].CategoryID != w.home {
			t.Fatalf("got %+v", left.Blocks)
		}
	})
}

// TestL16_Moves: what crosses categories needs both to be the agent's.
func TestL16_Moves(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		here, there := w.task(w.gym, "Here"), w.task(w.home, "There")
		from, to := w.checklist(here.ID, "From", "a", "b"), w.checklist(there.ID, "To")
		coach, both := w.agent("coach", w.gym), w.agent("both", w.gym, w.home)
		for tool, args := range map[string]map[string]any{
			"move_checklist_items": {"item_ids": []string{from.Items[0].ID}, "from_checklist_id": from.ID,
				"to_checklist_id": to.ID},
			"update_task_fields": {"task_id": here.ID, "category_id": w.home},
			"create_follow_up_task": {"source_task_id": here.ID, "new_task_title": "Next",
				"preserve_category_and_labels": false, "category_id": w.home},
			"conclude_task_with_rollover": {"task_id": here.ID, "target_task_id": there.ID},
			"move_checklist_items_to_new_task": {"item_ids": []string{from.Items[0].ID}, "from_checklist_id": from.ID,
				"new_task_title": "Own", "category_id": w.home},
		} {
			w.refused(reeve.OutOfScope, coach, tool, args)
		}
		// The other way round is refused as well: the source is not the agent's.
		w.refused(reeve.OutOfScope, coach, "move_checklist_items", map[string]any{"item_ids": []string{"item_x"},
			"from_checklist_id": to.ID, "to_checklist_id": from.ID})
		if v := w.view(here.ID); v.CategoryID != w.gym || titles(v.Checklists[0].Items) != "a b" || len(v.Links) != 0 {
			t.Fatalf("a refused call changed something: %+v", v)
		}
		w.does(both, "move_checklist_items", map[string]any{"item_ids": []string{from.Items[0].ID},
			"from_checklist_id": from.ID, "to_checklist_id": to.ID})
		w.does(both, "update_task_fields", map[string]any{"task_id": here.ID, "category_id": w.home})
		if v := w.view(here.ID); v.CategoryID != w.home || titles(v.Checklists[0].Items) != "b" {
			t.Fatalf("got %+v", v)
		}
	})
}

// TestL16_Strangers: what is in another workspace is not there at all.
func TestL16_Strangers(t *testing.T) {
	w := start(t, host.Config{})
	task, list, entry, block := w.filled(w.gym)
	w.Want(http.StatusCreated, nil, "POST", "/api/workspaces", api.WorkspaceRequest{ID: "acme"})
	var p api.Problem
	acme := []string{"X-Workspace-Id", "acme"}
	w.Want(http.StatusNotFound, &p, "GET", "/api/journal/tasks/"+task.ID, nil, acme...)
	strange := p.Detail
	w.Want(http.StatusNotFound, &p, "GET", "/api/journal/tasks/task_none", nil, acme...)
	if strings.ReplaceAll(strange, task.ID, "?") != strings.ReplaceAll(p.Detail, "task_none", "?") {
		t.Errorf("told apart: %q and %q", strange, p.Detail)
	}
	for _, path := range []string{"checklists/" + list.ID, "time-entries/" + entry.ID, "ratings/plan_block/" + block.ID,
		"categories/" + w.gym} {
		w.Want(http.StatusNotFound, nil, "GET", "/api/journal/"+path, nil, acme...)
	}
	agent := w.agent("coach", w.gym)
	w.refused(reeve.NotFound, agent, "update_task_estimate", map[string]any{"task_id": "task_none",
		"estimate_minutes": 1})
	w.refused(reeve.NotFound, agent, "create_task", map[string]any{"category_id": "cat_none", "title": "x"})
}

// TestL16_MovedMeanwhile: an entity that leaves the agent's categories between the judgement and the change is not
// changed. A call that waits for a person is judged again; and the change itself looks, whoever judged it.
func TestL16_MovedMeanwhile(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		task := w.task(w.gym, "Run")
		coach := w.agent("coach", w.gym)
		w.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+coach,
			map[string]any{"policy": map[string]any{"tools": map[string]string{"create_checklist": "ask"}}})
		res := w.Call(coach, "create_checklist", map[string]any{"task_id": task.ID, "title": "Steps"})
		if res.Code != reeve.ApprovalRequired {
			t.Fatalf("got %+v", res)
		}
		w.Want(http.StatusOK, nil, "PATCH", "/api/journal/tasks/"+task.ID, map[string]any{"category_id": w.home})
		w.Want(http.StatusOK, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision",
			api.DecisionRequest{Decision: "approve"})
		w.RunUntilIdle(t.Context())
		var op reeve.Operation
		w.Want(http.StatusOK, &op, "GET", "/api/operations/"+res.OperationID, nil)
		if op.Code != reeve.OutOfScope || op.State == reeve.Committed {
			t.Fatalf("got %+v", op)
		}
		if v := w.view(task.ID); len(v.Checklists) != 0 {
			t.Fatalf("written: %+v", v)
		}
	})
	t.Run("at the last moment", func(t *testing.T) {
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
		by := func(f func(w *store.JournalWriter) error) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				w, err := tx.JournalWriter(ctx, store.JournalScope{Workspace: "default", User: "ann", All: true})
				if err != nil {
					return err
				}
				return f(w)
			})
		}
		err = by(func(w *store.JournalWriter) (err error) {
			if gym, err = w.CreateCategory(ctx, reeve.CategoryRequest{Name: "Gym"}); err != nil {
				return err
			}
			if home, err = w.CreateCategory(ctx, reeve.CategoryRequest{Name: "Home"}); err != nil {
				return err
			}
			task, err = w.CreateTask(ctx, reeve.TaskDraft{CategoryID: gym.ID, Title: "Run"})
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
				t.Fatalf("judged by %v, %v", seen, err)
			}
			if err := by(func(w *store.JournalWriter) error {
				_, err := w.UpdateTask(ctx, task.ID, reeve.TaskChange{CategoryID: &home.ID}, "")
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
