package wake

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

const home = "default"

// harness is a scheduler on a real store, with a brain that the test controls. It works inside a testing/synctest
// bubble.
type harness struct {
	*Scheduler
	*Queue
	*Timetable
	t     testing.TB
	brain *brain
	n     int
}

// brain calls do for each run, and counts runs.
type brain struct {
	mu    sync.Mutex
	do    func(ctx context.Context, run reeve.Run) reeve.RunEnd // default: complete immediately
	busy  map[string]int                                        // active runs, by agent
	most  map[string]int                                        // maximum of busy, by agent
	ends  map[string]int                                        // number of final ends, by run key
	order []reeve.Run
}

func (b *brain) Run(ctx context.Context, run reeve.Run, _ reeve.RunServer) reeve.RunEnd {
	b.mu.Lock()
	b.busy[run.AgentID]++
	b.most[run.AgentID] = max(b.most[run.AgentID], b.busy[run.AgentID])
	b.order = append(b.order, run)
	do := b.do
	b.mu.Unlock()
	end := reeve.RunEnd{State: reeve.RunCompleted, Output: "done"}
	if do != nil {
		end = do(ctx, run)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[run.AgentID]--
	if end.State.IsFinal() && ctx.Err() == nil {
		b.ends[run.Key]++
	}
	return end
}

func newBrain() *brain {
	return &brain{busy: map[string]int{}, most: map[string]int{}, ends: map[string]int{}}
}

func newHarness(t testing.TB, limits Limits) *harness {
	t.Helper()
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	return newHarnessOn(t, e, limits)
}

func newHarnessOn(t testing.TB, e store.Engine, limits Limits) *harness {
	t.Helper()
	ctx := t.Context()
	db, err := store.Open(ctx, e, []byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w := &harness{t: t, brain: newBrain()}
	w.must(db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(ctx, home, "Home")
		return err
	}))
	w.restart(db, limits)
	return w
}

// restart replaces the scheduler with one of a new process. Runs of the old process are abandoned.
func (w *harness) restart(db *store.DB, limits Limits) {
	w.t.Helper()
	w.n++
	process := fmt.Sprint("proc_", w.n)
	w.must(db.Update(w.t.Context(), func(tx *store.Tx) error {
		return tx.System().RegisterProcess(w.t.Context(), process)
	}))
	w.Queue, w.Timetable = NewQueue(db), NewTimetable(limits)
	s, err := NewScheduler(Config{DB: db, Log: slog.New(slog.DiscardHandler), Process: process, Queue: w.Queue,
		Timetable: w.Timetable, Brain: w.brain})
	w.must(err)
	w.Scheduler = s
}

func (w *harness) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) update(f func(*store.Tx) error) {
	w.t.Helper()
	w.must(w.DB.Update(w.t.Context(), f))
}

// insertAgent inserts an agent that watches semantic keys.
func (w *harness) insertAgent(id string, throttle time.Duration, watches ...string) {
	w.t.Helper()
	ctx := w.t.Context()
	w.update(func(tx *store.Tx) error {
		if err := tx.Agents().InsertAgent(ctx, reeve.Agent{ID: id, WorkspaceID: home, Name: id, Kind: "assistant",
			Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid,
			ThrottleMS: throttle.Milliseconds(), CreatedAt: tx.Now()}); err != nil {
			return err
		}
		for _, k := range watches {
			if err := tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: "sub_" + id + "_" + k,
				WorkspaceID: home, AgentID: id,
				Token: reeve.Token{Class: reeve.SemanticKey, Name: k}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// recordChange records a change of a semantic key, by a run or, if the run is empty, by no agent.
func (w *harness) recordChange(key, op string, by reeve.Run) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		return tx.Queue().RecordChange(w.t.Context(), store.Change{Workspace: home, Agent: by.AgentID, Run: by.ID,
			Operation: op,
			Tokens:    []reeve.Token{{Class: reeve.SemanticKey, Name: key}}, Window: store.ChangeWindow})
	})
	w.Wakeup()
}

// insertTimer inserts a timer. With a goal it is a schedule.
func (w *harness) insertTimer(id, agent, kind, value, goal string) {
	w.t.Helper()
	w.update(func(tx *store.Tx) error {
		t, _, err := w.Plan(reeve.Timer{ID: id, WorkspaceID: home, AgentID: agent, UserID: "ann", Name: id, Goal: goal,
			Kind: kind, Value: value, Misfire: reeve.CatchUpOnce,
			Notify: reeve.NotifyAlways, State: reeve.TimerActive}, tx.Now())
		if err != nil {
			return err
		}
		return tx.Queue().PutTimer(w.t.Context(), t)
	})
	w.Wakeup()
}

func (w *harness) listRuns(agent string) (list []reeve.Run) {
	w.t.Helper()
	w.must(w.DB.View(w.t.Context(), func(s *store.Snap) (err error) {
		list, err = s.Runs().ListRuns(w.t.Context(), home, store.RunFilter{Agent: agent, Limit: 10_000})
		return err
	}))
	return list
}

func (w *harness) listWakes(agent string) (list []reeve.Wake) {
	w.t.Helper()
	w.must(w.DB.View(w.t.Context(), func(s *store.Snap) (err error) {
		list, err = s.Queue().ListWakes(w.t.Context(), home, store.WakeFilter{Agent: agent, Limit: 10_000})
		return err
	}))
	return list
}

// startLoop runs the scheduler until the returned function is called.
func (w *harness) startLoop() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		w.t.Helper()
		cancel()
		w.must(<-done)
	}
}

// checkAllEnded checks that no wake is queued, that every run is final, that each run key was served once or skipped,
// and that no lane had two runs at the same time.
func (w *harness) checkAllEnded() {
	w.t.Helper()
	byID := map[string]reeve.Run{}
	for _, r := range w.listRuns("") {
		byID[r.ID] = r
		if !r.State.IsFinal() {
			w.t.Errorf("run %s of %s is %s", r.ID, r.AgentID, r.State)
		}
	}
	served := map[string]int{}
	for _, k := range w.listWakes("") {
		switch k.State {
		case reeve.WakeSkipped:
			if k.Why == "" || k.RunID != "" {
				w.t.Errorf("wake %s is skipped without a reason: %+v", k.RunKey, k)
			}
		case reeve.WakeTaken:
			if r, ok := byID[k.RunID]; !ok || r.AgentID != k.AgentID {
				w.t.Errorf("wake %s is served by no run: %+v", k.RunKey, k)
			}
			served[k.RunID]++
		case reeve.WakeQueued:
			w.t.Errorf("wake %s is still queued", k.RunKey)
		}
	}
	for id, r := range byID {
		if served[id] != r.Wakes || served[id] == 0 {
			w.t.Errorf("run %s records %d wakes, but %d wakes refer to it", id, r.Wakes, served[id])
		}
	}
	until := map[string]time.Time{} // end of the latest run, by lane
	for _, r := range slices.Backward(w.listRuns("")) {
		lane := r.AgentID
		if strings.HasPrefix(r.SessionID, store.ScheduleSession) {
			lane += r.SessionID
		}
		if r.StartedAt.Before(until[lane]) {
			w.t.Errorf("run %s began at %s, before the previous run ended at %s", r.ID, r.StartedAt, until[lane])
		}
		if r.FinishedAt != nil {
			until[lane] = *r.FinishedAt
		}
	}
	w.brain.mu.Lock()
	defer w.brain.mu.Unlock()
	for key, n := range w.brain.ends {
		if n > 1 {
			w.t.Errorf("run key %s ended %d times", key, n)
		}
	}
}
