package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/bench/turn"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// roomWorld is a world with a scheduler, whose brain does nothing but note when it began.
type roomWorld struct {
	*world
	room   *wake.Scheduler
	queue  *wake.Queue
	agents []string
	brain  *stamper
}

// stamper is a brain that does nothing. It can be held.
type stamper struct {
	began atomic.Int64
	note  func(run reeve.Run)
	flow  *turn.Flow
}

func (b *stamper) Run(ctx context.Context, run reeve.Run, _ reeve.RunServer) reeve.RunEnd {
	if b.note != nil {
		b.note(run)
	}
	b.began.Add(1)
	if err := b.flow.Wait(ctx); err != nil {
		return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
	}
	b.flow.Count.Add(1)
	return reeve.RunEnd{State: reeve.RunCompleted}
}

// newRoom adds a room to a world, and agents to run. n is how many run at once; 0 means as many as by default.
func (o opener) room(ctx context.Context, c config, name string, agents, n int) (*roomWorld, error) {
	w, err := o.world(ctx, c, name)
	if err != nil {
		return nil, err
	}
	r := &roomWorld{world: w, brain: &stamper{flow: turn.New()}}
	err = w.db.Update(ctx, func(tx *store.Tx) error {
		for i := range agents {
			a := reeve.Agent{ID: tx.NewID(reeve.PrefixAgent), WorkspaceID: workspace, Name: fmt.Sprint("agent-", i), Kind: "assistant", Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid}
			r.agents = append(r.agents, a.ID)
			if err := tx.InsertAgent(ctx, a); err != nil {
				return err
			}
		}
		return tx.JoinProcess(ctx, "proc_bench")
	})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	r.queue = wake.NewQueue(w.db)
	r.room, err = wake.NewScheduler(wake.Config{DB: w.db, Log: slog.New(slog.DiscardHandler), Process: "proc_bench", Queue: r.queue,
		Planner: wake.NewPlanner(wake.Limits{}), Brain: r.brain, Concurrent: n})
	return r, err
}

// loop runs the room until the function it gives is called.
func (r *roomWorld) loop(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.room.Run(ctx) }()
	return func() error { cancel(); return <-done }
}

// Limits of what the clock and people ask for.
const (
	firingLimit = 2.0 // seconds until 10,000 timers have their runs
	startMedian = 20  // milliseconds from a wake to its run's start, half of the time
	startWorst  = 100 // and in 99 of 100 cases
)

