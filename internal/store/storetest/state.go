package storetest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
)

func stateOf(t testing.TB, db *store.DB) reeve.AgentState {
	t.Helper()
	return view(t, db, func(s *store.Snap) (reeve.AgentState, error) {
		return s.Agents().
			AgentState(t.Context(), "agt_one")
	})
}

// put replaces the slots of agt_one.
func put(t testing.TB, db *store.DB, revision int64,
	slots reeve.AgentSlots) (is reeve.AgentState, changed bool, err error) {
	t.Helper()
	err = db.Update(t.Context(), func(tx *store.Tx) (err error) {
		is, changed, err = tx.Agents().PutSlots(t.Context(), reeve.Agent{ID: "agt_one", WorkspaceID: ws}, revision,
			slots)
		return err
	})
	return is, changed, err
}

// states tests what an agent remembers of itself, and how it is here.
var states = map[string]func(*testing.T, *store.DB){
	"slots": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		if s := stateOf(t, db); s.Revision != 0 || s.Slots.SchemaVersion != reeve.StateVersion || s.Processed == nil ||
			s.Stamps == nil {
			t.Fatalf("before anything: %+v", s)
		}
		const odd = `{"n":12345678901234567890.10,"z":1,"a":[1.0]}`
		slots := reeve.AgentSlots{PrimaryGoal: "rest", Preferences: map[string]string{"tone": "dry", "pace": "slow"},
			Extension: map[string]json.RawMessage{"org.gym": json.RawMessage(odd)}}
		first, changed, err := put(t, db, 0, slots)
		must(t, err)
		if !changed || first.Revision != 1 || first.Stamp.Node == "" || first.Stamp.Counter == 0 ||
			first.Stamp.Clock[first.Stamp.Node] != first.Stamp.Counter {
			t.Fatalf("%+v", first)
		}
		equal(t, string(stateOf(t, db).Slots.Extension["org.gym"]), odd, "what is others' is kept as it is")
		slots.PrimaryGoal = "train"
		delete(slots.Preferences, "pace")
		second, _, err := put(t, db, 1, slots)
		must(t, err)
		for path, n := range map[string]int64{"primary_goal": second.Stamp.Counter,
			"preferences/pace": second.Stamp.Counter, "preferences/tone": first.Stamp.Counter,
			"extension/org.gym": first.Stamp.Counter} {
			equal(t, second.Stamps[path].Counter, n, "the mark of %s", path)
		}
		if _, changed, err := put(t, db, 0, slots); err != nil || changed {
			t.Fatalf("the same again: %v %v", changed, err)
		}
		slots.PrimaryGoal = "sleep"
		_, _, err = put(t, db, 1, slots)
		wantCode(t, err, reeve.Stale)
		equal(t, stateOf(t, db).Slots.PrimaryGoal, "train", "after a stale change")
	},

	"slots changed at once": func(t *testing.T, db *store.DB) {
		setUp(t, db)
		results := race(8, func(i int) error {
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
				if _, _, err = put(t, db, s.Revision, s.Slots); reeve.CodeOf(err) != reeve.Stale {
					return err
				}
			}
		})
		must(t, firstOf(results))
		s := stateOf(t, db)
		equal(t, len(s.Slots.Preferences), 8, "what all of them wrote")
		equal(t, s.Revision, 8, "revision")
	},

	"pointers move with a run's end": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		setUp(t, db)
		stamp := func() (s reeve.Stamp) {
			update(t, db, func(tx *store.Tx) (err error) { s, err = tx.Stamp(ctx); return err })
			return s
		}
		run := func(i int, state reeve.RunState) (head string) {
			id := fmt.Sprint("run_", i)
			queue(t, db, reeve.Wake{RunKey: id, Reason: reeve.ReasonSubscription})
			equal(t, started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, id, "proc_1"), true, "started")
			update(t, db, func(tx *store.Tx) error {
				head = tx.NewID(reeve.PrefixMessage)
				return tx.Ledger().AppendMessage(ctx, reeve.Message{ID: head, WorkspaceID: ws,
					ThreadID: "agt_one:run:" + id, AgentID: "agt_one", Kind: reeve.Thought})
			})
			stamp() // a change that the run may not have seen
			equal(t, view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) {
				return s.Agents().
					Runtime(ctx, "agt_one")
			}).Status, reeve.AgentRunning, "while it runs")
			must(t, ended(t, db, id, state))
			return head
		}
		seen := stamp()
		head := run(1, reeve.RunCompleted)
		s := stateOf(t, db)
		equal(t, s.Head, head, "head")
		equal(t, s.Processed[seen.Node], seen.Counter, "what it has seen is what there was when it began")
		equal(t, s.Revision, 0, "a run does not stand in the way of who edits slots")
		_, _, err := put(t, db, 0, reeve.AgentSlots{PrimaryGoal: "x"})
		must(t, err)
		head = run(2, reeve.RunFailed)
		s = stateOf(t, db)
		equal(t, s.Head, head, "head after a failure")
		equal(t, s.Processed[seen.Node], seen.Counter, "a run that failed has seen nothing")
		equal(t, s.Slots.PrimaryGoal, "x", "slots")
		r := view(t, db, func(s *store.Snap) (reeve.AgentRuntime, error) { return s.Agents().Runtime(ctx, "agt_one") })
		if r.Status != reeve.AgentIdle || r.FailureStreak != 1 || r.ActiveRun != "" || r.LastRunAt == nil {
			t.Errorf("%+v", r)
		}
		goal := store.DueAgent{AgentID: "agt_one", WorkspaceID: ws, SessionID: store.ScheduleLane + "t"}
		queue(t, db, reeve.Wake{RunKey: "goal", Reason: reeve.ReasonTimer, SessionID: goal.SessionID})
		equal(t, started(t, db, goal, "run_goal", "proc_1"), true, "a schedule's run")
		must(t, ended(t, db, "run_goal", reeve.RunCompleted))
		equal(t, stateOf(t, db).Processed[seen.Node], seen.Counter, "a schedule's run looks at nothing but its goal")
		queue(t, db, reeve.Wake{RunKey: "last", Reason: reeve.ReasonSubscription})
		started(t, db, store.DueAgent{AgentID: "agt_one", WorkspaceID: ws}, "run_last", "proc_1")
		update(t, db, func(tx *store.Tx) error { return tx.Agents().DeleteAgent(ctx, ws, "agt_one") })
		// and has no state
		equal(t, view(t, db, func(s *store.Snap) (reeve.RunState, error) {
			return s.Runs().
				RunState(ctx, ws, "run_last")
		}), reeve.RunCancelled, "a run whose agent is gone")
		equal(t, stateOf(t, db).Head, "", "the state of an agent that is gone")
	},

	"agents are stamped": func(t *testing.T, db *store.DB) {
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

	"what wakes an agent is stamped, and leaves its stamp when it is removed": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := setUp(t, db)
		later := reeve.Now().Add(time.Hour)
		timer := reeve.Timer{ID: "sch", WorkspaceID: ws, AgentID: a.ID, UserID: "ann", Kind: "cron",
			State: reeve.TimerActive, NextAt: &later}
		last := int64(0)
		stamped := func(what string, of func(s *store.Snap) (reeve.Stamp, error), do func(tx *store.Tx) error) {
			t.Helper()
			update(t, db, do)
			s := view(t, db, of)
			if s.Node == "" || s.Counter <= last || s.Clock[s.Node] != s.Counter {
				t.Errorf("%s: %+v after number %d", what, s, last)
			}
			last = s.Counter
		}
		timers := func(s *store.Snap) (reeve.Stamp, error) { return s.StampOf(ctx, store.SharedTimers, "sch") }
		subscriptions := func(s *store.Snap) (reeve.Stamp, error) {
			return s.StampOf(ctx, store.SharedSubscriptions, "sub")
		}
		stamped("a timer", timers, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) })
		timer.Name = "renamed"
		stamped("a timer that is changed", timers, func(tx *store.Tx) error { return tx.Queue().PutTimer(ctx, timer) })
		update(t, db, func(tx *store.Tx) error { return tx.Queue().AdvanceTimers(ctx, []reeve.Timer{timer}) })
		equal(t, view(t, db, timers).Counter, last, "the number after a firing, which is no change")
		stamped("a subscription", subscriptions, func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub", WorkspaceID: ws, AgentID: a.ID,
				Token: reeve.Token{Class: reeve.SemanticKey, Name: "X"}})
		})
		wantCode(t, db.Update(ctx, func(tx *store.Tx) error {
			return tx.Queue().
				DeleteSubscription(ctx, "wsp_foreign", "sub")
		}), reeve.NotFound)
		stamped("a subscription that is removed", subscriptions, func(tx *store.Tx) error {
			return tx.Queue().
				DeleteSubscription(ctx, ws, "sub")
		})
		stamped("a timer that is removed", timers, func(tx *store.Tx) error {
			return tx.Queue().
				DeleteTimer(ctx, ws, "sch")
		})
		stamped("an agent that is removed",
			func(s *store.Snap) (reeve.Stamp, error) { return s.StampOf(ctx, store.SharedAgents, a.ID) },
			func(tx *store.Tx) error { return tx.Agents().DeleteAgent(ctx, ws, a.ID) })
	},
}
