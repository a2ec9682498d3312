package wake

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
)

// sleepByAgent returns a brain that sleeps for a time that depends on the agent and the reason id.
func sleepByAgent(times map[string]time.Duration) func(context.Context, reeve.Run) reeve.RunEnd {
	return func(ctx context.Context, run reeve.Run) reeve.RunEnd {
		notify.Sleep(ctx, times[run.AgentID+run.ReasonID])
		if ctx.Err() != nil {
			return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.Canceled, "stopping")}
		}
		return reeve.RunEnd{State: reeve.RunCompleted}
	}
}

// Changes within the debounce window cause one run, and changes during that run cause one more.
func TestL04_BurstCausesOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("coach", 0, "TASK")
		w.brain.do = sleepByAgent(map[string]time.Duration{"coachsub_coach_TASK": time.Second})
		stop := w.startLoop()
		for i := range 50 {
			w.recordChange("TASK", fmt.Sprint("op_a", i), reeve.Run{})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(500 * time.Millisecond) // the run is active
		if n := len(w.listRuns("coach")); n != 1 {
			t.Fatalf("%d runs after a burst, want 1", n)
		}
		for i := range 20 {
			w.recordChange("TASK", fmt.Sprint("op_b", i), reeve.Run{})
		}
		time.Sleep(5 * time.Second)
		stop()
		list := w.listRuns("coach")
		if len(list) != 2 || list[1].Wakes != 50 || list[0].Wakes != 20 {
			t.Fatalf("runs: %+v", list)
		}
		w.checkAllEnded()
	})
}

// The debounce window is 100 ms.
func TestL04_DebounceWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("coach", 0, "TASK")
		stop := w.startLoop()
		start := time.Now()
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(time.Second)
		stop()
		list := w.listRuns("")
		if d := list[0].StartedAt.Sub(start); len(list) != 1 || d < 99*time.Millisecond || d > 110*time.Millisecond {
			t.Errorf("the run started after %s", d)
		}
	})
}

// An agent has one run at a time and does not delay other agents.
func TestL11_OneRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("slow", 0, "TASK")
		w.insertAgent("quick", 0, "TASK")
		w.brain.do = sleepByAgent(map[string]time.Duration{"slowsub_slow_TASK": time.Minute, "slowann": time.Minute})
		stop := w.startLoop()
		start := time.Now()
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(time.Second)
		for i := range 3 { // manual wakes are not merged
			if _, err := w.Wake(t.Context(), home, "slow", "ann", fmt.Sprint(i), "go"); err != nil {
				t.Fatal(err)
			}
		}
		w.insertTimer("tick", "slow", "once", start.Add(2*time.Second).Format(time.RFC3339), "")
		w.recordChange("TASK", "op_2", reeve.Run{})
		time.Sleep(7 * time.Minute)
		stop()
		if w.brain.most["slow"] != 1 {
			t.Errorf("%d concurrent runs of one agent", w.brain.most["slow"])
		}
		if n := len(w.listRuns("slow")); n != 6 {
			t.Errorf("%d runs of the slow agent, want 6: two by changes, three manual, one by its timer", n)
		}
		for _, r := range w.listRuns("quick") {
			if d := r.StartedAt.Sub(start); d > 2*time.Second {
				t.Errorf("the quick agent was delayed by %s", d)
			}
		}
		w.checkAllEnded()
	})
}

// At most MaxRuns runs are active at the same time.
func TestL11_GlobalConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.MaxRuns = 3
		times := map[string]time.Duration{}
		for i := range 10 {
			id := fmt.Sprint("a", i)
			w.insertAgent(id, 0, "TASK")
			times[id+"sub_"+id+"_TASK"] = time.Second
		}
		inner, active, most := sleepByAgent(times), 0, 0
		w.brain.do = func(ctx context.Context, run reeve.Run) reeve.RunEnd {
			w.brain.mu.Lock()
			active++
			most = max(most, active)
			w.brain.mu.Unlock()
			defer func() { w.brain.mu.Lock(); active--; w.brain.mu.Unlock() }()
			return inner(ctx, run)
		}
		stop := w.startLoop()
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(time.Minute)
		stop()
		if most != 3 {
			t.Errorf("%d concurrent runs, want 3", most)
		}
		w.checkAllEnded()
	})
}

