package storetest

import (
	"cmp"
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

// started puts a caller's wakes into a run, as the wake room does.
func started(t testing.TB, db *store.DB, c store.DueAgent, id, process string) (ok bool) {
	t.Helper()
	ctx := t.Context()
	update(t, db, func(tx *store.Tx) error {
		ok = false
		list, err := tx.Queue().QueuedWakes(ctx, c, 100)
		if err != nil || len(list) == 0 {
			return err
		}
		ok, err = tx.Runs().InsertRun(ctx, reeve.Run{ID: id, Key: list[0].RunKey, WorkspaceID: c.WorkspaceID,
			AgentID: c.AgentID, SessionID: c.SessionID, Reason: list[0].Reason,
			ReasonID: list[0].ReasonID, Origins: list[0].Origins, ThreadID: reeve.RunThread(c.AgentID, id),
			Wakes: len(list), Owner: process})
		if err != nil || !ok {
			return err
		}
		var keys []string
		for _, w := range list {
			keys = append(keys, w.RunKey)
		}
		return tx.Queue().EndWakes(ctx, keys, reeve.WakeTaken, id, "")
	})
	return ok
}

func runOf(t testing.TB, db *store.DB, id string) reeve.Run {
	t.Helper()
	return view(t, db, func(s *store.Snap) (reeve.Run, error) { return s.Runs().GetRun(t.Context(), ws, id) })
}

func ended(t testing.TB, db *store.DB, id string, state reeve.RunState) error {
	t.Helper()
	return db.Update(t.Context(), func(tx *store.Tx) error {
		was, err := tx.Runs().GetRun(t.Context(), ws, id)
		if err != nil {
			return err
		}
		is := was
		is.State, is.Owner = state, ""
		return tx.Runs().TransitionRun(t.Context(), was, is)
	})
}

func callers(t testing.TB, db *store.DB) string {
	t.Helper()
	var due []reeve.Wake
	update(t, db, func(tx *store.Tx) (err error) {
		due, err = tx.Queue().DueWakes(t.Context(), 100, nil)
		return err
	})
	seen := map[string]bool{} // only the first of a lane is one that can be served
	due = slices.DeleteFunc(due, func(w reeve.Wake) bool {
		again := seen[store.Lane(w)]
		seen[store.Lane(w)] = true
		return again
	})
	return ids(due, func(w reeve.Wake) string { return w.AgentID + "/" + w.SessionID })
}

func queue(t testing.TB, db *store.DB, w reeve.Wake) bool {
	t.Helper()
	fresh := false
	update(t, db, func(tx *store.Tx) (err error) {
		w.WorkspaceID, w.AgentID, w.State = ws, "agt_one", reeve.WakeQueued
		if w.DueAt.IsZero() {
			w.DueAt = tx.Now()
		}
		fresh, err = tx.Queue().InsertWake(t.Context(), w)
		return err
	})
	return fresh
}

// wakes tests the queue, the runs it becomes, and what fills it.
var wakes = map[string]func(*testing.T, *store.DB){
	"wake by token": func(t *testing.T, db *store.DB) {
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
		tell := func(c store.Change) {
			t.Helper()
			c.Workspace = ws
			update(t, db, func(tx *store.Tx) error { return tx.Queue().RecordChange(ctx, c) })
		}
		queued := func() string {
			of := func(agent string) string {
				return ids(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
					return s.Queue().ListWakes(ctx, ws, store.WakeFilter{Agent: agent, Limit: 100})
				}), wakeKey)
			}
			return of("agt_one") + "; " + of("agt_two")
		}
		key := reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}
		tell(store.Change{Operation: "op_1", Tokens: []reeve.Token{key, key, {Class: reeve.EntityID, Name: "task_1"}}})
		equal(t, queued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_1",
			"one wake for each watcher, whatever looks alike")
		tell(store.Change{Operation: "op_1", Tokens: []reeve.Token{key}})
		equal(t, queued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_1", "the same change again")
		tell(store.Change{Operation: "op_2", Agent: "agt_one", Tokens: []reeve.Token{key}})
		equal(t, queued(), "agt_one/sub_key/op_1; agt_two/sub_two/op_2 agt_two/sub_two/op_1", "an agent's own change")
		tell(store.Change{Operation: "op_3", Tokens: []reeve.Token{{Class: reeve.EntityID, Name: "TASK"}}})
		equal(t, queued(), "agt_one/sub_id/op_3 agt_one/sub_key/op_1; agt_two/sub_two/op_2 agt_two/sub_two/op_1",
			"an id that looks like a key")

		// What the run of agent two changes tells nobody whose work led to it.
		if !started(t, db, store.DueAgent{AgentID: "agt_two", WorkspaceID: ws}, "run_two", "proc_1") {
			t.Fatal("it does not start")
		}
		update(t, db, func(tx *store.Tx) error {
			_, err := tx.Queue().QueuedWakes(ctx, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, 100)
			return err
		})
		before := queued()
		origins := view(t, db, func(s *store.Snap) (reeve.Wake, error) {
			return s.Queue().
				GetWake(ctx, "agt_two/sub_two/op_2")
		}).Origins
		equal(t, fmt.Sprint(origins), "[agt_one]", "who led to it")
		must(t, ended(t, db, "run_two", reeve.RunCompleted))
		tell(store.Change{Operation: "op_4", Agent: "agt_two", Tokens: []reeve.Token{key}})
		equal(t, queued(), "agt_one/sub_key/op_4 "+before, "a change outside a run")
		tell(store.Change{Tokens: []reeve.Token{key}})
		tell(store.Change{Tokens: []reeve.Token{key}})
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
			return s.Queue().ListWakes(ctx, ws, store.WakeFilter{Agent: "agt_one", Limit: 100})
		})), 5, "changes without an operation are two")
	},

	"pages": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		for i := range 5 {
			queue(t, db, reeve.Wake{RunKey: fmt.Sprint("wake_", i), Reason: reeve.ReasonTimer, ReasonID: "tmr_1",
				SessionID: fmt.Sprint("schedule:", i)})
			started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: fmt.Sprint("schedule:", i)},
				fmt.Sprint("run_", i), "proc_1")
		}
		wakes := func(f store.WakeFilter) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
				return s.Queue().
					ListWakes(ctx, ws, f)
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
		equal(t, strings.Join(pages, " "), all, "all of them")
		equal(t, wakes(store.WakeFilter{Run: "run_3", Limit: 100}), "wake_3", "what a run serves")
		equal(t, wakes(store.WakeFilter{Agent: "agt_two", Limit: 100}), "", "another's")
		runs := func(f store.RunFilter) string {
			return ids(view(t, db, func(s *store.Snap) ([]reeve.Run, error) { return s.Runs().ListRuns(ctx, ws, f) }),
				func(r reeve.Run) string { return r.ID })
		}
		equal(t, runs(store.RunFilter{Agent: "agt_one", Before: "run_2", Limit: 100}), "run_1 run_0",
			"an agent's runs before one")
		equal(t, runs(store.RunFilter{ReasonID: "tmr_1", Limit: 2}), "run_4 run_3", "a timer's last runs")
		equal(t, runs(store.RunFilter{Agent: "agt_two", Limit: 2}), "", "another's runs")
		equal(t, runs(store.RunFilter{State: reeve.RunRunning, Limit: 1}), "run_4", "runs in a state")
	},

	"in order, whatever else goes on": func(t *testing.T, db *store.DB) {
		if db.SingleProcess() {
			return // one transaction at a time
		}
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		main := func(key string) store.DueAgent {
			return store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:" + key}
		}
		for i, key := range []string{"m0", "m1", "m2", "m3"} {
			queue(t, db, reeve.Wake{RunKey: key, Reason: reeve.ReasonManual, SessionID: "manual:" + key,
				DueAt: reeve.Now().Add(time.Duration(i-9) * time.Minute)})
		}
		equal(t, started(t, db, main("m0"), "run_1", "proc_1"), true, "started")
		// a step that has passed over those that wait, when the run they wait for ends
		update(t, db, func(tx *store.Tx) error {
			first, err := tx.Queue().DueWakes(ctx, 4, nil)
			must(t, err)
			equal(t, len(first), 0, "due while one runs")
			must(t, ended(t, db, "run_1", reeve.RunCompleted))
			rest, err := tx.Queue().DueWakes(ctx, 4, &reeve.Wake{AgentID: "agt_one", SessionID: "manual:m2",
				DueAt: reeve.Now().Add(-7 * time.Minute), CreatedAt: tx.Now()})
			must(t, err)
			equal(t, ids(rest, func(w reeve.Wake) string { return w.RunKey }), "",
				"later ones, when earlier ones were passed over")
			return nil
		})
		update(t, db, func(tx *store.Tx) error { // two servers: one has the first in its hands
			one, err := tx.Queue().DueWakes(ctx, 4, nil)
			must(t, err)
			equal(t, ids(one, func(w reeve.Wake) string { return w.RunKey }), "m1", "one server")
			update(t, db, func(tx *store.Tx) error {
				other, err := tx.Queue().DueWakes(ctx, 4, nil)
				equal(t, ids(other, func(w reeve.Wake) string { return w.RunKey }), "", "the other")
				return err
			})
			return nil
		})
	},

	"a person waits for no throttle": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
			must(t, err)
			a.ThrottleMS = 3_600_000
			return tx.Agents().UpdateAgent(ctx, a)
		})
		queue(t, db, reeve.Wake{RunKey: "before", Reason: reeve.ReasonManual, SessionID: "manual:before"})
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		equal(t, started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:before"},
			"run_1", "proc_1"), true, "started")
		must(t, ended(t, db, "run_1", reeve.RunCompleted)) // from now on it is throttled
		queue(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription, DueAt: reeve.Now().Add(-time.Minute)})
		queue(t, db, reeve.Wake{RunKey: "m1", Reason: reeve.ReasonManual, SessionID: "manual:m1"})
		equal(t, callers(t, db), "agt_one/manual:m1", "due")
	},

	"one run at a time": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		ago := func(m int) time.Time { return reeve.Now().Add(-time.Duration(m) * time.Minute) }
		queue(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription, DueAt: ago(3)})
		equal(t, queue(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription}), false,
			"a key that is queued")
		queue(t, db, reeve.Wake{RunKey: "k2", Reason: reeve.ReasonSubscription, DueAt: reeve.Now().Add(time.Hour)})
		queue(t, db, reeve.Wake{RunKey: "s1", Reason: reeve.ReasonTimer, SessionID: "schedule:a", DueAt: reeve.Now().
			Add(-time.Hour)})
		queue(t, db, reeve.Wake{RunKey: "s2", Reason: reeve.ReasonTimer, SessionID: "schedule:b", DueAt: ago(2)})
		queue(t, db, reeve.Wake{RunKey: "m1", Reason: reeve.ReasonManual, SessionID: "manual:m1", DueAt: ago(1)})
		equal(t, callers(t, db), "agt_one/schedule:a agt_one/ agt_one/schedule:b", "due, the longest waiting first")
		main := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}
		equal(t, started(t, db, main, "run_1", "proc_1"), true, "started")
		equal(t, runOf(t, db, "run_1").Wakes, 2, "wakes that are served together, due or not")
		equal(t, callers(t, db), "agt_one/schedule:a agt_one/schedule:b", "due while it runs: only other schedules")
		manual := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:m1"}
		equal(t, started(t, db, manual, "run_2", "proc_1"), false, "a second run of the agent")
		schedule := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "schedule:a"}
		equal(t, started(t, db, schedule, "run_3", "proc_1"), true, "a schedule's run")
		queue(t, db, reeve.Wake{RunKey: "s3", Reason: reeve.ReasonTimer, SessionID: "schedule:a", DueAt: ago(1)})
		equal(t, started(t, db, schedule, "run_4", "proc_1"), false, "a second of the same schedule")
		must(t, ended(t, db, "run_1", reeve.RunParked))
		equal(t, callers(t, db), "agt_one/schedule:b", "a parked run still goes first")
		must(t, ended(t, db, "run_3", reeve.RunCompleted))
		equal(t, callers(t, db), "agt_one/schedule:b agt_one/schedule:a", "after the schedule's run")
		wantCode(t, ended(t, db, "run_3", reeve.RunFailed), reeve.Conflict)
		must(t, ended(t, db, "run_1", reeve.RunFailed))
		rt := view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) { return s.Agents().Runtime(ctx, "agt_one") })
		equal(t, rt.ActiveRun, "", "active run")
		equal(t, rt.FailureStreak, 1, "failures")
		equal(t, queue(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription}), false,
			"a key that was served")
		// A throttle defers changes and timers, and says until when.
		update(t, db, func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
			if err != nil {
				return err
			}
			a.ThrottleMS = time.Hour.Milliseconds()
			return tx.Agents().UpdateAgent(ctx, a)
		})
		equal(t, callers(t, db), "agt_one/manual:m1", "throttled")
		must(t, started1(t, db, manual))
		var timer, wake []int64
		update(t, db, func(tx *store.Tx) error { return tx.Queue().QueueNextDue(ctx, &timer, &wake, true) })
		if len(wake) != 1 || len(timer) != 0 {
			t.Fatalf("the next wakes are %d and the next timers %d, want one wake", wake, timer)
		}
		if d := reeve.FromMillis(wake[0]).Sub(reeve.Now()); d > time.Hour || d < 58*time.Minute {
			t.Errorf("the next wake can be served in %s, want an hour", d)
		}
	},

	"many at once": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		const n = 150 // more than one statement takes
		var list []reeve.Wake
		var runs []reeve.Run
		var ends []store.WakeEnd
		for i := range n {
			key := fmt.Sprintf("k%03d", i)
			lane := store.ScheduleLane + key
			list = append(list, reeve.Wake{RunKey: key, WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonTimer,
				ReasonID: key, SessionID: lane, DueAt: reeve.Now(), State: reeve.WakeQueued})
			runs = append(runs, reeve.Run{ID: "run_" + key, Key: key, WorkspaceID: ws, AgentID: "agt_one",
				Reason: reeve.ReasonTimer, SessionID: lane, ThreadID: key, Wakes: 1, Owner: "p",
				State: reeve.RunRunning})
			ends = append(ends, store.WakeEnd{RunKey: key, State: reeve.WakeTaken, RunID: "run_" + key})
		}
		// a key twice is one wake
		update(t, db, func(tx *store.Tx) error { return tx.Queue().InsertWakes(ctx, append(list, list[0])) })
		again := list[7]
		again.RunKey = "again"
		update(t, db, func(tx *store.Tx) error { return tx.Queue().InsertWakes(ctx, []reeve.Wake{again}) })
		var known store.WakeContext
		update(t, db, func(tx *store.Tx) (err error) {
			known, err = tx.Queue().WakeContext(ctx, []reeve.Wake{list[6], again})
			return err
		})
		equal(t, fmt.Sprint(known.Backlogged), "map["+again.SessionID+":true]", "sessions in which more than one waits")
		update(t, db, func(tx *store.Tx) error {
			made, err := tx.Runs().InsertRuns(ctx, runs)
			equal(t, len(made), n, "runs that were made")
			return errors.Join(err, tx.Queue().EndManyWakes(ctx, ends))
		})
		equal(t, callers(t, db), "", "due: the lane of the one that is left runs")
		equal(t, view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, "k149") }).
			RunID, "run_k149", "whom a wake is served by")
		second := runs[3]
		second.ID, second.Key = "run_second", "second"
		other := runs[3]
		other.ID, other.Key, other.SessionID = "run_other", "other", store.ScheduleLane+"other"
		update(t, db, func(tx *store.Tx) error {
			made, err := tx.Runs().InsertRuns(ctx, []reeve.Run{second, other})
			equal(t, fmt.Sprint(made), "map[run_other:true]", "made where a lane is taken")
			return err
		})
		moves := make([]store.RunTransition, n)
		for i, was := range runs {
			is := was
			is.State, is.Owner = reeve.RunCompleted, ""
			moves[i] = store.RunTransition{Was: was, Is: is}
		}
		moves[5].Was.Owner = "another" // it was taken up meanwhile
		update(t, db, func(tx *store.Tx) error {
			moved, err := tx.Runs().TransitionRuns(ctx, moves)
			equal(t, len(moved), n-1, "runs that ended")
			equal(t, moved["run_k005"], false, "one that is in other hands")
			return err
		})
		equal(t, callers(t, db), "agt_one/"+again.SessionID, "due once its lane is free")
	},

	"a wake is taken once": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(t.Context(), "proc_1") })
		for i := range 20 {
			queue(t, db, reeve.Wake{RunKey: fmt.Sprint("k", i), Reason: reeve.ReasonSubscription})
		}
		won := make([]bool, 8)
		must(t, firstOf(race(8, func(i int) error {
			won[i] = started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, fmt.Sprint("run_", i),
				"proc_1")
			return nil
		})))
		n := 0
		for _, w := range won {
			if w {
				n++
			}
		}
		equal(t, n, 1, "servers that started it")
		for _, w := range view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
			return s.Queue().ListWakes(t.Context(), ws, store.WakeFilter{Agent: "agt_one", Limit: 100})
		}) {
			// one that a loser held for a moment is the next run's
			if taken := w.State == reeve.WakeTaken && w.RunID != ""; !taken && w.State != reeve.WakeQueued {
				t.Errorf("%+v", w)
			}
		}
	},

	"runs that nobody works on": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		for i, p := range []string{"proc_1", "proc_gone", "proc_1", "proc_1"} {
			s := fmt.Sprint("schedule:", i)
			queue(t, db, reeve.Wake{RunKey: s, Reason: reeve.ReasonTimer, SessionID: s})
			started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: s}, fmt.Sprint("run_", i), p)
		}
		must(t, ended(t, db, "run_2", reeve.RunParked)) // waits for a person
		must(t, ended(t, db, "run_3", reeve.RunParked)) // waits for nothing any more
		update(t, db, func(tx *store.Tx) error {
			o := operation("op_2", reeve.Parked)
			o.RunID = "run_2"
			return insertOperation(ctx, tx, o)
		})
		claim := func(n int) (list []reeve.Run) {
			update(t, db, func(tx *store.Tx) (err error) {
				list, err = tx.Runs().ClaimRuns(ctx, "proc_1", n)
				return err
			})
			return list
		}
		left := func() (some bool) {
			update(t, db, func(tx *store.Tx) error {
				ahead, err := tx.Queue().DueWork(ctx, "proc_1", 1, 1)
				some = ahead.HasOtherRuns
				return err
			})
			return some
		}
		stop := func(at time.Time) {
			update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, at, "") })
		}
		stop(reeve.Now())
		equal(t, left(), true, "some are left")
		equal(t, len(claim(10)), 0, "claimed while stopped")
		stop(time.Time{})
		equal(t, ids(claim(1), func(r reeve.Run) string { return fmt.Sprint(r.ID, r.Attempts, r.Owner, r.State) }),
			"run_12proc_1running", "claimed")
		equal(t, ids(claim(10), func(r reeve.Run) string { return fmt.Sprint(r.ID, r.Attempts, r.Owner, r.State) }),
			"run_31proc_1running", "claimed next")
		equal(t, len(claim(10)), 0, "left")
		equal(t, ids(view(t, db, func(s *store.Snap) ([]reeve.Run, error) {
			return s.Runs().
				RunsOwnedBy(ctx, "proc_1")
		}), func(r reeve.Run) string { return r.ID }), "run_0 run_1 run_3", "in hand")
		equal(t, left(), true, "one still waits")
		must(t, ended(t, db, "run_2", reeve.RunFailed))
		equal(t, left(), false, "none is left")
	},

	// A run that waits for calls that are answered later is taken up when there is a result that it does not know of,
	// whenever that was written. One that waits for another call is taken up when that has its own.
	"results that come later": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		queue(t, db, reeve.Wake{RunKey: "k", Reason: reeve.ReasonTimer, SessionID: "schedule:1"})
		started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "schedule:1"}, "run_1", "proc_1")
		ops := map[string]reeve.Operation{}
		for _, id := range []string{"op_1", "op_2", "op_3", "op_other"} {
			o := operation(id, reeve.Dispatched)
			o.RunID, o.Deferred = "run_1", id != "op_other"
			ops[id] = o
			update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		}
		answered := func(id string) {
			is := ops[id]
			is.State, is.ResultID = reeve.Committed, "msg_"+id
			update(t, db, func(tx *store.Tx) error {
				return tx.Ledger().TransitionOperation(ctx, ops[id], is,
					&store.CallResult{ID: is.ResultID, Info: []byte("{}")})
			})
		}
		park := func(results int) {
			update(t, db, func(tx *store.Tx) error {
				was, err := tx.Runs().GetRun(ctx, ws, "run_1")
				is := was
				is.State, is.Owner, is.ResultsToResume = reeve.RunParked, "", results
				return cmp.Or(err, tx.Runs().TransitionRun(ctx, was, is))
			})
		}
		parked := func() int {
			known := view(t, db, func(s *store.Snap) (int, error) {
				return s.Runs().
					CountDeferredResults(ctx, "run_1")
			})
			park(known + 1)
			return known
		}
		claimed := func() (n int) {
			update(t, db, func(tx *store.Tx) error {
				list, err := tx.Runs().ClaimRuns(ctx, "proc_1", 10)
				n = len(list)
				return err
			})
			return n
		}
		park(0)
		equal(t, claimed(), 0, "taken up before the call that it waits for has a result")
		answered("op_other")
		equal(t, claimed(), 1, "taken up after that, while others are awaited")
		for i, id := range []string{"op_1", "op_2", "op_3"} {
			equal(t, parked(), i, "results that it knows of")
			equal(t, claimed(), 0, "taken up before a result has come")
			answered(id)
			equal(t, claimed(), 1, "taken up after %s was answered", id)
		}
	},

	// A cancel ends a run as it is, not as whoever cancels has read it: it may have parked or been taken up since.
	"cancelled while it parks": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		queue(t, db, reeve.Wake{RunKey: "k", Reason: reeve.ReasonManual, SessionID: "manual:1"})
		started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:1"}, "run_1", "proc_1")
		read := runOf(t, db, "run_1")
		must(t, ended(t, db, "run_1", reeve.RunParked))
		cancel := func() error {
			return db.Update(ctx, func(tx *store.Tx) error {
				_, err := tx.Runs().CancelRun(ctx, read, reeve.Errorf(reeve.Canceled, "enough"))
				return err
			})
		}
		must(t, cancel())
		equal(t, runOf(t, db, "run_1").State, reeve.RunCancelled, "the run")
		wantCode(t, cancel(), reeve.Conflict)
	},

	"a turn that is over is told no more": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		frame := func(kind reeve.FrameType, call string) reeve.Frame {
			return reeve.Frame{Type: kind, TurnID: "run_1", MessageID: "msg_1", ToolCallID: call}
		}
		update(t, db, func(tx *store.Tx) error {
			if err := tx.Chat().InsertConversation(ctx, reeve.Conversation{ID: "conv_1", WorkspaceID: ws, AgentID: a.ID,
				State: reeve.ConversationActive}); err != nil {
				return err
			}
			_, err := tx.Runs().InsertRun(ctx, reeve.Run{ID: "run_1", Key: "key_1", WorkspaceID: ws, AgentID: a.ID,
				Reason: reeve.ReasonUser, SessionID: "conv_1", ThreadID: "conv_1"})
			return err
		})
		for i, call := range []string{"b", "a"} {
			update(t, db, func(tx *store.Tx) error {
				return tx.Chat().AppendFrame(ctx, "conv_1", "run_1:"+store.CallKey(i+9, call),
					frame(reeve.FrameTool, call))
			})
		}
		ended, told := make(chan struct{}), make(chan error, 2)
		late := func(f func(*store.Tx) error) {
			go func() { <-ended; told <- db.Update(ctx, f) }()
		}
		var state reeve.RunState
		late(func(tx *store.Tx) error {
			return tx.Chat().AppendFrame(ctx, "conv_1", "run_1:late", frame(reeve.FrameMessage, ""))
		})
		late(func(tx *store.Tx) (err error) {
			if err = tx.Chat().LockConversation(ctx, "conv_1"); err == nil {
				state, err = tx.Runs().RunState(ctx, ws, "run_1")
			}
			return err
		})
		update(t, db, func(tx *store.Tx) error {
			a.Lifecycle = reeve.AgentDestroyed
			if err := tx.Agents().UpdateAgent(ctx, a); err != nil {
				return err
			}
			_, err := tx.Runs().GetRun(ctx, ws, "run_1") // after which all is written that was held back
			close(ended)
			return err
		})
		must(t, <-told)
		must(t, <-told)
		equal(t, state, reeve.RunCancelled, "the turn, once the conversation is held")
		frames := view(t, db, func(s *store.Snap) ([]reeve.Frame, error) {
			return s.Chat().
				ListFrames(ctx, "conv_1", 0, 10)
		})
		equal(t, ids(frames, func(f reeve.Frame) string { return string(f.Type) + f.ToolCallID }),
			"tool_startedb tool_starteda tool_resultb tool_resulta turn_complete", "what clients are told")
	},

	"stopped and destroyed": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		later := reeve.Now().Add(time.Hour)
		update(t, db, func(tx *store.Tx) error {
			if err := tx.System().RegisterProcess(ctx, "proc_1"); err != nil {
				return err
			}
			if err := tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub", WorkspaceID: ws, AgentID: a.ID,
				Token: reeve.Token{Class: reeve.SemanticKey, Name: "X"}}); err != nil {
				return err
			}
			return tx.Queue().PutTimer(ctx, reeve.Timer{ID: "sch", WorkspaceID: ws, AgentID: a.ID, UserID: "ann",
				Kind: "cron", State: reeve.TimerActive, NextAt: &later})
		})
		queue(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription, DueAt: later})
		queue(t, db, reeve.Wake{RunKey: "script job", Reason: reeve.ReasonScriptJob, SessionID: store.ScriptJobLane +
			"x", DueAt: later})
		queue(t, db, reeve.Wake{RunKey: "retry", Reason: reeve.ReasonRetry, SessionID: store.ManualLane + "retry",
			DueAt: later})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, tx.Now(), "enough") })
		wake := func(key string) reeve.Wake {
			return view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, key) })
		}
		equal(t, wake("k1").State, reeve.WakeSkipped, "queued when everything was stopped")
		equal(t, wake("script job").State+" "+wake("retry").State, "queued queued", "what is judged when it is due")
		queue(t, db, reeve.Wake{RunKey: "k2", Reason: reeve.ReasonSubscription})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, time.Time{}, "") })
		equal(t, wake("k2").State, reeve.WakeQueued, "queued when it was resumed")
		if !started(t, db, store.DueAgent{AgentID: a.ID, WorkspaceID: ws}, "run_1", "proc_1") {
			t.Fatal("it does not start")
		}
		queue(t, db, reeve.Wake{RunKey: "k3", Reason: reeve.ReasonSubscription})
		a.Lifecycle = reeve.AgentDestroyed
		foreign := a
		foreign.WorkspaceID = "ws_two"
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, foreign) })
		equal(t, wake("k3").State+" "+wake("retry").State, "queued queued", "after another workspace's order")
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, wake("k3").State, reeve.WakeSkipped, "queued when it was destroyed")
		equal(t, wake("k3").Why, "the agent is destroyed", "why")
		equal(t, wake("script job").State+" "+wake("retry").State, "queued skipped", "a script job and a retry of it")
		equal(t, runOf(t, db, "run_1").State, reeve.RunCancelled, "its run")
		timer := view(t, db, func(s *store.Snap) (reeve.Timer, error) {
			return s.Queue().
				GetTimer(ctx, ws, "ann", "sch")
		})
		if timer.State != reeve.TimerCompleted || timer.NextAt != nil {
			t.Errorf("its timer: %+v", timer)
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Subscription, error) {
			return s.Queue().
				ListSubscriptions(ctx, ws, a.ID)
		})), 0, "its subscriptions")
		timer.State = reeve.TimerActive
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) }), reeve.Conflict)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub2", WorkspaceID: ws, AgentID: a.ID})
		}), reeve.Conflict)
	},
}
