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

// TestL17_People: people use the journal by the same rules, in their roles, and what they change is told as what agents
// change.
func TestL17_People(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		var made api.NewToken
		w.Want(http.StatusCreated, &made, "POST", "/api/tokens", api.TokenRequest{Name: "eve", User: "eve",
			Role: reeve.Viewer})
		eve := []string{"Authorization", "Bearer " + made.Token}
		w.Want(http.StatusForbidden, nil, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Mine"},
			eve...)
		w.Want(http.StatusOK, nil, "GET", "/api/journal/categories", nil, eve...)

		// A key makes a task once.
		draft := reeve.TaskDraft{CategoryID: w.home, Title: "Paint", DueDate: "2026-05-01"}
		var one, two reeve.Task
		w.Want(http.StatusCreated, &one, "POST", "/api/journal/tasks", draft, "Idempotency-Key", "k")
		w.Want(http.StatusCreated, &two, "POST", "/api/journal/tasks", draft, "Idempotency-Key", "k")
		if one.ID != two.ID {
			t.Errorf("made %s and %s", one.ID, two.ID)
		}
		if one.CreatedBy == "" {
			t.Error("nobody made it")
		}
		for range 6 {
			w.task(w.gym, "Row")
		}
		// Pages join to the whole, newest first.
		var all []string
		for cursor := ""; ; {
			var page api.TaskList
			w.Want(http.StatusOK, &page, "GET", "/api/journal/tasks?limit=3&cursor="+cursor, nil)
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
		for query, want := range map[string]int{"category=" + w.home: 1, "status=open,done": 7, "status=done": 0,
			"due_before=2026-05-01": 1, "due_after=2026-05-02": 0, "text=pAi": 1, "open=true": 7} {
			var page api.TaskList
			w.Want(http.StatusOK, &page, "GET", "/api/journal/tasks?"+query, nil)
			if len(page.Tasks) != want {
				t.Errorf("%s: %d tasks, want %d", query, len(page.Tasks), want)
			}
		}
		for _, query := range []string{"status=DONE", "due_before=soon", "cursor=x", "colour=red"} {
			var p api.Problem
			if w.Want(http.StatusBadRequest, &p, "GET", "/api/journal/tasks?"+query, nil); p.Code != reeve.Validation ||
				len(p.Errors) == 0 {
				t.Errorf("%s: %+v", query, p)
			}
		}
		var p api.Problem
		w.Want(http.StatusConflict, &p, "DELETE", "/api/journal/categories/"+w.gym, nil)
		w.Want(http.StatusConflict, &p, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: " HOME"})
		if p.Code != reeve.AlreadyExists || p.Errors[0].Path != "/name" {
			t.Errorf("got %+v", p)
		}
		w.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/tasks/"+one.ID, nil)
		w.Want(http.StatusNotFound, nil, "GET", "/api/journal/tasks/"+one.ID, nil)
		w.Want(http.StatusNotFound, nil, "PATCH", "/api/journal/tasks/"+one.ID, map[string]any{"title": "x"})
		w.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/categories/"+w.home, nil)
	})
}

// TestO11_NoNameIsAnID: a name that has the form of an id would pass for what has it, or had it.
func TestO11_NoNameIsAnID(t *testing.T) {
	w := start(t, host.Config{})
	var label reeve.Label
	w.Want(http.StatusCreated, &label, "POST", "/api/journal/labels", reeve.LabelRequest{Name: "urgent"})
	for _, name := range []string{w.home, " " + strings.ToUpper(w.home) + " ", label.ID} {
		for path, method := range map[string]string{"categories": "POST", "labels": "POST", "categories/" +
			w.gym: "PATCH", "labels/" + label.ID: "PATCH"} {
			var p api.Problem
			w.Want(http.StatusBadRequest, &p, method, "/api/journal/"+path, map[string]any{"name": name})
			if p.Code != reeve.Validation || p.Errors[0].Path != "/name" || !strings.Contains(p.Errors[0].Message,
				"form of an id") {
				t.Errorf("%s %s %q: %+v", method, path, name, p)
			}
		}
	}
}

// TestO11_JournalOfOthers: another user's time, plans and ratings are not there.
func TestO11_JournalOfOthers(t *testing.T) {
	w := start(t, host.Config{})
	task, _, entry, block := w.filled(w.gym)
	w.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", reeve.RatingDraft{Target: reeve.RatedTask,
		TargetID: task.ID, Scores: map[string]int64{"focus": 1}})
	var made api.NewToken
	w.Want(http.StatusCreated, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob",
		Role: reeve.Member})
	bob := []string{"Authorization", "Bearer " + made.Token}
	for _, id := range []string{entry.ID, "time_none"} {
		var p api.Problem
		w.Want(http.StatusNotFound, &p, "GET", "/api/journal/time-entries/"+id, nil, bob...)
		if p.Detail != `time entry "`+id+`" not found` {
			t.Errorf("got %q", p.Detail)
		}
		w.Want(http.StatusNotFound, nil, "DELETE", "/api/journal/time-entries/"+id, nil, bob...)
	}
	w.Want(http.StatusNotFound, nil, "POST", "/api/journal/plans/2026-02-18/blocks",
		reeve.PlanChange{Deletes: []string{block.ID}}, bob...)
	w.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/plan_block/"+block.ID, nil, bob...)
	w.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil, bob...)
	var plan reeve.DayPlan
	if w.Want(http.StatusOK, &plan, "GET", "/api/journal/plans/2026-02-18", nil, bob...); len(plan.Blocks) != 0 {
		t.Errorf("got %+v", plan)
	}
	a := w.agent("coach", w.gym)
	for _, tool := range []string{"annotate_time_entry", "stop_task_timer"} {
		args := map[string]any{"time_entry_id": entry.ID, "description": "x"}
		theirs := w.refused(reeve.NotFound, a, tool, args, bob...)
		args["time_entry_id"] = "time_none"
		none := w.refused(reeve.NotFound, a, tool, args, bob...)
		if strings.ReplaceAll(theirs.Message, entry.ID, "?") != strings.ReplaceAll(none.Message, "time_none", "?") {
			t.Errorf("told apart: %q and %q", theirs.Message, none.Message)
		}
	}
}

// TestL17_WakesWatchers: a person's change is told as an agent's is, and queues a wake for an agent that watches for
// it; what its predicate asks about is there.
func TestL17_WakesWatchers(t *testing.T) {
	ctx := t.Context()
	w := start(t, host.Config{})
	watcher := w.Agent("watcher")
	w.Stop()
	// inside looks at the store of a Reeve that does not run.
	inside := func(f func(tx *store.Tx) error) {
		t.Helper()
		e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(w.Dir(), "reeve.db")})
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
	inside(func(tx *store.Tx) error {
		return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub_1", WorkspaceID: "default",
			AgentID: watcher.ID,
			Token:   reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}, Predicate: `entity.category_id == "` + w.gym +
				`"`})
	})
	w.Host = reevetest.StartWith(t, host.Config{Dir: w.Dir()})
	task := w.task(w.gym, "Row")
	w.Stop()
	inside(func(tx *store.Tx) error {
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
				Categories: []string{w.gym}}, reeve.KeyTask, ids)
		if err != nil || !slices.ContainsFunc(found, func(m map[string]any) bool {
			return m["id"] == task.ID && m["category_id"] == w.gym && m["kind"] == "task"
		}) {
			t.Errorf("entities %v, %v", found, err)
		}
		return nil
	})
}
