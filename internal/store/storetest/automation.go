package storetest

import (
	"fmt"
	"reflect"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// automations tests automations, script versions, script runs and items.
var automations = map[string]func(*testing.T, *store.DB){
	"automation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		version := func(major, minor int) reeve.ScriptVersion {
			return reeve.ScriptVersion{ID: fmt.Sprintf("scr_%d_%d", major, minor), WorkspaceID: ws, AgentID: a.ID,
				Major: major, Minor: minor, Source: "1", Language: "js", Comment: "c", CreatedBy: "u"}
		}
		isAutomation := func() bool {
			return view(t, db, func(s *store.Snap) (bool, error) { return s.Automations().IsAutomation(ctx, a.ID) })
		}
		equal(t, isAutomation(), false, "automation before the first script")
		for _, v := range []reeve.ScriptVersion{version(0, 1), version(1, 0), version(1, 1), version(2, 0)} {
			update(t, db, func(tx *store.Tx) error { return tx.Automations().InsertScript(ctx, v) })
		}
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			v := version(1, 0)
			v.ID, v.Source = "scr_other", "2"
			return tx.Automations().InsertScript(ctx, v)
		}), reeve.AlreadyExists)
		for major, want := range map[int]string{-1: "2.0", 1: "1.1", 0: "0.1", 7: "0.0"} {
			equal(t, view(t, db, func(s *store.Snap) (reeve.ScriptVersion, error) {
				return s.Automations().LastVersion(ctx, a.ID, major)
			}).Version(), want, "last version")
		}
		got := view(t, db, func(s *store.Snap) (reeve.ScriptVersion, error) {
			return s.Automations().GetScript(ctx, ws, "scr_1_1")
		})
		want := version(1, 1)
		want.CreatedAt = got.CreatedAt
		equal(t, fmt.Sprint(got), fmt.Sprint(want), "round trip")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Automations().GetScript(ctx, "ws_two", "scr_1_1")
			return err
		}), reeve.NotFound)
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Automations().GetVersion(ctx, a.ID, 3, 0)
			return err
		}), reeve.NotFound)
		list := view(t, db, func(s *store.Snap) ([]reeve.ScriptVersion, error) {
			return s.Automations().ListVersions(ctx, a.ID, 3)
		})
		equal(t, joinIDs(list, func(v reeve.ScriptVersion) string { return v.Version() + v.Source }),
			joinIDs([]string{"2.0", "1.1", "1.0"}, func(s string) string { return s }),
			"versions, newest first, without source")

		now := reeve.FromMillis(reeve.Millis(reeve.Now()))
		update(t, db, func(tx *store.Tx) error {
			return tx.Automations().PutAutomation(ctx, reeve.Automation{AgentID: a.ID, WorkspaceID: ws,
				ScriptID: "scr_2_0"})
		})
		update(t, db, func(tx *store.Tx) error {
			return tx.Automations().PutAutomation(ctx, reeve.Automation{AgentID: a.ID, WorkspaceID: ws,
				ScriptID: "scr_1_1", PausedAt: &now, PausedRun: "run_1"})
		})
		m := view(t, db, func(s *store.Snap) (reeve.Automation, error) {
			return s.Automations().GetAutomation(ctx, ws, "one")
		})
		equal(t, fmt.Sprint(m.Version, m.PausedAt.Equal(now), m.PausedRun, m.Name, isAutomation()),
			"1.1truerun_1onetrue",
			"automation after rollback and pause")
		equal(t, view(t, db, func(s *store.Snap) (bool, error) { return s.Automations().IsPaused(ctx, a.ID) }), true,
			"paused")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Automation, error) {
			return s.Automations().ListAutomations(ctx, ws, "", 10)
		})), 1, "automations of the workspace")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Automation, error) {
			return s.Automations().ListAutomations(ctx, "ws_two", "", 10)
		})), 0, "automations of another workspace")
	},
	"script run": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		r := reeve.ScriptRun{RunKey: "key", WorkspaceID: ws, AgentID: a.ID, Type: reeve.DryRun}
		insert := func(want bool) {
			t.Helper()
			update(t, db, func(tx *store.Tx) error {
				ok, err := tx.Automations().InsertScriptRun(ctx, r)
				equal(t, ok, want, "inserted")
				return err
			})
		}
		insert(true)
		r.Type = reeve.ProductionRun
		insert(false)
		for _, script := range []string{"scr_1", "scr_2"} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().BeginScriptRun(ctx, "key", "run_1", script)
			})
		}
		r = reeve.ScriptRun{RunKey: "key", Class: reeve.LogicFailure, Progress: reeve.Progress{Done: 2, Current: "x",
			Spent: reeve.Amount{Micros: 3}}, Log: "a\x00b"}
		update(t, db, func(tx *store.Tx) error { return tx.Automations().UpdateScriptRun(ctx, r) })
		update(t, db, func(tx *store.Tx) error {
			got, ok, err := tx.Automations().FindScriptRunOf(ctx, ws, "run_1")
			equal(t, fmt.Sprint(ok, got.Type, got.ScriptID, got.Class, got.Progress == r.Progress, got.Log),
				"truedryscr_1logictruea\uFFFDb", "round trip")
			if _, other, err := tx.Automations().FindScriptRunOf(ctx, "ws_two", "run_1"); other || err != nil {
				t.Error("another workspace found the run", err)
			}
			return err
		})
		call := reeve.PlannedCall{Ordinal: 1, ItemID: "i", Title: "I", Attempt: 1, Tool: "echo", Args: `{}`,
			Preview: "+ a", Base: "b", Operation: "op_1", DependsOn: []int{1, 2}}
		for range 2 {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().InsertPlannedCall(ctx, ws, "run_1", call)
			})
		}
		op := newOperation("op_1", reeve.Committed)
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, op) })
		planned := view(t, db, func(s *store.Snap) ([]reeve.PlannedCall, error) {
			return s.Automations().ListPlannedCalls(ctx, ws, "run_1", 0, 10)
		})
		call.State = reeve.Committed
		equal(t, len(planned), 1, "planned calls after two inserts")
		if !reflect.DeepEqual(planned[0], call) {
			t.Errorf("planned call with the state of its operation: got %+v, want %+v", planned[0], call)
		}
	},
	"item": testItems,
}

