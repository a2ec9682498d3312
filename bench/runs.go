package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/bench/peer"
	"reeve/internal/store"
	"reeve/internal/wake"
)

// measureRuns measures the rate and the latency of runs, timers, and the lookup of subscriptions.
func measureRuns(ctx context.Context, c config, t *table) {
	for _, engine := range engines() {
		for _, n := range []int{8, 32} {
			for _, durable := range []bool{true, false} {
				compareThroughput(ctx, c, engine, n, durable, t)
			}
		}
		measureLatency(ctx, c, engine, t)
		measureTimers(ctx, c, engine, t)
		compareSubscriptions(ctx, c, engine, t)
	}
}

// idleBrain is a brain that does nothing. Its pacer can block it.
type idleBrain struct {
	pacer   *peer.Pacer
	started atomic.Int64
	onStart func(run reeve.Run) // called at the start of each run, if set
}

func (b *idleBrain) Run(ctx context.Context, run reeve.Run, _ reeve.RunServer) reeve.RunEnd {
	if b.onStart != nil {
		b.onStart(run)
	}
	b.started.Add(1)
	if err := b.pacer.Wait(ctx); err != nil {
		return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
	}
	return reeve.RunEnd{State: reeve.RunCompleted}
}

// wait waits until n runs have started.
func (b *idleBrain) wait(n int) error {
	for end := time.Now().Add(time.Minute); b.started.Load() < int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d runs started within a minute", b.started.Load(), n)
		}
	}
	return nil
}

// runFixture is a fixture with agents and a scheduler that runs them.
type runFixture struct {
	*fixture
	scheduler *wake.Scheduler
	queue     *wake.Queue
	brain     *idleBrain
	agents    []string
}

// agentID is the prefix of the agents' ids. A number follows.
const agentID = "agt_bench"

// newRunFixture creates a database with agents.
func newRunFixture(ctx context.Context, c config, engine, name string, agents int) *runFixture {
	r := &runFixture{fixture: newFixture(ctx, c, engine, name)}
	check(r.db.Update(ctx, func(tx *store.Tx) error {
		for i := range agents {
			a := reeve.Agent{ID: agentID + strconv.Itoa(i), WorkspaceID: workspace, Name: fmt.Sprint("agent-", i),
				Kind: "assistant", Lifecycle: reeve.AgentActive, Mode: reeve.Hybrid}
			r.agents = append(r.agents, a.ID)
			if err := tx.Agents().InsertAgent(ctx, a); err != nil {
				return err
			}
		}
		return nil
	}))
	r.prepare(ctx, 0)
	return r
}

// prepare creates a scheduler with at most n concurrent runs; 0 means the default.
func (r *runFixture) prepare(ctx context.Context, n int) {
	process := fmt.Sprint("proc_", n) // a new name, because PostgreSQL has a row for the earlier process
	check(r.db.Update(ctx, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, process) }))
	r.brain = &idleBrain{pacer: peer.NewPacer()}
	r.queue = wake.NewQueue(r.db)
	r.scheduler = must(wake.NewScheduler(wake.Config{DB: r.db, Log: slog.New(slog.DiscardHandler), Process: process,
		Queue: r.queue, Timetable: wake.NewTimetable(wake.Limits{}), Brain: r.brain, MaxRuns: n}))
}

// start runs the scheduler until stop is called.
func (r *runFixture) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.scheduler.Run(ctx) }()
	return func() { cancel(); warn(<-done) }
}