// At most 2*MaxRuns runs are started and not ended, however fast the brains are, so that a crash interrupts no more.
func TestL11_RunsWithUnwrittenEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		unended, most := 0, 0
		count := func(n int) {
			w.brain.mu.Lock()
			defer w.brain.mu.Unlock()
			unended += n
			most = max(most, unended)
		}
		w.MaxRuns = 2
		w.AfterEnd = []func(reeve.Run){func(reeve.Run) { time.Sleep(time.Second); count(-1) }} // slow
		w.brain.do = func(context.Context, reeve.Run) reeve.RunEnd {
			count(1)
			return reeve.RunEnd{State: reeve.RunCompleted}
		}
		for i := range 20 {
			w.insertAgent(fmt.Sprint("a", i), 0, "TASK")
		}
		stop := w.startLoop()
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(time.Minute)
		stop()
		if most > 4 || unended != 0 {
			t.Errorf("at most %d runs without an end, want 4; %d after the test, want 0", most, unended)
		}
		w.checkAllEnded()
	})
}

// A throttle delays and merges wakes and drops none. Manual wakes are not throttled.
func TestL11_Throttle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("coach", time.Minute, "TASK")
		stop := w.startLoop()
		start := time.Now()
		for i := range 30 {
			w.recordChange("TASK", fmt.Sprint("op_", i), reeve.Run{})
			time.Sleep(time.Second)
		}
		if n := len(w.listRuns("coach")); n != 1 {
			t.Errorf("%d runs within the throttle, want 1", n)
		}
		if _, err := w.Wake(t.Context(), home, "coach", "ann", "", "now"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(w.listRuns("coach")); n != 2 {
			t.Errorf("%d runs after a manual wake, want 2", n)
		}
		time.Sleep(2 * time.Minute)
		stop()
		list := w.listRuns("coach")
		if len(list) != 3 || list[0].Wakes != 29 || list[0].StartedAt.Sub(start) < time.Minute {
			t.Errorf("runs: %+v", list)
		}
		w.checkAllEnded()
	})
}

// A slow run of a schedule delays neither other schedules nor other runs of the agent. Two runs of one schedule do not
// overlap.
func TestO19_SlowRunDelaysNoOtherSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("aide", 0, "TASK")
		w.brain.do = sleepByAgent(map[string]time.Duration{"aideslow": 150 * time.Second})
		w.insertTimer("slow", "aide", "interval", "1m", "take your time")
		w.insertTimer("quick", "aide", "interval", "1m", "hurry")
		stop := w.startLoop()
		time.Sleep(10*time.Minute + 10*time.Second)
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(10 * time.Second)
		quick, slow, own := 0, 0, 0
		var last time.Time
		for _, r := range w.listRuns("aide") {
			switch r.ReasonID {
			case "quick":
				quick++
				if late := r.StartedAt.Sub(*r.ScheduledAt); late > 100*time.Millisecond {
					t.Errorf("a run of the quick schedule was %s late", late)
				}
			case "slow":
				slow++
				if !last.IsZero() && last.Sub(r.StartedAt) < 150*time.Second {
					t.Errorf("runs of one schedule overlap: %s and %s", r.StartedAt, last)
				}
				last = r.StartedAt
			default:
				own++
			}
		}
		if quick != 10 || own != 1 || slow < 4 || slow > 5 {
			t.Errorf("%d runs of the quick schedule, %d of the slow one, %d of the agent", quick, slow, own)
		}
		stop()
	})
}

// Two agents that watch each other's changes do not wake each other endlessly.
func TestL05_MutualSubscriptionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		for _, id := range []string{"ping", "pong"} {
			w.insertAgent(id, 0, "TASK")
		}
		n := 0
		w.brain.do = func(_ context.Context, run reeve.Run) reeve.RunEnd {
			w.brain.mu.Lock()
			n++
			op := fmt.Sprint("op_run", n)
			w.brain.mu.Unlock()
			w.recordChange("TASK", op, run)
			return reeve.RunEnd{State: reeve.RunCompleted}
		}
		stop := w.startLoop()
		if _, err := w.Wake(t.Context(), home, "ping", "ann", "", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if a, b := len(w.listRuns("ping")), len(w.listRuns("pong")); a != 1 || b != 1 {
			t.Errorf("ping ran %d times, pong %d", a, b)
		}
		w.recordChange("TASK", "op_person", reeve.Run{}) // wakes both agents, and each wakes the other at most once
		time.Sleep(time.Minute)
		stop()
		if a, b := len(w.listRuns("ping")), len(w.listRuns("pong")); a > 3 || b > 3 || a < 2 || b < 2 {
			t.Errorf("ping ran %d times, pong %d", a, b)
		}
		w.checkAllEnded()
	})
}

