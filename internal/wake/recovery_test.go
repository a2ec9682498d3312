package wake

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/internal/notify"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// failingReader fails to read the entity "bad".
type failingReader struct{ reads int }

func (b *failingReader) Entities(_ context.Context, _ *store.Snap, _ store.JournalScope, _ string,
	ids []string) ([]map[string]any, error) {
	if slices.Contains(ids, "bad") {
		b.reads++
		return nil, reeve.Errorf(reeve.Internal, "no")
	}
	return []map[string]any{{"fine": true}}, nil
}

// A wake whose entities cannot be read is tried maxReadAttempts times and then skipped with a reason. It blocks neither
// other agents nor other wakes of its agent. If a later attempt succeeds, the wake is served.
func TestL08_UnreadableWakeBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		reader := &failingReader{}
		w.Entities = reader
		w.insertAgent("a", 0, "TASK")
		w.insertAgent("b", 0)
		w.update(func(tx *store.Tx) error {
			return tx.Queue().InsertSubscription(t.Context(), reeve.Subscription{ID: "sub_b", WorkspaceID: home,
				AgentID: "b", Token: reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}, Predicate: "true"})
		})
		change := func(op, id string) {
			w.update(func(tx *store.Tx) error {
				return tx.Queue().RecordChange(t.Context(), store.Change{Workspace: home, Operation: op,
					Tokens: []reeve.Token{{Class: reeve.SemanticKey, Name: "TASK"}, {Class: reeve.EntityID, Name: id}}})
			})
		}
		change("op_1", "bad")
		change("op_2", "good")
		runs, _, err := w.Step(t.Context(), 10)
		w.must(err)
		if len(runs) != 2 {
			t.Fatalf("%d runs", len(runs))
		}
		for _, r := range runs {
			if want := map[string]int{"a": 2, "b": 1}[r.AgentID]; r.Wakes != want {
				t.Errorf("the run of %s serves %d wakes, want %d", r.AgentID, r.Wakes, want)
			}
			w.Serve(t.Context(), r)
		}
		stop := w.startLoop()
		time.Sleep(time.Minute)
		stop()
		w.checkAllEnded()
		if reader.reads != maxReadAttempts {
			t.Errorf("%d attempts, want %d", reader.reads, maxReadAttempts)
		}
		for _, k := range w.listWakes("b") {
			if bad := k.OperationID == "op_1"; bad != (k.State == reeve.WakeSkipped) ||
				bad != (k.Why == "what changed could not be read") {
				t.Errorf("%+v", k)
			}
		}
		change("op_3", "bad")
		stop = w.startLoop()
		time.Sleep(time.Second / 2)
		stop()
		w.Entities = workingReader{}
		stop = w.startLoop()
		time.Sleep(10 * time.Second)
		stop()
		w.checkAllEnded()
		for _, k := range w.listWakes("b") {
			if k.OperationID == "op_3" && k.State != reeve.WakeTaken {
				t.Errorf("a readable wake is not served: %+v", k)
			}
		}
	})
}

// workingReader reads every entity.
type workingReader struct{}

func (workingReader) Entities(context.Context, *store.Snap, store.JournalScope,
	string, []string) ([]map[string]any, error) {
	return []map[string]any{{"fine": true}}, nil
}

