package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

func wakeKey(w reeve.Wake) string { return w.RunKey }

// dueLanes returns the agent and session of each lane with a due wake, in order of the wakes.
func dueLanes(t testing.TB, db *store.DB) string {
	t.Helper()
	var due []reeve.Wake
	update(t, db, func(tx *store.Tx) (err error) {
		due, err = tx.Queue().DueWakes(t.Context(), 100, nil)
		return err
	})
	seen := map[string]bool{} // one wake per lane can start a run
	due = slices.DeleteFunc(due, func(w reeve.Wake) bool {
		isDuplicate := seen[store.Lane(w)]
		seen[store.Lane(w)] = true
		return isDuplicate
	})
	return joinIDs(due, func(w reeve.Wake) string { return w.AgentID + "/" + w.SessionID })
}

// enqueueWake inserts a wake of agt_one, due now by default. It reports whether the run key is new.
func enqueueWake(t testing.TB, db *store.DB, w reeve.Wake) bool {
	t.Helper()
	isNew := false
	update(t, db, func(tx *store.Tx) (err error) {
		w.WorkspaceID, w.AgentID, w.State = ws, "agt_one", reeve.WakeQueued
		if w.DueAt.IsZero() {
			w.DueAt = tx.Now()
		}
		isNew, err = tx.Queue().InsertWake(t.Context(), w)
		return err
	})
	return isNew
}

