package journal_test

import (
	"errors"
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
	"reeve/reevetest"
	"reeve/toolbox/journal"
)

// TestL17_Users checks that users change the journal under the same rules as agents, limited by their roles.
func TestL17_Users(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		var made api.NewToken
		fx.Want(http.StatusCreated, &made, "POST", "/api/tokens", api.TokenRequest{Name: "eve", User: "eve",
			Role: reeve.Viewer})
		eve := []string{"Authorization", "Bearer " + made.Token}
		fx.Want(http.StatusForbidden, nil, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Mine"},
			eve...)
		fx.Want(http.StatusOK, nil, "GET", "/api/journal/categories", nil, eve...)

		// Two requests with one idempotency key create one task.
		draft := reeve.TaskDraft{CategoryID: fx.home, Title: "Paint", DueDate: "2026-05-01"}
		var one, two reeve.Task
		fx.Want(http.StatusCreated, &one, "POST", "/api/journal/tasks", draft, "Idempotency-Key", "k")
		fx.Want(http.StatusCreated, &two, "POST", "/api/journal/tasks", draft, "Idempotency-Key", "k")
		if one.ID != two.ID {
			t.Errorf("created %s and %s", one.ID, two.ID)
		}
		if one.CreatedBy == "" {
			t.Error("the task has no creator")
		}
		for range 6 {
			fx.createTask(fx.gym, "Row")
		}
		// The pages contain all tasks, newest first.
		var all []string
		for cursor := ""; ; {
			var page api.TaskList
			fx.Want(http.StatusOK, &page, "GET", "/api/journal/tasks?limit=3&cursor="+cursor, nil)
			for _, v := range page.Tasks {
				all = append(all, v.ID)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(all))); len(all) != 7 || len(distinct) != 7 ||
			all[6] != one.ID {
			t.Errorf("got %v", all)
		}
		for query, want := range map[string]int{"category=" + fx.home: 1, "status=open,done": 7, "status=done": 0,
			"due_before=2026-05-01": 1, "due_after=2026-05-02": 0, "text=pAi": 1, "open=true": 7} {
			var page api.TaskList
			fx.Want(http.StatusOK, &page, "GET", "/api/journal/tasks?"+query, nil)
			if len(page.Tasks) != want {
				t.Errorf("%s: %d tasks, want %d", query, len(page.Tasks), want)
			}
		}
		for _, query := range []string{"status=DONE", "due_before=soon", "cursor=x", "colour=red"} {
			var p api.Problem
			if fx.Want(http.StatusBadRequest, &p, "GET", "/api/journal/tasks?"+query, nil); p.Code != reeve.Validation ||
				len(p.Errors) == 0 {
				t.Errorf("%s: %+v", query, p)
			}
		}
		var p api.Problem
		fx.Want(http.StatusConflict, &p, "DELETE", "/api/journal/categories/"+fx.gym, nil)
		fx.Want(http.StatusConflict, &p, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: " HOME"})
		if p.Code != reeve.AlreadyExists || p.Errors[0].Path != "/name" {
			t.Errorf("got %+v", p)
		}
		fx.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/tasks/"+one.ID, nil)
		fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/tasks/"+one.ID, nil)
		fx.Want(http.StatusNotFound, nil, "PATCH", "/api/journal/tasks/"+one.ID, map[string]any{"title": "x"})
		fx.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/categories/"+fx.home, nil)
	})
}

// TestO11_NameInFormOfIDIsRefused checks that a name in the form of an id is refused, because it could be mistaken for
// the id of another entity.
func TestO11_NameInFormOfIDIsRefused(t *testing.T) {
	fx := newFixture(t, host.Config{})
	var label reeve.Label
	fx.Want(http.StatusCreated, &label, "POST", "/api/journal/labels", reeve.LabelRequest{Name: "urgent"})
	for _, name := range []string{fx.home, " " + strings.ToUpper(fx.home) + " ", label.ID} {
		for path, method := range map[string]string{"categories": "POST", "labels": "POST", "categories/" +
			fx.gym: "PATCH", "labels/" + label.ID: "PATCH"} {
			var p api.Problem
			fx.Want(http.StatusBadRequest, &p, method, "/api/journal/"+path, map[string]any{"name": name})
			if p.Code != reeve.Validation || p.Errors[0].Path != "/name" || !strings.Contains(p.Errors[0].Message,
				"form of an id") {
				t.Errorf("%s %s %q: %+v", method, path, name, p)
			}
		}
	}
}