// A run that crashes its server is resumed MaxAttempts times and then fails with code Crashed. Its user is notified
// whatever the notification policy. An orderly stop does not count as a crash.
func TestL08_CrashingRunIsNotResumedForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("a", 0, "TASK")
		w.insertTimer("sch", "a", "once", time.Now().Add(time.Minute).Format(time.RFC3339), "go")
		w.update(func(tx *store.Tx) error {
			s, err := tx.Queue().GetTimer(t.Context(), home, "", "sch")
			s.Notify = reeve.NotifyNever
			return errors.Join(err, tx.Queue().PutTimer(t.Context(), s))
		})
		if _, err := w.Wake(t.Context(), home, "a", "ann", "", "manual"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		crash := func() int {
			runs, _, err := w.Step(t.Context(), 10)
			w.must(err)
			w.restart(w.DB, Limits{}) // the runs are abandoned
			return len(runs)
		}
		for range 3 { // orderly stops do not count
			canceled, cancel := context.WithCancel(t.Context())
			runs, _, err := w.Step(t.Context(), 10)
			w.must(err)
			cancel()
			w.brain.do = func(context.Context, reeve.Run) reeve.RunEnd { return reeve.RunEnd{State: reeve.RunFailed} }
			for _, r := range runs {
				w.Serve(canceled, r)
			}
			if len(runs) != 2 || runs[0].Attempts != 1 {
				t.Fatalf("%+v", runs)
			}
		}
		for i := range w.MaxAttempts {
			if n := crash(); n != 2 {
				t.Fatalf("%d runs at attempt %d", n, i+1)
			}
		}
		if n := crash(); n != 0 {
			t.Fatalf("%d runs are resumed after MaxAttempts", n)
		}
		w.checkAllEnded()
		var notifications []reeve.Notification
		w.must(w.DB.View(t.Context(), func(s *store.Snap) (err error) {
			notifications, err = s.Queue().ListNotifications(t.Context(), home, "ann", false, "", 10)
			return err
		}))
		if len(notifications) != 2 {
			t.Errorf("notifications: %+v", notifications)
		}
		for _, r := range w.listRuns("a") {
			if r.State != reeve.RunFailed || r.Code != reeve.Crashed || !strings.Contains(r.Message, "5 times") ||
				r.Attempts != 5 || r.FinishedAt == nil {
				t.Errorf("%+v", r)
			}
		}
		w.brain.do = nil
		w.recordChange("TASK", "op_1", reeve.Run{}) // the agent can run again
		stop := w.startLoop()
		time.Sleep(time.Second)
		stop()
		if r := w.listRuns("a")[0]; r.State != reeve.RunCompleted {
			t.Errorf("%+v", r)
		}
	})
}

// stepOnPark steps when a run parks, before the goroutine that parked it has returned.
type stepOnPark struct {
	*harness
	claimed []reeve.Run
}

func (e *stepOnPark) step(run reeve.Run) {
	if run.State == reeve.RunParked {
		runs, _, err := e.Step(e.t.Context(), 10)
		e.must(err)
		e.claimed = append(e.claimed, runs...)
	}
}

// A run ends and notifies its user even if the brain returns bytes that a database cannot store.
func TestL08_RunEndsWithInvalidText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("completes", 0)
		w.insertAgent("fails", 0)
		w.brain.do = func(_ context.Context, run reeve.Run) reeve.RunEnd {
			if run.AgentID == "completes" {
				return reeve.RunEnd{State: reeve.RunCompleted, Output: "a\x00b\xff"}
			}
			return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.ToolFailed, "a\x00b")}
		}
		w.insertTimer("t1", "completes", "interval", "1h", "go")
		w.insertTimer("t2", "fails", "interval", "1h", "go")
		stop := w.startLoop()
		time.Sleep(time.Hour + time.Second)
		stop()
		for agent, want := range map[string]string{"completes": "completed a\uFFFDb\uFFFD ",
			"fails": "failed  a\uFFFDb"} {
			if list := w.listRuns(agent); len(list) != 1 || fmt.Sprint(list[0].State, " ", list[0].Output, " ",
				list[0].Message) != want {
				t.Errorf("%s: %+v", agent, list)
			}
		}
		w.must(w.DB.View(t.Context(), func(s *store.Snap) error {
			notifications, err := s.Queue().ListNotifications(t.Context(), home, "ann", false, "", 10)
			if len(notifications) != 2 {
				t.Errorf("notifications: %+v", notifications)
			}
			return err
		}))
	})
}

