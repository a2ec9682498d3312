package storetest

import (
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// automations tests scripts, their versions and runs, and the ledger of items.
var automations = map[string]func(*testing.T, *store.DB){
	"automation": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		version := func(major, minor int) reeve.ScriptVersion {
			return reeve.ScriptVersion{ID: fmt.Sprintf("scr_%d_%d", major, minor), WorkspaceID: ws, AgentID: a.ID,
				Major: major, Minor: minor, Source: "1", Language: "js", Comment: "c", CreatedBy: "u"}
		}
		is := func() bool {
			return view(t, db, func(s *store.Snap) (bool, error) { return s.Automations().IsAutomation(ctx, a.ID) })
		}
		equal(t, is(), false, "an agent")
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
				return s.Automations().
					LastVersion(ctx, a.ID, major)
			}).Version(), want, "the last version")
		}
		got := view(t, db, func(s *store.Snap) (reeve.ScriptVersion, error) {
			return s.Automations().
				GetScript(ctx, ws, "scr_1_1")
		})
		want := version(1, 1)
		want.CreatedAt = got.CreatedAt
		equal(t, fmt.Sprint(got), fmt.Sprint(want), "round trip")
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Automations().
				GetScript(ctx, "ws_two", "scr_1_1")
			return err
		}), reeve.NotFound)
		wantCode(t, db.View(ctx, func(s *store.Snap) error {
			_, err := s.Automations().
				GetVersion(ctx, a.ID, 3, 0)
			return err
		}), reeve.NotFound)
		list := view(t, db, func(s *store.Snap) ([]reeve.ScriptVersion, error) {
			return s.Automations().
				ListVersions(ctx, a.ID, 3)
		})
		equal(t, ids(list, func(v reeve.ScriptVersion) string { return v.Version() + v.Source }),
			ids([]string{"2.0", "1.1", "1.0"}, func(s string) string { return s }), "newest first, without text")

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
			return s.Automations().
				GetAutomation(ctx, ws, "one")
		})
		equal(t, fmt.Sprint(m.Version, m.PausedAt.Equal(now), m.PausedRun, m.Name, is()), "1.1truerun_1onetrue",
			"rolled back and paused")
		equal(t, view(t, db, func(s *store.Snap) (bool, error) { return s.Automations().IsPaused(ctx, a.ID) }), true,
			"paused")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Automation, error) {
			return s.Automations().ListAutomations(ctx, ws, "", 10)
		})), 1, "listed")
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Automation, error) {
			return s.Automations().ListAutomations(ctx, "ws_two", "", 10)
		})), 0, "listed elsewhere")
	},
	"script run": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		r := reeve.ScriptRun{RunKey: "key", WorkspaceID: ws, AgentID: a.ID, Type: reeve.DryRun}
		insert := func(want bool) {
			t.Helper()
			update(t, db, func(tx *store.Tx) error {
				ok, err := tx.Automations().InsertScriptRun(ctx, r)
				equal(t, ok, want, "the first word counts")
				return err
			})
		}
		insert(true)
		r.Type = reeve.ProductionRun
		insert(false)
		for _, script := range []string{"scr_1", "scr_2"} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().
					BeginScriptRun(ctx, "key", "run_1", script)
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
				t.Error("seen from another workspace", err)
			}
			return err
		})
		call := reeve.PlannedCall{Ordinal: 1, ItemID: "i", Title: "I", Attempt: 1, Tool: "echo", Args: `{}`,
			Preview: "+ a", Base: "b", Operation: "op_1"}
		for range 2 {
			update(t, db, func(tx *store.Tx) error {
				return tx.Automations().
					InsertPlannedCall(ctx, ws, "run_1", call)
			})
		}
		op := operation("op_1", reeve.Committed)
		update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, op) })
		planned := view(t, db, func(s *store.Snap) ([]reeve.PlannedCall, error) {
			return s.Automations().ListPlannedCalls(ctx, ws, "run_1", 0, 10)
		})
		call.State = reeve.Committed
		equal(t, len(planned), 1, "planned once")
		equal(t, planned[0], call, "with what became of it")
	},
	"item": items,
}

