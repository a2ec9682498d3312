package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

// getAgentState returns the state of agt_one.
func getAgentState(t testing.TB, db *store.DB) reeve.AgentState {
	t.Helper()
	return view(t, db, func(s *store.Snap) (reeve.AgentState, error) {
		return s.Agents().AgentState(t.Context(), "agt_one")
	})
}

// putSlots replaces the slots of agt_one if its state has the given revision.
func putSlots(t testing.TB, db *store.DB, revision int64,
	slots reeve.AgentSlots) (is reeve.AgentState, changed bool, err error) {
	t.Helper()
	err = db.Update(t.Context(), func(tx *store.Tx) (err error) {
		is, changed, err = tx.Agents().PutSlots(t.Context(), reeve.Agent{ID: "agt_one", WorkspaceID: ws}, revision,
			slots)
		return err
	})
	return is, changed, err
}

// states tests the state of agents, which hosts share, and their runtime status on this host.
var states = map[string]func(*testing.T, *store.DB){
	"slots": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		if s := getAgentState(t, db); s.Revision != 0 || s.Slots.SchemaVersion != reeve.StateVersion ||
			s.Processed == nil ||
			s.Stamps == nil {
			t.Fatalf("initial state: %+v", s)
		}
		const extension = `{"n":12345678901234567890.10,"z":1,"a":[1.0]}`
		slots := reeve.AgentSlots{PrimaryGoal: "rest", Preferences: map[string]string{"tone": "dry", "pace": "slow"},
			Extension: map[string]json.RawMessage{"org.gym": json.RawMessage(extension)}}
		first, changed, err := putSlots(t, db, 0, slots)
		must(t, err)
		if !changed || first.Revision != 1 || first.Stamp.Node == "" || first.Stamp.Counter == 0 ||
			first.Stamp.Clock[first.Stamp.Node] != first.Stamp.Counter {
			t.Fatalf("%+v", first)
		}
		equal(t, string(getAgentState(t, db).Slots.Extension["org.gym"]), extension, "extension is stored unchanged")
		slots.PrimaryGoal = "train"
		delete(slots.Preferences, "pace")
		second, _, err := putSlots(t, db, 1, slots)
		must(t, err)
		for path, n := range map[string]int64{"primary_goal": second.Stamp.Counter,
			"preferences/pace": second.Stamp.Counter, "preferences/tone": first.Stamp.Counter,
			"extension/org.gym": first.Stamp.Counter} {
			equal(t, second.Stamps[path].Counter, n, "counter of %s", path)
		}
		if _, changed, err := putSlots(t, db, 0, slots); err != nil || changed {
			t.Fatalf("put of equal slots: %v %v", changed, err)
		}
		slots.PrimaryGoal = "sleep"
		_, _, err = putSlots(t, db, 1, slots)
		wantCode(t, err, reeve.Stale)
		equal(t, getAgentState(t, db).Slots.PrimaryGoal, "train", "goal after a stale put")
	},

	"concurrent puts of slots": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		results := runConcurrently(8, func(i int) error {
			for {
				var s reeve.AgentState
				err := db.View(t.Context(), func(snap *store.Snap) (err error) {
					s, err = snap.Agents().AgentState(t.Context(), "agt_one")
					return err
				})
				if err != nil {
					return err
				}
				if s.Slots.Preferences == nil {
					s.Slots.Preferences = map[string]string{}
				}
				s.Slots.Preferences[fmt.Sprint("k", i)] = "v"
				if _, _, err = putSlots(t, db, s.Revision, s.Slots); reeve.CodeOf(err) != reeve.Stale {
					return err
				}
			}
		})
		must(t, firstError(results))
		s := getAgentState(t, db)
		equal(t, len(s.Slots.Preferences), 8, "preferences")
		equal(t, s.Revision, 8, "revision")
	},

	"pointers after a run": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		stamp := func() (s reeve.Stamp) {
			update(t, db, func(tx *store.Tx) (err error) { s, err = tx.Stamp(ctx); return err })
			return s
		}
		run := func(i int, state reeve.RunState) (head string) {
			id := fmt.Sprint("run_", i)
			enqueueWake(t, db, reeve.Wake{RunKey: id, Reason: reeve.ReasonSubscription})
			equal(t, startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, id, "proc_1"), true,
				"started")
			update(t, db, func(tx *store.Tx) error {
				head = tx.NewID(reeve.PrefixMessage)
				return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: head, WorkspaceID: ws,
					ThreadID: "agt_one:run:" + id, AgentID: "agt_one", Kind: reeve.Thought})
			})
			stamp() // a change after the start of the run
			equal(t, view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) {
				return s.Agents().Runtime(ctx, "agt_one")
			}).Status, reeve.AgentRunning, "status during the run")
			must(t, transitionRun(t, db, id, state))
			return head
		}
		seen := stamp()
		head := run(1, reeve.RunCompleted)
		s := getAgentState(t, db)
		equal(t, s.Head, head, "head")
		equal(t, s.Processed[seen.Node], seen.Counter, "processed: changes before the start of the run")
		equal(t, s.Revision, 0, "revision: a run does not conflict with an edit of slots")
		_, _, err := putSlots(t, db, 0, reeve.AgentSlots{PrimaryGoal: "x"})
		must(t, err)
		head = run(2, reeve.RunFailed)
		s = getAgentState(t, db)
		equal(t, s.Head, head, "head after a failure")
		equal(t, s.Processed[seen.Node], seen.Counter, "processed: unchanged by a failed run")
		equal(t, s.Slots.PrimaryGoal, "x", "slots")
		r := view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) { return s.Agents().Runtime(ctx, "agt_one") })
		if r.Status != reeve.AgentIdle || r.FailureStreak != 1 || r.ActiveRun != "" || r.LastRunAt == nil {
			t.Errorf("%+v", r)
		}
		goal := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: store.ScheduleSession + "t"}
		enqueueWake(t, db, reeve.Wake{RunKey: "goal", Reason: reeve.ReasonTimer, SessionID: goal.SessionID})
		equal(t, startRun(t, db, goal, "run_goal", "proc_1"), true, "started the run of a schedule")
		must(t, transitionRun(t, db, "run_goal", reeve.RunCompleted))
		equal(t, getAgentState(t, db).Processed[seen.Node], seen.Counter,
			"processed: unchanged by the run of a schedule")
		enqueueWake(t, db, reeve.Wake{RunKey: "last", Reason: reeve.ReasonSubscription})
		startRun(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, "run_last", "proc_1")
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteAgent(ctx, ws, "agt_one") })
		equal(t, view(t, db, func(s *store.Snap) (reeve.RunState, error) {
			return s.Runs().RunState(ctx, ws, "run_last")
		}), reeve.RunCancelled, "state of a run of a deleted agent")
		equal(t, getAgentState(t, db).Head, "", "head of a deleted agent")
	},

	"stamps of agents": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		read := func() reeve.Stamp {
			return view(t, db, func(s *store.Snap) (reeve.Agent, error) { return s.Agents().GetAgent(ctx, ws, a.ID) }).
				Stamp
		}
		var counters []int64
		for _, name := range []string{"two", "three"} {
			a.Name = name
			update(t, db, func(tx *store.Tx) error { return tx.Agents().ChangeAgent(ctx, a) })
			s := read()
			equal(t, s.Clock[s.Node], s.Counter, "clock")
			counters = append(counters, s.Counter)
		}
		if counters[1] <= counters[0] {
			t.Errorf("counters %v", counters)
		}
	},

	"stamps of timers and subscriptions": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		later := reeve.Now().Add(time.Hour)
		timer := reeve.Timer{ID: "sch", WorkspaceID: ws, AgentID: a.ID, UserID: "ann", Kind: "cron",
			State: reeve.TimerActive, NextAt: &later}
		last := int64(0)
		checkStamp := func(what string, of func(s *store.Snap) (reeve.Stamp, error), do func(tx *store.Tx) error) {
			t.Helper()
			update(t, db, do)
			s := view(t, db, of)
			if s.Node == "" || s.Counter <= last || s.Clock[s.Node] != s.Counter {
				t.Errorf("%s: %+v after counter %d", what, s, last)
			}
			last = s.Counter
		}
		timers := func(s *store.Snap) (reeve.Stamp, error) { return s.StampOf(ctx, store.SharedTimers, "sch") }
		subscriptions := func(s *store.Snap) (reeve.Stamp, error) {
			return s.StampOf(ctx, store.SharedSubscriptions, "sub")
		}
		checkStamp("a timer", timers, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) })
		timer.Name = "renamed"
		checkStamp("a changed timer", timers, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) })
		update(t, db, func(tx *store.Tx) error { return tx.Queue().AdvanceTimers(ctx, []reeve.Timer{timer}) })
		equal(t, view(t, db, timers).Counter, last, "counter after a firing, which is not a change")
		checkStamp("a subscription", subscriptions, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub", WorkspaceID: ws, AgentID: a.ID,
				Token: reeve.Token{Class: reeve.SemanticKey, Name: "X"}})
		})
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().DeleteSubscription(ctx, "wsp_foreign", "sub")
		}), reeve.NotFound)
		checkStamp("a deleted subscription", subscriptions, func(tx *store.Tx) error {
			return tx.Queue().DeleteSubscription(ctx, ws, "sub")
		})
		checkStamp("a deleted timer", timers, func(tx *store.Tx) error {
			return tx.Queue().DeleteTimer(ctx, ws, "sch")
		})
		checkStamp("a deleted agent",
			func(s *store.Snap) (reeve.Stamp, error) { return s.StampOf(ctx, store.SharedAgents, a.ID) },
			func(tx *store.Tx) error { return tx.Agents().DeleteAgent(ctx, ws, a.ID) })
	},
}