// A parked run can become active again before its first goroutine has returned. It stays active and is not claimed
// twice.
func TestL08_ResumedBeforeReleased(t *testing.T) {
	t.Parallel()
	w := newHarness(t, Limits{})
	e := &stepOnPark{harness: w}
	w.AfterEnd = []func(reeve.Run){e.step}
	w.insertAgent("a", 0)
	if _, err := w.Wake(t.Context(), home, "a", "ann", "", "manual"); err != nil {
		t.Fatal(err)
	}
	runs, _, err := w.Step(t.Context(), 10)
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	w.brain.do = func(context.Context, reeve.Run) reeve.RunEnd { return reeve.RunEnd{State: reeve.RunParked} }
	w.Serve(t.Context(), runs[0])
	if len(e.claimed) != 1 || e.claimed[0].ID != runs[0].ID {
		t.Fatalf("resumed: %+v", e.claimed)
	}
	w.mayHaveOrphans = true // the next step looks for orphans
	if again, _, err := w.Step(t.Context(), 10); err != nil || len(again) != 0 {
		t.Errorf("the run is claimed twice: %+v %v", again, err)
	}
}

// A run that fails because of the store is resumed when the store works again. After maxStoreFailures it ends.
func TestL08_StoreFailureDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("a", 0)
		down := store.UserError(store.Fault{Kind: store.FaultDown, Err: errors.New("the connection broke")})
		for times, state := range map[int]reeve.RunState{1: reeve.RunCompleted, maxStoreFailures: reeve.RunCompleted,
			maxStoreFailures + 1: reeve.RunFailed} {
			if _, err := w.Wake(t.Context(), home, "a", "ann", "", "manual"); err != nil {
				t.Fatal(err)
			}
			fails := 0
			w.brain.do = func(context.Context, reeve.Run) reeve.RunEnd {
				if fails++; fails <= times {
					return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(down)}
				}
				return reeve.RunEnd{State: reeve.RunCompleted, Output: "done"}
			}
			var last reeve.Run
			for range times + 1 {
				runs, _, err := w.Step(t.Context(), 10)
				if err != nil {
					t.Fatal(err)
				}
				for _, run := range runs {
					last = run
					w.Serve(t.Context(), run)
				}
			}
			if got := w.listRuns("a")[0]; got.ID != last.ID || got.State != state || got.Attempts != 1 {
				t.Errorf("failed %d times: %s after %d attempts", times, got.State, got.Attempts)
			}
			if len(w.storeFailures) != 0 {
				t.Errorf("store failures are not cleared: %v", w.storeFailures)
			}
		}
	})
}

// A disabled schedule runs nothing, not even firings that it has queued.
func TestO17_DisabledScheduleWithQueuedFirings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("a", 0)
		w.insertTimer("t", "a", "interval", "1h", "look")
		w.update(func(tx *store.Tx) error {
			v, err := tx.Queue().GetTimer(t.Context(), home, "", "t")
			if err != nil {
				return err
			}
			v.Misfire = reeve.RunAllMissed
			return tx.Queue().PutTimer(t.Context(), v)
		})
		w.brain.do = func(context.Context, reeve.Run) reeve.RunEnd {
			return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.Errorf(reeve.ToolFailed, "no")}
		}
		time.Sleep(20*time.Hour + time.Minute) // no scheduler is running
		stop := w.startLoop()
		time.Sleep(10 * time.Minute)
		stop()
		w.checkAllEnded()
		skipped := 0
		for _, v := range w.listWakes("a") {
			if v.State == reeve.WakeSkipped && v.Why == "the schedule is disabled" {
				skipped++
			}
		}
		if n := len(w.listRuns("a")); n != 5 || skipped < 10 {
			t.Errorf("%d runs, %d skipped", n, skipped)
		}
	})
}