// A timer advances together with the wake it queues. Missed firings are caught up in one run with reason catchup.
func TestL10_TimersSurviveRestartAndCatchUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("coach", 0)
		w.insertTimer("daily", "coach", "cron", "0 7 * * *", "good morning")
		timer := func() (v reeve.Timer) {
			w.must(w.DB.View(t.Context(), func(s *store.Snap) (err error) {
				v, err = s.Queue().GetTimer(t.Context(), home, "", "daily")
				return err
			}))
			return v
		}
		if timer().LastAt != nil {
			t.Error("a new timer has a last firing")
		}
		first := *timer().NextAt
		time.Sleep(time.Until(first) + 30*time.Second)
		runs, _, err := w.Step(t.Context(), 10)
		w.must(err)
		if len(runs) != 1 || runs[0].Reason != reeve.ReasonTimer || !runs[0].ScheduledAt.Equal(first) ||
			!timer().NextAt.Equal(first.Add(24*time.Hour)) {
			t.Fatalf("runs %+v, timer %+v", runs, timer())
		}
		w.restart(w.DB, Limits{}) // before the run was served
		runs, _, err = w.Step(t.Context(), 10)
		w.must(err)
		if len(runs) != 1 || runs[0].Attempts != 2 {
			t.Fatalf("after a restart: %+v", runs)
		}
		w.Serve(t.Context(), runs[0])
		time.Sleep(5 * 24 * time.Hour)
		w.restart(w.DB, Limits{})
		stop := w.startLoop()
		time.Sleep(time.Second)
		stop()
		list := w.listRuns("coach")
		if len(list) != 2 || list[0].Reason != reeve.ReasonCatchup || timer().Missed != 4 {
			t.Errorf("runs %+v, timer %+v", list, timer())
		}
		w.checkAllEnded()
	})
}

// RunAllMissed runs each missed firing in order, CatchUpOnce runs one, SkipMissed runs none.
func TestL10_MisfirePolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		for _, m := range []reeve.Misfire{reeve.CatchUpOnce, reeve.SkipMissed, reeve.RunAllMissed} {
			w.insertAgent(string(m), 0)
			w.insertTimer("t_"+string(m), string(m), "interval", "1h", "go")
			w.update(func(tx *store.Tx) error {
				v, err := tx.Queue().GetTimer(t.Context(), home, "", "t_"+string(m))
				if err != nil {
					return err
				}
				v.Misfire = m
				return tx.Queue().PutTimer(t.Context(), v)
			})
		}
		time.Sleep(5*time.Hour + 30*time.Minute)
		stop := w.startLoop()
		time.Sleep(time.Second)
		stop()
		for m, want := range map[reeve.Misfire]int{reeve.CatchUpOnce: 1, reeve.SkipMissed: 0, reeve.RunAllMissed: 5} {
			list := w.listRuns(string(m))
			if len(list) != want {
				t.Errorf("%s: %d runs, want %d", m, len(list), want)
			}
			for i := 1; i < len(list); i++ {
				if !list[i].ScheduledAt.Before(*list[i-1].ScheduledAt) {
					t.Errorf("%s: out of order", m)
				}
			}
		}
		w.checkAllEnded()
	})
}