// testItems tests the states and attempts of items.
func testItems(t *testing.T, db *store.DB) {
	ctx := t.Context()
	a := setUp(t, db)
	item := func(id, run string) reeve.Item {
		return reeve.Item{AgentID: a.ID, WorkspaceID: ws, ID: id, Title: "Title " + id + " " + run, Attempt: 1,
			CreatedBy: "automation", LastRun: run}
	}
	startItem := func(v reeve.Item) error {
		return db.Update(ctx, func(tx *store.Tx) error { return tx.Automations().StartItem(ctx, v, "scr_1") })
	}
	finishItem := func(v reeve.Item, s reeve.ItemState) {
		t.Helper()
		v.State = s
		update(t, db, func(tx *store.Tx) error { return tx.Automations().FinishItem(ctx, v) })
	}
	get := func(id string) reeve.Item {
		t.Helper()
		return view(t, db, func(s *store.Snap) (reeve.Item, error) { return s.Automations().GetItem(ctx, a.ID, id) })
	}
	// K14: concurrent starts of one id make one row.
	must(t, firstError(runConcurrently(16, func(int) error { return startItem(item("a", "run_1")) })))
	equal(t, view(t, db, func(s *store.Snap) (reeve.ItemList, error) {
		return s.Automations().ListItems(ctx, a.ID, reeve.ItemFilter{Limit: 10})
	}).Total, 1, "rows")
	other := item("a", "run_9")
	other.AgentID = "agt_two"
	must(t, startItem(other))
	equal(t, get("a").State, reeve.ItemProcessing, "state after start")
	finishItem(item("a", "run_1"), reeve.ItemFailed)
	finishItem(item("a", "run_1"), reeve.ItemDone) // ignored, because the run has finished the item
	equal(t, get("a").State, reeve.ItemFailed, "state after a second finish")
	must(t, startItem(item("a", "run_2")))
	got := get("a")
	equal(t, fmt.Sprint(got.State, got.FirstRun, got.LastRun, got.Title), "processingrun_1run_2Title a run_2",
		"item after a start by another run")
	finishItem(item("a", "run_2"), reeve.ItemDone)
	wantCode(t, startItem(item("a", "run_3")), reeve.Conflict)
	equal(t, get("a").LastRun, "run_2", "last run of a completed item")

	resolveItem := func(to reeve.ItemState) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			was, err := tx.Automations().GetItem(ctx, a.ID, "a")
			if err == nil {
				_, err = tx.Automations().ResolveItem(ctx, was, to, "because")
			}
			return err
		})
	}
	wantCode(t, resolveItem(reeve.ItemSkipped), reeve.Conflict)
	must(t, resolveItem(reeve.ItemProcessing)) // a second attempt
	wantCode(t, startItem(item("a", "run_3")), reeve.Conflict)
	second := item("a", "run_3")
	second.Attempt = 2
	must(t, startItem(second))
	must(t, resolveItem(reeve.ItemSkipped))
	wantCode(t, startItem(second), reeve.Conflict)
	finishItem(second, reeve.ItemDone)
	equal(t, get("a").State, reeve.ItemSkipped, "state after a person resolved the item")
	attempts := view(t, db, func(s *store.Snap) ([]reeve.ItemAttempt, error) {
		return s.Automations().ListAttempts(ctx, a.ID, "a")
	})
	equal(t, joinIDs(attempts, func(v reeve.ItemAttempt) string {
		return fmt.Sprint(v.Attempt, v.State, v.FirstRun, v.LastRun)
	}),
		joinIDs([]string{"1donerun_1run_2", "2skippedrun_3run_3"}, func(s string) string { return s }), "attempts")

	for i := range 5 {
		must(t, startItem(item(fmt.Sprint("b", i), "run_4")))
	}
	list := func(f reeve.ItemFilter) string {
		t.Helper()
		must(t, f.Validate())
		l := view(t, db, func(s *store.Snap) (reeve.ItemList, error) { return s.Automations().ListItems(ctx, a.ID, f) })
		return fmt.Sprint(joinIDs(l.Items, func(v reeve.Item) string { return v.ID }), l.Total, l.HasMore)
	}
	equal(t, list(reeve.ItemFilter{Limit: 2, State: reeve.ItemProcessing}),
		fmt.Sprint(joinIDs([]string{"b4", "b3"}, func(s string) string { return s }), 5, true), "first page")
	equal(t, list(reeve.ItemFilter{ID: "a"}), fmt.Sprint("a", 1, false), "items with an id")
}