// A schedule that is created paused has a default time zone.
func TestO14_CreatedPaused(t *testing.T) {
	t.Parallel()
	w := newHarness(t, Limits{})
	got, _, err := w.Apply(reeve.Timer{ID: "t", State: reeve.TimerActive},
		reeve.ScheduleRequest{Name: "n", CadenceType: "interval", CadenceValue: "1h",
			Status: string(reeve.TimerPaused)}, reeve.Now())
	if err != nil || got.Zone != "UTC" || got.State != reeve.TimerPaused || got.NextAt != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// dropDuringStep deactivates a run as a possible orphan during a step.
type dropDuringStep struct{ w *harness }

func (d dropDuringStep) Entities(context.Context, *store.Snap, store.JournalScope,
	string, []string) ([]map[string]any, error) {
	d.w.deactivate(&activeRun{}, true)
	return []map[string]any{{"fine": true}}, nil
}

// A possible orphan that appears during a step is handled by the next step, because the current one has queried
// already.
func TestL08_OrphanDuringStep(t *testing.T) {
	t.Parallel()
	w := newHarness(t, Limits{})
	w.Entities = dropDuringStep{w}
	w.insertAgent("a", 0)
	w.update(func(tx *store.Tx) error {
		return tx.Queue().InsertSubscription(t.Context(), reeve.Subscription{ID: "sub_a", WorkspaceID: home,
			AgentID: "a", Token: reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}, Predicate: "entity.fine"})
	})
	w.update(func(tx *store.Tx) error {
		return tx.Queue().RecordChange(t.Context(), store.Change{Workspace: home, Operation: "op_1",
			Tokens: []reeve.Token{{Class: reeve.SemanticKey, Name: "TASK"}}})
	})
	if runs, _, err := w.Step(t.Context(), 10); err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	if !w.mayHaveOrphans {
		t.Error("the possible orphan is forgotten")
	}
	if _, _, err := w.Step(t.Context(), 10); err != nil || w.mayHaveOrphans {
		t.Errorf("mayHaveOrphans is not cleared: %v", err)
	}
}

// claimDuringStep starts serving a run during a step that has claimed the run as an orphan. The step may fail.
type claimDuringStep struct {
	claim func()
	fails bool
	reads int
}

func (t *claimDuringStep) Entities(context.Context, *store.Snap, store.JournalScope,
	string, []string) ([]map[string]any, error) {
	if t.reads++; t.reads == 1 {
		t.claim()
		if t.fails {
			return nil, reeve.Errorf(reeve.Internal, "no")
		}
	}
	return []map[string]any{{"fine": true}}, nil
}

// A run is served once, even if a step claims it as an orphan before the goroutine that inserted it enqueues or serves
// it.
func TestL08_RunClaimedByStepIsServedOnce(t *testing.T) {
	for name, claim := range map[string]func(w *harness, run reeve.Run, started <-chan struct{}){
		"turn": func(w *harness, run reeve.Run, _ <-chan struct{}) { w.Enqueue(run) },
		"step of another run": func(w *harness, run reeve.Run, started <-chan struct{}) {
			returned := make(chan struct{})
			go func() { defer close(returned); w.ServeStarted(w.t.Context(), run) }()
			select {
			case <-returned:
			case <-started:
			}
		},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprint(name, fails), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newHarness(t, Limits{})
					w.insertAgent("a", 0)
					w.insertAgent("b", 0)
					run := reeve.Run{ID: w.DB.NewID(reeve.PrefixRun), Key: "turn", WorkspaceID: home, AgentID: "a",
						Reason: reeve.ReasonUser, SessionID: "conv_1", ThreadID: "a:conv_1",
						State: reeve.RunRunning, Attempts: 1, StartedAt: reeve.Now(), Owner: w.Process}
					w.update(func(tx *store.Tx) error { _, err := tx.Runs().InsertRun(t.Context(), run); return err })
					w.update(func(tx *store.Tx) error {
						return tx.Queue().InsertSubscription(t.Context(),
							reeve.Subscription{ID: "sub_b", WorkspaceID: home, AgentID: "b",
								Token: reeve.Token{Class: reeve.SemanticKey, Name: "TASK"}, Predicate: "entity.fine"})
					})
					started := make(chan struct{}, 10)
					w.Entities = &claimDuringStep{claim: func() { claim(w, run, started) }, fails: fails}
					w.brain.do = func(ctx context.Context, _ reeve.Run) reeve.RunEnd {
						started <- struct{}{}
						notify.Sleep(ctx, time.Second)
						return reeve.RunEnd{State: reeve.RunCompleted}
					}
					w.mayHaveOrphans = true
					w.recordChange("TASK", "op_1", reeve.Run{})
					time.Sleep(time.Second) // the change is due when the loop starts
					stop := w.startLoop()
					time.Sleep(10 * time.Second)
					stop()
					served := 0
					for _, r := range w.brain.order {
						if r.ID == run.ID {
							served++
						}
					}
					if served != 1 || len(w.claimedInStep) > 0 {
						t.Errorf("served %d times; %v are still claimed", served, w.claimedInStep)
					}
				})
			})
		}
	}
}