// A brain that panics, a failing store and a cancelled step affect no other run and lose no run.
func TestL08_NoRunIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("bad", 0, "TASK")
		w.insertAgent("good", 0, "TASK")
		w.brain.do = func(_ context.Context, run reeve.Run) reeve.RunEnd {
			if run.AgentID == "bad" {
				panic("boom")
			}
			return reeve.RunEnd{State: reeve.RunCompleted}
		}
		w.recordChange("TASK", "op_1", reeve.Run{})
		time.Sleep(time.Second)
		runs, _, err := w.Step(t.Context(), 10)
		w.must(err)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for _, r := range runs {
			w.Serve(canceled, r) // nothing is recorded
		}
		stop := w.startLoop() // the same scheduler resumes them
		time.Sleep(time.Second)
		stop()
		for _, r := range w.listRuns("") {
			want := map[string]reeve.RunState{"bad": reeve.RunFailed, "good": reeve.RunCompleted}[r.AgentID]
			if r.State != want {
				t.Errorf("%s: %s, want %s", r.AgentID, r.State, want)
			}
		}
		w.checkAllEnded()

		// A run that a failed step may have committed is found again.
		w.update(func(tx *store.Tx) error {
			k := reeve.Wake{RunKey: "unsure", WorkspaceID: home, AgentID: "good", Reason: reeve.ReasonManual,
				State: reeve.WakeTaken, DueAt: tx.Now()}
			if _, err := tx.Queue().InsertWake(t.Context(), k); err != nil {
				return err
			}
			if _, err := tx.Runs().InsertRun(t.Context(), reeve.Run{ID: "run_unsure", Key: "unsure", WorkspaceID: home,
				AgentID: "good", ThreadID: "x", Wakes: 1, Owner: w.Process}); err != nil {
				return err
			}
			return nil
		})
		if _, _, err := w.Step(canceled, 10); err == nil {
			t.Error("a step with a canceled context did not fail")
		}
		stop = w.startLoop()
		time.Sleep(time.Second)
		stop()
		if r := w.listRuns("good")[0]; r.ID != "run_unsure" || r.State != reeve.RunCompleted {
			t.Errorf("%+v", r)
		}
	})
}

// A step whose context has ended starts no runs.
func TestL08_CanceledStepStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("good", 0, "TASK")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		w.recordChange("TASK", "op_2", reeve.Run{})
		time.Sleep(time.Second)
		if runs, _, err := w.Step(canceled, 10); err == nil || len(runs) != 0 {
			t.Errorf("a step with a canceled context returned %d runs, %v", len(runs), err)
		}
		stop := w.startLoop()
		time.Sleep(time.Second)
		stop()
		w.checkAllEnded()
	})
}

// The end of a run does not overwrite changes that a person made to the schedule during the run.
func TestO15_EditDuringRunIsKept(t *testing.T) {
	for name, do := range map[string]func(*reeve.Timer){
		"paused":   func(v *reeve.Timer) { v.State, v.NextAt = reeve.TimerPaused, nil },
		"retimed":  func(v *reeve.Timer) { v.Value, v.Goal = "2h", "another" },
		"disabled": func(v *reeve.Timer) { v.State, v.NextAt = reeve.TimerDisabled, nil },
		"deleted":  nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newHarness(t, Limits{DisableAfter: 1, AlertAfter: 1})
				w.insertAgent("aide", 0)
				w.insertTimer("it", "aide", "interval", "1h", "go")
				var want reeve.Timer
				w.brain.do = func(ctx context.Context, _ reeve.Run) reeve.RunEnd {
					w.update(func(tx *store.Tx) (err error) {
						if do == nil {
							return tx.Queue().DeleteTimer(ctx, home, "it")
						}
						if want, err = tx.Queue().GetTimer(ctx, home, "", "it"); err != nil {
							return err
						}
						do(&want)
						return tx.Queue().PutTimer(ctx, want)
					})
					return reeve.RunEnd{State: reeve.RunCompleted}
				}
				time.Sleep(time.Hour)
				runs, _, err := w.Step(t.Context(), 1)
				w.must(err)
				w.Serve(t.Context(), runs[0])
				var got reeve.Timer
				err = w.DB.View(t.Context(), func(s *store.Snap) error {
					got, err = s.Queue().GetTimer(t.Context(), home, "", "it")
					return err
				})
				if do == nil {
					if reeve.CodeOf(err) != reeve.NotFound {
						t.Errorf("the deleted timer exists again: %+v", got)
					}
					return
				}
				w.must(err)
				same := got.State == want.State && got.Value == want.Value && got.Goal == want.Goal &&
					(got.NextAt == nil) == (want.NextAt == nil)
				if !same {
					t.Errorf("got %+v\nwant %+v", got, want)
				}
			})
		})
	}
}