// firing starts the loop when the second in which 10,000 timers are due has just passed: half of them schedules, ten to an
// agent, each agent's at ten different instants. All of them run, by the loop as it is by default, and in order.
func firing(ctx context.Context, c config, o opener, t *table) error {
	const each = 10
	agents := pick(c, 1000, 200)
	w, err := o.room(ctx, c, "firing", agents, 0)
	if err != nil {
		return err
	}
	defer w.close()
	due := time.Now().Truncate(time.Second).Add(time.Second)
	err = w.db.Update(ctx, func(tx *store.Tx) error {
		for i := range agents * each {
			at := due.Add(time.Duration(i/agents*100+i%100) * time.Millisecond) // an agent's one after the other
			timer := reeve.Timer{ID: fmt.Sprintf("tmr_%06d", i), WorkspaceID: workspace, AgentID: w.agents[i%agents], UserID: "ann", Name: "timer", Kind: "interval", Value: "1h",
				Zone: "UTC", Misfire: reeve.CatchUpOnce, Notify: reeve.NotifyConditional, State: reeve.TimerActive, NextAt: &at}
			if i/agents%2 == 0 {
				timer.Goal = "look around"
			}
			if err := tx.MoveTimer(ctx, timer); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Until(due.Add(time.Second)))
	w.brain.flow.Open()
	start := time.Now()
	stop := w.loop(ctx)
	for w.brain.began.Load() < int64(agents*each) && time.Since(start) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(start)
	if err := stop(); err != nil {
		return err
	}
	var runs []reeve.Run
	for before := ""; ; before = runs[len(runs)-1].ID {
		var page []reeve.Run
		if err := w.db.View(ctx, func(s *store.Snap) (err error) {
			page, err = s.ListRuns(ctx, workspace, store.RunFilter{Before: before, Limit: 1000})
			return err
		}); err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		runs = append(runs, page...)
	}
	if len(runs) != agents*each {
		return fmt.Errorf("%d timers made %d runs", agents*each, len(runs))
	}
	last := map[string]time.Time{}
	for _, r := range slices.Backward(runs) {
		if r.ScheduledAt.Before(last[r.AgentID]) {
			return fmt.Errorf("run %s of %s was started after one that was due later", r.ID, r.ScheduledAt)
		}
		last[r.AgentID] = *r.ScheduledAt
	}
	limit := firingLimit * float64(agents*each) / 10_000
	target := 1.0
	if o.name != "SQLite" {
		target = 0 // asked of SQLite
	}
	t.add(row{Section: "wakes", Name: fmt.Sprintf("%s, %d timers due in one second: all runs begun, in order", o.name, agents*each), Unit: "s", Ours: took.Seconds(), Against: "limit",
		Peer: limit, Ratio: took.Seconds() / limit, Target: target, AtMost: true})
	return nil
}

// starting asks by hand for 100 runs a second and looks when each begins: from before the wake is written until its brain is called.
func starting(ctx context.Context, c config, o opener, t *table) error {
	const perSecond = 100
	n := pick(c, 20, 5) * perSecond
	w, err := o.room(ctx, c, "starting", 100, 0)
	if err != nil {
		return err
	}
	defer w.close()
	asked, took := make([]time.Time, n), make([]float64, n)
	w.brain.note = func(run reeve.Run) {
		i, _ := strconv.Atoi(run.Input)
		took[i] = float64(time.Since(asked[i]).Microseconds()) / 1000
	}
	w.brain.flow.Open()
	stop := w.loop(ctx)
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		asked[i] = time.Now()
		all.Go(func() {
			if _, err := w.queue.Wake(ctx, workspace, w.agents[i%len(w.agents)], "ann", "", strconv.Itoa(i)); err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	for end := time.Now().Add(10 * time.Second); w.brain.began.Load() < int64(n) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if err := stop(); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	if w.brain.began.Load() != int64(n) {
		return fmt.Errorf("%d wakes began %d runs", n, w.brain.began.Load())
	}
	slices.Sort(took)
	for _, p := range []struct {
		name  string
		at    float64
		limit float64
	}{{"half", 0.5, startMedian}, {"99 %", 0.99, startWorst}} {
		ms := took[int(float64(n)*p.at)]
		t.add(row{Section: "wakes", Name: fmt.Sprintf("%s, 100 wakes/s: %s begun within", o.name, p.name), Unit: "ms", Ours: ms, Against: "limit", Peer: p.limit,
			Ratio: ms / p.limit, Target: 1, AtMost: true})
	}
	return nil
}

// claiming compares how many wakes are claimed, run by a brain that does nothing, and ended in the database, with River's jobs.
// Both have a full queue, and both count what the database says is completed. River ends its jobs some 50 ms later, for many at once,
// unless they do it themselves: a crash has it do all of them again that it finished meanwhile. So it is compared once for equal
// durability, and once as it is by default.
func claiming(ctx context.Context, c config, o opener, t *table) error {
	for _, n := range []int{8, 32, 128} {
		if !c.only.MatchString(fmt.Sprintf("%s claiming %d", o.name, n)) {
			continue
		}
		for _, durably := range []bool{true, false} {
			if err := claimingAt(ctx, c, o, n, durably, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// claimingAt is claiming for so many at once. While an end is written, another run has its place: so that no more than n are begun and
// not ended in the database, as with River's workers, only half as many run at once.
func claimingAt(ctx context.Context, c config, o opener, n int, durably bool, t *table) error {
	jobs, brains, what, against, target := pick(c, 100_000, 30_000), n, fmt.Sprintf("%d at once", n), ", which ends jobs later", 0.0
	args := []string{"-nothing", "-jobs", fmt.Sprint(jobs)}
	if durably {
		brains, what, against, target = n/2, fmt.Sprintf("at most %d not ended in the database", n), ", JobCompleteTx", 1
		args = append(args, "-durably")
	}
	river, err := startRiver(ctx, c, o.name, n, args...)
	if err != nil {
		return err
	}
	const agents = 1000
	w, err := o.room(ctx, c, fmt.Sprint("claiming_", n, "_", brains), agents, brains)
	if err != nil {
		return errors.Join(err, river.stop())
	}
	defer w.close()
	if err := w.fill(ctx, jobs, fmt.Sprintf(`INSERT INTO wakes (run_key, workspace_id, agent_id, reason, reason_id, session_id, user_id, input, operation_id, class, name, origins,
			scheduled_at, due_at, state, why, run_id, created_at)
		SELECT 'key' || CAST(i AS TEXT), workspace_id, id, 'manual', 'ann', 'manual:key' || CAST(i AS TEXT), 'ann', '', '', '', '', '',
		0, %d + i, 'queued', '', '', %d FROM n JOIN agents ON agents.name = 'agent-' || CAST(i %% %d AS TEXT)`, reeve.Millis(time.Now())-int64(jobs), reeve.Millis(time.Now()), agents)); err != nil {
		return err
	}
	db, _, err := w.engine.Migrator(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	count := func() (n int64, err error) {
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE state = 'completed'").Scan(&n)
	}
	stop := w.loop(ctx)
	behind := int64(0)
	got, err := turns(ctx, c, func(_ context.Context, d time.Duration) (float64, error) {
		done, err := w.brain.flow.Turn(d, count)
		behind = max(behind, done.Behind)
		return done.Rate, err
	}, river.lane)
	if err := errors.Join(err, stop(), river.stop()); err != nil {
		return err
	}
	t.add(compare(row{Section: "wakes", Name: fmt.Sprintf("%s, claimed, run and ended, %s", o.name, what), Unit: "runs/s", Against: river.name + against, Target: target}, got[0], got[1]))
	t.add(row{Section: "wakes", Name: o.name + ", ends that a crash would have lost, the most seen", Unit: "runs", Ours: float64(behind), Against: river.name + against, Peer: float64(river.behind)})
	return nil
}