// compareThroughput compares runs, from claiming a wake to storing the end of its run, with River's jobs. Both have a
// full queue, and runs and jobs do nothing.
//
// With durable, a crash repeats at most n runs on both sides. Reeve starts a run while it stores the end of another, so
// it gets n/2 concurrent runs. River completes each job before it takes the next. Without durable, River uses its
// defaults: it completes jobs in batches up to 50 ms later, and a crash repeats all of these.
func compareThroughput(ctx context.Context, c config, engine string, n int, durable bool, t *table) {
	jobs, atOnce, against, want := pick(c, 100_000, 30_000), n, ", completed later", informational
	flags := []string{"-empty", "-jobs", strconv.Itoa(jobs)}
	if durable {
		atOnce, against, want, flags = n/2, ", equal durability", atLeast(1), append(flags, "-durable")
	}
	w := newFilledQueue(ctx, c, engine, fmt.Sprintf("queue_%d_%d", n, atOnce), jobs, atOnce)
	defer w.close()
	river := startRiver(ctx, c, engine, n, flags...)
	defer river.stop()
	db, _, err := w.handle.Migrator(ctx)
	check(err)
	defer db.Close()
	completed := func() (n int64, err error) {
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM runs WHERE state = 'completed'").Scan(&n)
	}
	defer w.start(ctx)()
	got := must(alternate(ctx, c, func(_ context.Context, d time.Duration) (float64, error) {
		return w.brain.pacer.Measure(d, completed)
	}, river.side))
	t.compare(fmt.Sprintf("%s, %d in flight", engine, n), "runs/s", got[0], river.name+against, got[1], want)
}

// newFilledQueue creates a database with queued wakes of 1,000 agents.
func newFilledQueue(ctx context.Context, c config, engine, name string, wakes, atOnce int) *runFixture {
	const agents = 1000
	w := newRunFixture(ctx, c, engine, name, agents)
	first, err := w.queue.Wake(ctx, workspace, w.agents[0], "ann", "", "")
	w.close()
	check(err)
	multiply(ctx, w.database, "wakes", "run_key = '"+first.RunKey+"'", wakes, map[string]string{
		"run_key": "'key' || CAST(i AS TEXT)", "session_id": "'manual:key' || CAST(i AS TEXT)",
		"due_at":   "due_at - 1000000 + i",
		"agent_id": fmt.Sprintf("'%s' || CAST(i %% %d AS TEXT)", agentID, agents)})
	w.fixture = w.openFixture(ctx)
	w.prepare(ctx, atOnce)
	return w
}

// measureLatency wakes 100 agents a second and measures the time from before each wake is stored to the start of its
// run.
func measureLatency(ctx context.Context, c config, engine string, t *table) {
	const perSecond = 100
	n := pick(c, 20, 3) * perSecond
	w := newRunFixture(ctx, c, engine, "latency", 100)
	defer w.close()
	asked, took := make([]time.Time, n), make([]float64, n)
	w.brain.onStart = func(run reeve.Run) {
		i, _ := strconv.Atoi(run.Input)
		took[i] = milliseconds(time.Since(asked[i]))
	}
	w.brain.pacer.Open()
	defer w.start(ctx)()
	var all sync.WaitGroup
	failed := make([]error, n)
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		asked[i] = time.Now()
		all.Go(func() {
			_, failed[i] = w.queue.Wake(ctx, workspace, w.agents[i%len(w.agents)], "ann", "", strconv.Itoa(i))
		})
	}
	all.Wait()
	check(errors.Join(errors.Join(failed...), w.brain.wait(n)))
	t.limit(engine+", wake to run, p50", "ms", median(took), 20)
	t.limit(engine+", wake to run, p99", "ms", percentile(took, 99), 100)
}