// TestO11_JournalOfOthers checks that another user's time entries, plans and ratings are not visible.
func TestO11_JournalOfOthers(t *testing.T) {
	fx := newFixture(t, host.Config{})
	task, _, entry, block := fx.createFullTask(fx.gym)
	fx.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", reeve.RatingDraft{Target: reeve.RatedTask,
		TargetID: task.ID, Scores: map[string]int64{"focus": 1}})
	var made api.NewToken
	fx.Want(http.StatusCreated, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob",
		Role: reeve.Member})
	bob := []string{"Authorization", "Bearer " + made.Token}
	for _, id := range []string{entry.ID, "time_none"} {
		var p api.Problem
		fx.Want(http.StatusNotFound, &p, "GET", "/api/journal/time-entries/"+id, nil, bob...)
		if p.Detail != `time entry "`+id+`" not found` {
			t.Errorf("got %q", p.Detail)
		}
		fx.Want(http.StatusNotFound, nil, "DELETE", "/api/journal/time-entries/"+id, nil, bob...)
	}
	fx.Want(http.StatusNotFound, nil, "POST", "/api/journal/plans/2026-02-18/blocks",
		reeve.PlanChange{Deletes: []string{block.ID}}, bob...)
	fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/plan_block/"+block.ID, nil, bob...)
	fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil, bob...)
	var plan reeve.DayPlan
	if fx.Want(http.StatusOK, &plan, "GET", "/api/journal/plans/2026-02-18", nil, bob...); len(plan.Blocks) != 0 {
		t.Errorf("got %+v", plan)
	}
	a := fx.createAgent("coach", fx.gym)
	for _, tool := range []string{"annotate_time_entry", "stop_task_timer"} {
		args := map[string]any{"time_entry_id": entry.ID, "description": "x"}
		theirs := fx.wantError(reeve.NotFound, a, tool, args, bob...)
		args["time_entry_id"] = "time_none"
		none := fx.wantError(reeve.NotFound, a, tool, args, bob...)
		if strings.ReplaceAll(theirs.Message, entry.ID, "?") != strings.ReplaceAll(none.Message, "time_none", "?") {
			t.Errorf("the messages differ: %q and %q", theirs.Message, none.Message)
		}
	}
}

// TestL17_WakesWatchers checks that a user's change queues a wake for an agent that subscribes to it, and that the
// subscription's predicate can read the changed entity.
func TestL17_WakesWatchers(t *testing.T) {
	ctx := t.Context()
	fx := newFixture(t, host.Config{})
	watcher := fx.Agent("watcher")
	fx.Stop()
	// update opens the store of the stopped server and runs f in a transaction.
	update := func(f func(tx *store.Tx) error) {
		t.Helper()
		e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(fx.Dir(), "reeve.db")})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(ctx, e, storetest.Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(ctx, f), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	update(func(tx *store.Tx) error {
		return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub_1", WorkspaceID: "default",
			AgentID: watcher.ID,
			Token:   reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}, Predicate: `entity.category_id == "` +
				fx.gym +
				`"`})
	})
	fx.Host = reevetest.StartWith(t, host.Config{Dir: fx.Dir()})
	task := fx.createTask(fx.gym, "Row")
	fx.Stop()
	update(func(tx *store.Tx) error {
		wakes, err := tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: watcher.ID, WorkspaceID: "default"}, 10)
		if err != nil || len(wakes) != 1 {
			t.Fatalf("wakes %+v, %v", wakes, err)
		}
		ids, err := tx.Queue().ChangedIDs(ctx, "default", wakes[0].OperationID)
		if err != nil {
			return err
		}
		found, err := (&journal.Pack{}).
			Entities(ctx, &tx.Snap, store.JournalScope{Workspace: "default", User: "owner",
				Categories: []string{fx.gym}}, reeve.KeyTask, ids)
		if err != nil || !slices.ContainsFunc(found, func(m map[string]any) bool {
			return m["id"] == task.ID && m["category_id"] == fx.gym && m["kind"] == "task"
		}) {
			t.Errorf("entities %v, %v", found, err)
		}
		return nil
	})
}