// wakes tests the queue of wakes and the subscriptions that fill it.
var wakes = map[string]func(*testing.T, *store.DB){
	"wakes of subscriptions": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			two := reeve.Agent{ID: "agt_two", WorkspaceID: ws, Name: "two", Kind: "assistant",
				Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()}
			if err := tx.Agents().InsertAgent(ctx, two); err != nil {
				return err
			}
			for _, s := range []reeve.Subscription{
				{ID: "sub_key", AgentID: "agt_one", Token: reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}},
				{ID: "sub_id", AgentID: "agt_one", Token: reeve.Token{Class: reeve.EntityID, Name: "TASK"}},
				{ID: "sub_two", AgentID: "agt_two", Token: reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}},
			} {
				s.WorkspaceID = ws
				if err := tx.Queue().InsertSubscription(ctx, s); err != nil {
					return err
				}
			}
			return nil
		})
		recordChange := func(c store.Change) {
			t.Helper()
			c.Workspace = ws
			update(t, db, func(tx *store.Tx) error { return tx.Queue().RecordChange(ctx, c) })
		}
		listQueued := func() string {
			wakesOf := func(agent string) string {
				return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
					return s.Queue().ListWakes(ctx, ws, store.WakeFilter{Agent: agent, Limit: 100})
				}), wakeKey)
			}
			return wakesOf("agt_one") + "; " + wakesOf("agt_two")
		}
		key := reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}
		recordChange(store.Change{Operation: "op_1",
			Tokens: []reeve.Token{key, key, {Class: reeve.EntityID, Name: "task_1"}}})
		equal(t, listQueued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_1",
			"one wake per subscribed agent, although a token occurs twice")
		recordChange(store.Change{Operation: "op_1", Tokens: []reeve.Token{key}})
		equal(t, listQueued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_1", "the same operation again")
		recordChange(store.Change{Operation: "op_2", Agent: "agt_one", Tokens: []reeve.Token{key}})
		equal(t, listQueued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_2 agt_two/sub_two/op_1",
			"a change by agt_one does not wake agt_one")
		recordChange(store.Change{Operation: "op_3", Tokens: []reeve.Token{{Class: reeve.EntityID, Name: "TASK"}}})
		equal(t, listQueued(), "agt_one/sub_id/op_3 agt_one/sub_key/op_1; agt_two/sub_two/op_2 agt_two/sub_two/op_1",
			"an entity id equal to the name of a semantic key")

		// A wake records the agents whose changes led to it.
		if !startRun(t, db, store.DueAgent{AgentID: "agt_two", WorkspaceID: ws}, "run_two", "proc_1") {
			t.Fatal("the run did not start")
		}
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, 100)
			return err
		})
		before := listQueued()
		origins := view(t, db, func(s *store.Snap) (reeve.Wake, error) {
			return s.Queue().GetWake(ctx, "agt_two/sub_two/op_2")
		}).Origins
		equal(t, fmt.Sprint(origins), "[agt_one]", "origins of the wake")
		must(t, transitionRun(t, db, "run_two", reeve.RunCompleted))
		recordChange(store.Change{Operation: "op_4", Agent: "agt_two", Tokens: []reeve.Token{key}})
		equal(t, listQueued(), "agt_one/sub_key/op_4 "+before, "a change outside a run")
		recordChange(store.Change{Tokens: []reeve.Token{key}})
		recordChange(store.Change{Tokens: []reeve.Token{key}})
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
			return s.Queue().ListWakes(ctx, ws, store.WakeFilter{Agent: "agt_one", Limit: 100})
		})), 5, "wakes after two changes without an operation")
	},

	"pages of wakes and runs": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for i := range 5 {
			enqueueWake(t, db, reeve.Wake{RunKey: fmt.Sprint("wake_", i), Reason: reeve.ReasonTimer, ReasonID: "tmr_1",
				SessionID: fmt.Sprint("schedule:", i)})
			startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: fmt.Sprint("schedule:", i)},
				fmt.Sprint("run_", i), "proc_1")
		}
		wakes := func(f store.WakeFilter) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
				return s.Queue().ListWakes(ctx, ws, f)
			}), wakeKey)
		}
		all := wakes(store.WakeFilter{Agent: "agt_one", Limit: 100})
		var pages []string
		for after := ""; ; {
			page := wakes(store.WakeFilter{Agent: "agt_one", After: after, Limit: 2})
			if page == "" {
				break
			}
			pages = append(pages, page)
			list := strings.Fields(page)
			after = list[len(list)-1]
		}
		equal(t, len(pages), 3, "pages")
		equal(t, strings.Join(pages, " "), all, "wakes on all pages")
		equal(t, wakes(store.WakeFilter{Run: "run_3", Limit: 100}), "wake_3", "wakes of a run")
		equal(t, wakes(store.WakeFilter{Agent: "agt_two", Limit: 100}), "", "wakes of another agent")
		runs := func(f store.RunFilter) string {
			return joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Run, error) {
				return s.Runs().ListRuns(ctx, ws, f)
			}),
				func(r reeve.Run) string { return r.ID })
		}
		equal(t, runs(store.RunFilter{Agent: "agt_one", Before: "run_2", Limit: 100}), "run_1 run_0",
			"runs of an agent before a run")
		equal(t, runs(store.RunFilter{ReasonID: "tmr_1", Limit: 2}), "run_4 run_3", "last runs of a timer")
		equal(t, runs(store.RunFilter{Agent: "agt_two", Limit: 2}), "", "runs of another agent")
		equal(t, runs(store.RunFilter{State: reeve.RunRunning, Limit: 1}), "run_4", "runs in a state")
	},

	"order within a lane": func(t *testing.T, db *store.DB) {
		if db.SingleProcess() {
			return // transactions do not overlap
		}
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		manualLane := func(key string) store.DueAgent {
			return store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:" + key}
		}
		for i, key := range []string{"m0", "m1", "m2", "m3"} {
			enqueueWake(t, db, reeve.Wake{RunKey: key, Reason: reeve.ReasonManual, SessionID: "manual:" + key,
				DueAt: reeve.Now().Add(time.Duration(i-9) * time.Minute)})
		}
		equal(t, startRun(t, db, manualLane("m0"), "run_1", "proc_1"), true, "started")
		// The run ends while a scheduler pages through the queue and has already passed the waiting wakes.
		update(t, db, func(tx *store.Tx) error {
			first, err := tx.Queue().DueWakes(ctx, 4, nil)
			must(t, err)
			equal(t, len(first), 0, "due wakes while the lane has a run")
			must(t, transitionRun(t, db, "run_1", reeve.RunCompleted))
			rest, err := tx.Queue().DueWakes(ctx, 4, &reeve.Wake{AgentID: "agt_one", SessionID: "manual:m2",
				DueAt: reeve.Now().Add(-7 * time.Minute), CreatedAt: tx.Now()})
			must(t, err)
			equal(t, joinIDs(rest, func(w reeve.Wake) string { return w.RunKey }), "",
				"due wakes on the next page")
			return nil
		})
		update(t, db, func(tx *store.Tx) error { // two servers, of which one has locked the first wake
			one, err := tx.Queue().DueWakes(ctx, 4, nil)
			must(t, err)
			equal(t, joinIDs(one, func(w reeve.Wake) string { return w.RunKey }), "m1", "due wakes of the first server")
			update(t, db, func(tx *store.Tx) error {
				other, err := tx.Queue().DueWakes(ctx, 4, nil)
				equal(t, joinIDs(other, func(w reeve.Wake) string { return w.RunKey }), "",
					"due wakes of the second server")
				return err
			})
			return nil
		})
	},

	"manual wakes ignore the throttle": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
			must(t, err)
			a.ThrottleMS = 3_600_000
			return tx.Agents().UpdateAgent(ctx, a)
		})
		enqueueWake(t, db, reeve.Wake{RunKey: "before", Reason: reeve.ReasonManual, SessionID: "manual:before"})
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		equal(t, startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:before"},
			"run_1", "proc_1"), true, "started")
		must(t, transitionRun(t, db, "run_1", reeve.RunCompleted)) // the throttle applies from now on
		enqueueWake(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription,
			DueAt: reeve.Now().Add(-time.Minute)})
		enqueueWake(t, db, reeve.Wake{RunKey: "m1", Reason: reeve.ReasonManual, SessionID: "manual:m1"})
		equal(t, dueLanes(t, db), "agt_one/manual:m1", "due lanes")
	},

	"batches of wakes and runs": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		const n = 150 // more than fit into one statement
		var list []reeve.Wake
		var runs []reeve.Run
		var ends []store.WakeEnd
		for i := range n {
			key := fmt.Sprintf("k%03d", i)
			lane := store.ScheduleSession + key
			list = append(list, reeve.Wake{RunKey: key, WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonTimer,
				ReasonID: key, SessionID: lane, DueAt: reeve.Now(), State: reeve.WakeQueued})
			runs = append(runs, reeve.Run{ID: "run_" + key, Key: key, WorkspaceID: ws, AgentID: "agt_one",
				Reason: reeve.ReasonTimer, SessionID: lane, ThreadID: key, Wakes: 1, Owner: "p",
				State: reeve.RunRunning})
			ends = append(ends, store.WakeEnd{RunKey: key, State: reeve.WakeTaken, RunID: "run_" + key})
		}
		// a duplicate key inserts nothing
		update(t, db, func(tx *store.Tx) error { return tx.Queue().InsertWakes(ctx, append(list, list[0])) })
		again := list[7]
		again.RunKey = "again"
		update(t, db, func(tx *store.Tx) error { return tx.Queue().InsertWakes(ctx, []reeve.Wake{again}) })
		var known store.WakeContext
		update(t, db, func(tx *store.Tx) (err error) {
			known, err = tx.Queue().WakeContext(ctx, []reeve.Wake{list[6], again})
			return err
		})
		equal(t, fmt.Sprint(known.Backlogged), "map["+again.SessionID+":true]", "sessions with several queued wakes")
		update(t, db, func(tx *store.Tx) error {
			inserted, err := tx.Runs().InsertRuns(ctx, runs)
			equal(t, len(inserted), n, "inserted runs")
			return errors.Join(err, tx.Queue().EndManyWakes(ctx, ends))
		})
		equal(t, dueLanes(t, db), "", "due lanes while each lane has a run")
		equal(t, view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, "k149") }).
			RunID, "run_k149", "run of a wake")
		second := runs[3]
		second.ID, second.Key = "run_second", "second"
		other := runs[3]
		other.ID, other.Key, other.SessionID = "run_other", "other", store.ScheduleSession+"other"
		update(t, db, func(tx *store.Tx) error {
			inserted, err := tx.Runs().InsertRuns(ctx, []reeve.Run{second, other})
			equal(t, fmt.Sprint(inserted), "map[run_other:true]", "inserted runs, one in a lane with a run")
			return err
		})
		transitions := make([]store.RunTransition, n)
		for i, was := range runs {
			is := was
			is.State, is.Owner = reeve.RunCompleted, ""
			transitions[i] = store.RunTransition{Was: was, Is: is}
		}
		transitions[5].Was.Owner = "another" // another process has claimed the run
		update(t, db, func(tx *store.Tx) error {
			moved, err := tx.Runs().TransitionRuns(ctx, transitions)
			equal(t, len(moved), n-1, "completed runs")
			equal(t, moved["run_k005"], false, "completed a run of another process")
			return err
		})
		equal(t, dueLanes(t, db), "agt_one/"+again.SessionID, "due lanes after the runs")
	},
}