// Random interleavings of changes, manual wakes, timers, parked and failed runs, stops, cancels, destroys and restarts
// lose no wake, run no key twice, and leave everything final.
func TestL07_RandomInterleavings(t *testing.T) {
	rounds := 16
	if testing.Short() {
		rounds = 4
	}
	for seed := range rounds {
		synctest.Test(t, func(t *testing.T) { interleave(t, rand.New(rand.NewPCG(uint64(seed), 7))) })
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
}

// interleave performs random actions on a scheduler and checks that every wake ends.
func interleave(t *testing.T, rnd *rand.Rand) {
	w := newHarness(t, Limits{})
	agents := []string{"a", "b", "c"}
	w.insertAgent("a", 0, "X", "Y")
	w.insertAgent("b", 3*time.Second, "X")
	w.insertAgent("c", 0, "Y")
	queued := map[string]bool{} // run keys of all wakes seen so far
	recordQueued := func() {
		for _, k := range w.listWakes("") {
			queued[k.RunKey] = true
		}
	}
	own := rand.New(rand.NewPCG(rnd.Uint64(), 7))
	w.brain.do = func(ctx context.Context, run reeve.Run) reeve.RunEnd {
		w.brain.mu.Lock()
		d, outcome, changes := time.Duration(own.IntN(3000))*time.Millisecond, own.IntN(10), own.IntN(3) == 0
		w.brain.mu.Unlock()
		notify.Sleep(ctx, d)
		if ctx.Err() != nil {
			return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.Canceled, "stopping")}
		}
		if changes {
			w.recordChange("Y", "op_"+run.Key, run)
		}
		switch {
		case outcome == 0:
			return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.ToolFailed, "no")}
		case outcome == 1:
			return reeve.RunEnd{State: reeve.RunParked} // without a pending call, so the run is resumed immediately
		}
		return reeve.RunEnd{State: reeve.RunCompleted}
	}
	w.insertTimer("tick", "a", "interval", "1m", "tick")
	w.insertTimer("tock", "c", "interval", "1m", "")
	stop := w.startLoop()
	for i := range 60 {
		switch rnd.IntN(9) {
		case 0, 1, 2:
			w.recordChange([]string{"X", "Y"}[rnd.IntN(2)], fmt.Sprint("op_", i), reeve.Run{})
		case 3:
			key := fmt.Sprint(rnd.IntN(5)) // sometimes a key that was used before
			if _, err := w.Wake(t.Context(), home, agents[rnd.IntN(3)], "ann", key, ""); reeve.CodeOf(err) != "" &&
				reeve.CodeOf(err) != reeve.Conflict {
				t.Fatal(err) // a conflict means that the agent is destroyed
			}
		case 4:
			time.Sleep(time.Duration(rnd.IntN(20_000)) * time.Millisecond)
		case 5: // restart without ending active runs
			stop()
			w.restart(w.DB, Limits{})
			stop = w.startLoop()
		case 6:
			at := time.Time{}
			if rnd.IntN(2) == 0 {
				at = reeve.Now()
			}
			w.update(func(tx *store.Tx) error { return tx.Agents().StopWorkspace(t.Context(), home, at, "test") })
		case 7:
			for _, r := range w.listRuns("") {
				if !r.State.IsFinal() && rnd.IntN(3) == 0 {
					if _, err := w.Cancel(t.Context(), home, r.ID); reeve.CodeOf(err) != "" &&
						reeve.CodeOf(err) != reeve.Conflict {
						t.Fatal(err)
					}
				}
			}
		case 8:
			if i > 50 && rnd.IntN(3) == 0 {
				w.update(func(tx *store.Tx) error {
					a, err := tx.Agents().GetAgent(t.Context(), home, "c")
					if err != nil {
						return err
					}
					a.Lifecycle = reeve.AgentDestroyed
					return tx.Agents().UpdateAgent(t.Context(), a)
				})
			}
		}
		recordQueued()
	}
	w.update(func(tx *store.Tx) error {
		for _, id := range []string{"tick", "tock"} {
			if err := tx.Queue().DeleteTimer(t.Context(), home, id); err != nil {
				return err
			}
		}
		return tx.Agents().StopWorkspace(t.Context(), home, time.Time{}, "")
	})
	w.Wakeup()
	time.Sleep(2 * time.Minute)
	stop()
	left := map[string]bool{}
	for _, k := range w.listWakes("") {
		left[k.RunKey] = true
	}
	for k := range queued {
		if !left[k] {
			t.Errorf("wake %s is missing", k)
		}
	}
	w.checkAllEnded()
}