// ServeStarted with a context that does not end returns when the server stops, even if the store refuses the end of the
// run.
func TestL08_StopDoesNotWaitForStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("a", 0)
		run := reeve.Run{ID: w.DB.NewID(reeve.PrefixRun), Key: "step", WorkspaceID: home, AgentID: "a",
			Reason: reeve.ReasonManual, State: reeve.RunRunning, Attempts: 1, StartedAt: reeve.Now(), Owner: w.Process}
		w.update(func(tx *store.Tx) error { _, err := tx.Runs().InsertRun(t.Context(), run); return err })
		w.OnEnd = []EndHandler{func(context.Context, *store.Tx, []reeve.Run) error {
			return reeve.Errorf(reeve.Unavailable, "no")
		}}
		stop := w.startLoop()
		served := make(chan struct{})
		go func() { defer close(served); w.ServeStarted(context.WithoutCancel(t.Context()), run) }()
		time.Sleep(time.Second)
		stop()
		select {
		case <-served:
		case <-time.After(time.Minute):
			t.Fatal("ServeStarted did not return")
		}
	})
}

// lostCommitEngine commits one transaction and reports an unknown outcome.
type lostCommitEngine struct {
	store.Engine
	loseNext bool
}

func (f *lostCommitEngine) Update(ctx context.Context, g func(store.Conn) error) error {
	err := f.Engine.Update(ctx, g)
	if err == nil && f.loseNext {
		f.loseNext = false
		return store.Fault{Kind: store.FaultUncertain, Err: errors.New("the connection broke")}
	}
	return err
}

// A turn whose commit succeeded but was reported as uncertain is claimed once by the next step.
func TestL08_UncertainCommitOfTurn(t *testing.T) {
	t.Parallel()
	file, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	e := &lostCommitEngine{Engine: file}
	w := newHarnessOn(t, e, Limits{})
	w.insertAgent("a", 0)
	e.loseNext = true
	err = w.DB.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Runs().InsertRun(t.Context(), reeve.Run{ID: "run_1", Key: "k", WorkspaceID: home, AgentID: "a",
			Reason: reeve.ReasonUser, SessionID: "conv_1", ThreadID: "t", Wakes: 1, Owner: w.Process})
		return err
	})
	if reeve.CodeOf(err) != reeve.UnknownOutcome {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		runs, _, err := w.Step(t.Context(), 10)
		w.must(err)
		if len(runs) != want {
			t.Fatalf("%d runs are claimed, want %d", len(runs), want)
		}
		for _, run := range runs {
			w.Serve(t.Context(), run)
		}
	}
	if list := w.listRuns("a"); len(list) != 1 || list[0].State != reeve.RunCompleted {
		t.Errorf("%+v", list)
	}
}