// measureTimers measures the time until all runs of timers that were due within one second have started. Each agent has
// ten timers. Half of them are schedules with a goal, which run independently. The runs of the others must start in the
// order in which they were due.
func measureTimers(ctx context.Context, c config, engine string, t *table) {
	const each = 10
	agents := pick(c, 1000, 100)
	w := newRunFixture(ctx, c, engine, "timers", agents)
	defer w.close()
	due := time.Now().Add(-2 * time.Second)
	check(w.db.Update(ctx, func(tx *store.Tx) error {
		for i := range agents * each {
			at := due.Add(time.Duration(i/agents*100+i%100) * time.Millisecond)
			timer := reeve.Timer{ID: fmt.Sprintf("tmr_%06d", i), WorkspaceID: workspace, AgentID: w.agents[i%agents],
				UserID: "ann", Name: "timer", Kind: "interval", Value: "1h", Zone: "UTC",
				Misfire: reeve.CatchUpOnce, Notify: reeve.NotifyConditional,
				State: reeve.TimerActive, NextAt: &at}
			if i/agents%2 == 0 {
				timer.Goal = "look around"
			}
			if err := tx.Queue().UpdateTimer(ctx, timer); err != nil {
				return err
			}
		}
		return nil
	}))
	var mu sync.Mutex
	last, wrong := map[string]time.Time{}, 0
	w.brain.onStart = func(run reeve.Run) {
		mu.Lock()
		defer mu.Unlock()
		if run.Input != "" {
			return
		}
		if run.ScheduledAt.Before(last[run.AgentID]) {
			wrong++
		}
		last[run.AgentID] = *run.ScheduledAt
	}
	w.brain.pacer.Open()
	start := time.Now()
	stop := w.start(ctx)
	err := w.brain.wait(agents * each)
	took := time.Since(start).Seconds()
	stop()
	if wrong > 0 {
		err = errors.Join(err, fmt.Errorf("%d runs started before one that was due earlier", wrong))
	}
	check(err)
	const limit = 2.0 // seconds for 10,000 timers; a target for SQLite only
	want := pick(c, atMost(1), informational)
	if engine == onPostgres {
		want = informational
	}
	name := fmt.Sprintf("%s, %d timers due at once, all started", engine, agents*each)
	t.add(row{name: name, unit: "s", against: "limit", ours: took, peer: limit, ratio: took / limit, target: want})
}

// compareSubscriptions compares the cost of a change among many subscriptions with that among 1,000. The change has 100
// tokens, ten of them with a subscription.
func compareSubscriptions(ctx context.Context, c config, engine string, t *table) {
	many := pick(c, 100_000, 20_000)
	sides := make([]side, 2)
	for k, n := range []int{1000, many} {
		w := newFixture(ctx, c, engine, fmt.Sprint("subscriptions_", n))
		defer w.close()
		for from := 0; from < n; from += 1000 {
			check(w.db.Update(ctx, func(tx *store.Tx) error { return w.subscribe(ctx, tx, from, from+1000) }))
		}
		sides[k] = repeat(20, func(ctx context.Context, i int) error {
			tokens := make([]reeve.Token, 100)
			for j := range tokens {
				tokens[j] = reeve.Token{Class: reeve.EntityID, Name: fmt.Sprint("other-", rand.IntN(1_000_000))}
				if j%10 == 0 {
					tokens[j].Name = fmt.Sprint("thing-", rand.IntN(n))
				}
			}
			return w.db.Update(ctx, func(tx *store.Tx) error {
				return tx.Queue().RecordChange(ctx, store.Change{Workspace: workspace, Operation: fmt.Sprint("op_", i),
					Tokens: tokens,
					Window: time.Hour})
			})
		})
	}
	c.rounds *= 4
	got := must(alternate(ctx, c, sides...))
	t.compare(fmt.Sprintf("%s, a change among %d subscriptions", engine, many), "µs", got[1], "among 1000", got[0],
		atMost(1.2))
}

// subscribe adds subscriptions of the agent to the entities from and up to, but not including, to.
func (w *fixture) subscribe(ctx context.Context, tx *store.Tx, from, to int) error {
	for i := from; i < to; i++ {
		if err := tx.Queue().InsertSubscription(ctx, reeve.Subscription{ID: fmt.Sprint("sub_", i),
			WorkspaceID: workspace,
			AgentID:     w.agent,
			Token:       reeve.Token{Class: reeve.EntityID, Name: fmt.Sprint("thing-", i)}}); err != nil {
			return err
		}
	}
	return nil
}
