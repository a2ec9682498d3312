package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// startRun starts a run for the queued wakes of a lane, as the scheduler does. It reports whether the run was inserted.
func startRun(t testing.TB, db *store.DB, lane store.DueAgent, id, process string) (ok bool) {
	t.Helper()
	ctx := t.Context()
	update(t, db, func(tx *store.Tx) error {
		ok = false
		list, err := tx.Queue().QueuedWakes(ctx, lane, 100)
		if err != nil || len(list) == 0 {
			return err
		}
		ok, err = tx.Runs().InsertRun(ctx, reeve.Run{ID: id, Key: list[0].RunKey, WorkspaceID: lane.WorkspaceID,
			AgentID: lane.AgentID, SessionID: lane.SessionID, Reason: list[0].Reason,
			ReasonID: list[0].ReasonID, Origins: list[0].Origins, ThreadID: reeve.RunThread(lane.AgentID, id),
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

// getRun returns a run of the workspace ws.
func getRun(t testing.TB, db *store.DB, id string) reeve.Run {
	t.Helper()
	return view(t, db, func(s *store.Snap) (reeve.Run, error) { return s.Runs().GetRun(t.Context(), ws, id) })
}

// transitionRun changes the state of a run and releases it.
func transitionRun(t testing.TB, db *store.DB, id string, state reeve.RunState) error {
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

// completeRun starts a run for the wakes of a lane and completes it.
func completeRun(t testing.TB, db *store.DB, c store.DueAgent) error {
	t.Helper()
	startRun(t, db, c, "run_x", "proc_1")
	return transitionRun(t, db, "run_x", reeve.RunCompleted)
}

// runs tests the start of runs from wakes, their ownership, and their end.
var runs = map[string]func(*testing.T, *store.DB){
	"one run per lane": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		ago := func(m int) time.Time { return reeve.Now().Add(-time.Duration(m) * time.Minute) }
		enqueueWake(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription, DueAt: ago(3)})
		equal(t, enqueueWake(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription}), false,
			"inserted a key that is queued")
		enqueueWake(t, db, reeve.Wake{RunKey: "k2", Reason: reeve.ReasonSubscription,
			DueAt: reeve.Now().Add(time.Hour)})
		enqueueWake(t, db, reeve.Wake{RunKey: "s1", Reason: reeve.ReasonTimer, SessionID: "schedule:a", DueAt: ago(60)})
		enqueueWake(t, db, reeve.Wake{RunKey: "s2", Reason: reeve.ReasonTimer, SessionID: "schedule:b", DueAt: ago(2)})
		enqueueWake(t, db, reeve.Wake{RunKey: "m1", Reason: reeve.ReasonManual, SessionID: "manual:m1", DueAt: ago(1)})
		equal(t, dueLanes(t, db), "agt_one/schedule:a agt_one/ agt_one/schedule:b", "due lanes, oldest first")
		mainLane := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}
		equal(t, startRun(t, db, mainLane, "run_1", "proc_1"), true, "started")
		equal(t, getRun(t, db, "run_1").Wakes, 2, "wakes of the run, including those not yet due")
		equal(t, dueLanes(t, db), "agt_one/schedule:a agt_one/schedule:b", "due lanes during the run: only schedules")
		manual := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:m1"}
		equal(t, startRun(t, db, manual, "run_2", "proc_1"), false, "started a second run of the agent")
		schedule := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "schedule:a"}
		equal(t, startRun(t, db, schedule, "run_3", "proc_1"), true, "started the run of a schedule")
		enqueueWake(t, db, reeve.Wake{RunKey: "s3", Reason: reeve.ReasonTimer, SessionID: "schedule:a", DueAt: ago(1)})
		equal(t, startRun(t, db, schedule, "run_4", "proc_1"), false, "started a second run of the same schedule")
		must(t, transitionRun(t, db, "run_1", reeve.RunParked))
		equal(t, dueLanes(t, db), "agt_one/schedule:b", "due lanes while the run is parked")
		must(t, transitionRun(t, db, "run_3", reeve.RunCompleted))
		equal(t, dueLanes(t, db), "agt_one/schedule:b agt_one/schedule:a", "due lanes after the run of the schedule")
		wantCode(t, transitionRun(t, db, "run_3", reeve.RunFailed), reeve.Conflict)
		must(t, transitionRun(t, db, "run_1", reeve.RunFailed))
		rt := view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) { return s.Agents().Runtime(ctx, "agt_one") })
		equal(t, rt.ActiveRun, "", "active run")
		equal(t, rt.FailureStreak, 1, "failures")
		equal(t, enqueueWake(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription}), false,
			"inserted a key that was used")
		// The throttle delays wakes of changes and timers. QueueNextDue returns the time when it ends.
		update(t, db, func(tx *store.Tx) error {
			a, err := tx.Agents().GetAgent(ctx, ws, "agt_one")
			if err != nil {
				return err
			}
			a.ThrottleMS = time.Hour.Milliseconds()
			return tx.Agents().UpdateAgent(ctx, a)
		})
		equal(t, dueLanes(t, db), "agt_one/manual:m1", "due lanes under the throttle")
		must(t, completeRun(t, db, manual))
		var timer, wake []int64
		update(t, db, func(tx *store.Tx) error { return tx.Queue().QueueNextDue(ctx, &timer, &wake, true) })
		if len(wake) != 1 || len(timer) != 0 {
			t.Fatalf("next wakes %d, next timers %d, want one wake and no timer", wake, timer)
		}
		if d := reeve.FromMillis(wake[0]).Sub(reeve.Now()); d > time.Hour || d < 58*time.Minute {
			t.Errorf("next wake in %s, want 1h", d)
		}
	},

	"concurrent starts of a run": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(t.Context(), "proc_1") })
		for i := range 20 {
			enqueueWake(t, db, reeve.Wake{RunKey: fmt.Sprint("k", i), Reason: reeve.ReasonSubscription})
		}
		won := make([]bool, 8)
		must(t, firstError(runConcurrently(8, func(i int) error {
			won[i] = startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, fmt.Sprint("run_", i),
				"proc_1")
			return nil
		})))
		n := 0
		for _, w := range won {
			if w {
				n++
			}
		}
		equal(t, n, 1, "successful starts")
		for _, w := range view(t, db, func(s *store.Snap) ([]reeve.Wake, error) {
			return s.Queue().ListWakes(t.Context(), ws, store.WakeFilter{Agent: "agt_one", Limit: 100})
		}) {
			// A wake that was locked by another transaction stays queued for the next run.
			if isTaken := w.State == reeve.WakeTaken && w.RunID != ""; !isTaken && w.State != reeve.WakeQueued {
				t.Errorf("%+v", w)
			}
		}
	},

	"runs without a live owner": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		for i, p := range []string{"proc_1", "proc_gone", "proc_1", "proc_1"} {
			s := fmt.Sprint("schedule:", i)
			enqueueWake(t, db, reeve.Wake{RunKey: s, Reason: reeve.ReasonTimer, SessionID: s})
			startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: s}, fmt.Sprint("run_", i), p)
		}
		must(t, transitionRun(t, db, "run_2", reeve.RunParked)) // waits for an approval
		must(t, transitionRun(t, db, "run_3", reeve.RunParked)) // has nothing to wait for
		update(t, db, func(tx *store.Tx) error {
			o := newOperation("op_2", reeve.Parked)
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
		hasOtherRuns := func() (found bool) {
			update(t, db, func(tx *store.Tx) error {
				ahead, err := tx.Queue().DueWork(ctx, "proc_1", 1, 1)
				found = ahead.HasOtherRuns
				return err
			})
			return found
		}
		stop := func(at time.Time) {
			update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, at, "") })
		}
		stop(reeve.Now())
		equal(t, hasOtherRuns(), true, "has runs to claim")
		equal(t, len(claim(10)), 0, "claimed runs in a stopped workspace")
		stop(time.Time{})
		equal(t, joinIDs(claim(1), func(r reeve.Run) string { return fmt.Sprint(r.ID, r.Attempts, r.Owner, r.State) }),
			"run_12proc_1running", "first claimed run")
		equal(t, joinIDs(claim(10), func(r reeve.Run) string { return fmt.Sprint(r.ID, r.Attempts, r.Owner, r.State) }),
			"run_31proc_1running", "second claimed run")
		equal(t, len(claim(10)), 0, "claimed runs after all were claimed")
		equal(t, joinIDs(view(t, db, func(s *store.Snap) ([]reeve.Run, error) {
			return s.Runs().RunsOwnedBy(ctx, "proc_1")
		}), func(r reeve.Run) string { return r.ID }), "run_0 run_1 run_3", "runs of the process")
		equal(t, hasOtherRuns(), true, "has other runs while one is parked")
		must(t, transitionRun(t, db, "run_2", reeve.RunFailed))
		equal(t, hasOtherRuns(), false, "has other runs after the last has failed")
	},

	"runs acting for an agent": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		list := []string{"run_unknown"}
		for id, callers := range map[string][]string{"run_own": nil, "run_near": {"agt_one"},
			"run_far": {"agt_one", "agt_two"}, "run_other": {"agt_two"}} {
			v := reeve.Run{ID: id, Key: id, WorkspaceID: ws, AgentID: "agt_one", Reason: reeve.ReasonUser,
				State: reeve.RunRunning, ThreadID: "th"}
			for _, a := range callers {
				v.Ancestors = append(v.Ancestors, reeve.Ancestor{AgentID: a})
			}
			update(t, db, func(tx *store.Tx) error { _, err := tx.Runs().InsertRun(ctx, v); return err })
			list = append(list, id)
		}
		actingFor := view(t, db, func(s *store.Snap) (map[string]bool, error) {
			return s.Runs().RunsActingFor(ctx, "agt_one", list)
		})
		maps.DeleteFunc(actingFor, func(_ string, on bool) bool { return !on })
		equal(t, fmt.Sprint(slices.Sorted(maps.Keys(actingFor))), "[run_far run_near]", "runs acting for an agent")
	},

	// A parked run that waits for deferred calls is resumed when a result arrives that it has not yet seen, even if the
	// result was written before the run parked. A run that waits for another call is resumed when that call has a
	// result.
	"deferred results": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		update(t, db, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, "proc_1") })
		enqueueWake(t, db, reeve.Wake{RunKey: "k", Reason: reeve.ReasonTimer, SessionID: "schedule:1"})
		startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "schedule:1"}, "run_1", "proc_1")
		ops := map[string]reeve.Operation{}
		for _, id := range []string{"op_1", "op_2", "op_3", "op_other"} {
			o := newOperation(id, reeve.Dispatched)
			o.RunID, o.Deferred = "run_1", id != "op_other"
			ops[id] = o
			update(t, db, func(tx *store.Tx) error { return insertOperation(ctx, tx, o) })
		}
		commit := func(id string) {
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
		parkAfterResults := func() int {
			known := view(t, db, func(s *store.Snap) (int, error) {
				return s.Runs().CountDeferredResults(ctx, "run_1")
			})
			park(known + 1)
			return known
		}
		claimRuns := func() (n int) {
			update(t, db, func(tx *store.Tx) error {
				list, err := tx.Runs().ClaimRuns(ctx, "proc_1", 10)
				n = len(list)
				return err
			})
			return n
		}
		park(0)
		equal(t, claimRuns(), 0, "resumed before the call has a result")
		commit("op_other")
		equal(t, claimRuns(), 1, "resumed after the call, while deferred calls are pending")
		for i, id := range []string{"op_1", "op_2", "op_3"} {
			equal(t, parkAfterResults(), i, "results that the run has seen")
			equal(t, claimRuns(), 0, "resumed without a new result")
			commit(id)
			equal(t, claimRuns(), 1, "resumed after the result of %s", id)
		}
	},

	// CancelRun cancels the current state of a run, even if the run has parked or resumed since the caller has read it.
	"cancel of a run that parks": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		enqueueWake(t, db, reeve.Wake{RunKey: "k", Reason: reeve.ReasonManual, SessionID: "manual:1"})
		startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:1"}, "run_1", "proc_1")
		stale := getRun(t, db, "run_1")
		must(t, transitionRun(t, db, "run_1", reeve.RunParked))
		cancel := func() error {
			return db.Update(ctx, func(tx *store.Tx) error {
				_, err := tx.Runs().CancelRun(ctx, stale, reeve.Errorf(reeve.Canceled, "enough"))
				return err
			})
		}
		must(t, cancel())
		equal(t, getRun(t, db, "run_1").State, reeve.RunCancelled, "state of the run")
		wantCode(t, cancel(), reeve.Conflict)
	},

	"no frames after the end of a turn": func(t *testing.T, db *store.DB) {
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
		ended, updated := make(chan struct{}), make(chan error, 2)
		updateAfterEnd := func(f func(*store.Tx) error) {
			go func() { <-ended; updated <- db.Update(ctx, f) }()
		}
		var state reeve.RunState
		updateAfterEnd(func(tx *store.Tx) error {
			return tx.Chat().AppendFrame(ctx, "conv_1", "run_1:late", frame(reeve.FrameMessage, ""))
		})
		updateAfterEnd(func(tx *store.Tx) (err error) {
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
			_, err := tx.Runs().GetRun(ctx, ws, "run_1") // sends the queued statements
			close(ended)
			return err
		})
		must(t, <-updated)
		must(t, <-updated)
		equal(t, state, reeve.RunCancelled, "state of the turn after LockConversation")
		frames := view(t, db, func(s *store.Snap) ([]reeve.Frame, error) {
			return s.Chat().ListFrames(ctx, "conv_1", 0, 10)
		})
		equal(t, joinIDs(frames, func(f reeve.Frame) string { return string(f.Type) + f.ToolCallID }),
			"tool_startedb tool_starteda tool_resultb tool_resulta turn_complete", "frames")
	},

	"stopped workspace and destroyed agent": func(t *testing.T, db *store.DB) {
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
		enqueueWake(t, db, reeve.Wake{RunKey: "k1", Reason: reeve.ReasonSubscription, DueAt: later})
		enqueueWake(t, db, reeve.Wake{RunKey: "script job", Reason: reeve.ReasonScriptJob,
			SessionID: store.ScriptJobSession + "x", DueAt: later})
		enqueueWake(t, db, reeve.Wake{RunKey: "retry", Reason: reeve.ReasonRetry, SessionID: store.ManualSession +
			"retry",
			DueAt: later})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, tx.Now(), "enough") })
		wake := func(key string) reeve.Wake {
			return view(t, db, func(s *store.Snap) (reeve.Wake, error) { return s.Queue().GetWake(ctx, key) })
		}
		equal(t, wake("k1").State, reeve.WakeSkipped, "wake in a stopped workspace")
		equal(t, wake("script job").State+" "+wake("retry").State, "queued queued",
			"script job and retry in a stopped workspace")
		enqueueWake(t, db, reeve.Wake{RunKey: "k2", Reason: reeve.ReasonSubscription})
		update(t, db, func(tx *store.Tx) error { return tx.Agents().StopWorkspace(ctx, ws, time.Time{}, "") })
		equal(t, wake("k2").State, reeve.WakeQueued, "wake in a resumed workspace")
		if !startRun(t, db, store.DueAgent{AgentID: a.ID, WorkspaceID: ws}, "run_1", "proc_1") {
			t.Fatal("the run did not start")
		}
		enqueueWake(t, db, reeve.Wake{RunKey: "k3", Reason: reeve.ReasonSubscription})
		a.Lifecycle = reeve.AgentDestroyed
		foreign := a
		foreign.WorkspaceID = "ws_two"
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, foreign) })
		equal(t, wake("k3").State+" "+wake("retry").State, "queued queued",
			"wakes after an update from another workspace")
		update(t, db, func(tx *store.Tx) error { return tx.Agents().UpdateAgent(ctx, a) })
		equal(t, wake("k3").State, reeve.WakeSkipped, "wake of a destroyed agent")
		equal(t, wake("k3").Why, "the agent is destroyed", "why the wake was skipped")
		equal(t, wake("script job").State+" "+wake("retry").State, "queued skipped",
			"script job and retry of a destroyed agent")
		equal(t, getRun(t, db, "run_1").State, reeve.RunCancelled, "run of a destroyed agent")
		timer := view(t, db, func(s *store.Snap) (reeve.Timer, error) {
			return s.Queue().GetTimer(ctx, ws, "ann", "sch")
		})
		if timer.State != reeve.TimerCompleted || timer.NextAt != nil {
			t.Errorf("timer of a destroyed agent: %+v", timer)
		}
		equal(t, len(view(t, db, func(s *store.Snap) ([]reeve.Subscription, error) {
			return s.Queue().ListSubscriptions(ctx, ws, a.ID)
		})), 0, "subscriptions of a destroyed agent")
		timer.State = reeve.TimerActive
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) }), reeve.Conflict)
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub2", WorkspaceID: ws, AgentID: a.ID})
		}), reeve.Conflict)
	},
}