func items(t *testing.T, db *store.DB) {
	ctx := t.Context()
	a := setUp(t, db)
	item := func(id, run string) reeve.Item {
		return reeve.Item{AgentID: a.ID, WorkspaceID: ws, ID: id, Title: "Title " + id + " " + run, Attempt: 1,
			CreatedBy: "automation", LastRun: run}
	}
	enter := func(v reeve.Item) error {
		return db.Update(ctx, func(tx *store.Tx) error { return tx.Automations().StartItem(ctx, v, "scr_1") })
	}
	leave := func(v reeve.Item, s reeve.ItemState) {
		t.Helper()
		v.State = s
		update(t, db, func(tx *store.Tx) error { return tx.Automations().FinishItem(ctx, v) })
	}
	get := func(id string) reeve.Item {
		t.Helper()
		return view(t, db, func(s *store.Snap) (reeve.Item, error) { return s.Automations().GetItem(ctx, a.ID, id) })
	}
	// K14: concurrent starts of one id make one row.
	must(t, firstOf(race(16, func(int) error { return enter(item("a", "run_1")) })))
	equal(t, view(t, db, func(s *store.Snap) (reeve.ItemList, error) {
		return s.Automations().ListItems(ctx, a.ID, reeve.ItemFilter{Limit: 10})
	}).Total, 1, "rows")
	other := item("a", "run_9")
	other.AgentID = "agt_two"
	must(t, enter(other))
	equal(t, get("a").State, reeve.ItemProcessing, "entered")
	leave(item("a", "run_1"), reeve.ItemFailed)
	leave(item("a", "run_1"), reeve.ItemDone) // it is not at it any more
	equal(t, get("a").State, reeve.ItemFailed, "left once")
	must(t, enter(item("a", "run_2")))
	got := get("a")
	equal(t, fmt.Sprint(got.State, got.FirstRun, got.LastRun, got.Title), "processingrun_1run_2Title a run_2",
		"entered again")
	leave(item("a", "run_2"), reeve.ItemDone)
	wantCode(t, enter(item("a", "run_3")), reeve.Conflict)
	equal(t, get("a").LastRun, "run_2", "a done item stays as it is")

	settle := func(to reeve.ItemState) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			was, err := tx.Automations().GetItem(ctx, a.ID, "a")
			if err == nil {
				_, err = tx.Automations().ResolveItem(ctx, was, to, "because")
			}
			return err
		})
	}
	wantCode(t, settle(reeve.ItemSkipped), reeve.Conflict)
	must(t, settle(reeve.ItemProcessing)) // a second attempt
	wantCode(t, enter(item("a", "run_3")), reeve.Conflict)
	second := item("a", "run_3")
	second.Attempt = 2
	must(t, enter(second))
	must(t, settle(reeve.ItemSkipped))
	wantCode(t, enter(second), reeve.Conflict)
	leave(second, reeve.ItemDone)
	equal(t, get("a").State, reeve.ItemSkipped, "a person's word stays")
	attempts := view(t, db, func(s *store.Snap) ([]reeve.ItemAttempt, error) {
		return s.Automations().
			ListAttempts(ctx, a.ID, "a")
	})
	equal(t, ids(attempts, func(v reeve.ItemAttempt) string {
		return fmt.Sprint(v.Attempt, v.State, v.FirstRun,
			v.LastRun)
	}),
		ids([]string{"1donerun_1run_2", "2skippedrun_3run_3"}, func(s string) string { return s }), "attempts")

	for i := range 5 {
		must(t, enter(item(fmt.Sprint("b", i), "run_4")))
	}
	list := func(f reeve.ItemFilter) string {
		t.Helper()
		must(t, f.Validate())
		l := view(t, db, func(s *store.Snap) (reeve.ItemList, error) { return s.Automations().ListItems(ctx, a.ID, f) })
		return fmt.Sprint(ids(l.Items, func(v reeve.Item) string { return v.ID }), l.Total, l.HasMore)
	}
	equal(t, list(reeve.ItemFilter{Limit: 2, State: reeve.ItemProcessing}),
		fmt.Sprint(ids([]string{"b4", "b3"}, func(s string) string { return s }), 5, true), "a page")
	equal(t, list(reeve.ItemFilter{ID: "a"}), fmt.Sprint("a", 1, false), "one")
}
