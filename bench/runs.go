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

// measureRuns measures how wakes become runs, how soon, and what it costs to find whom a change concerns.
func measureRuns(ctx context.Context, c config, t *table) {
	for _, engine := range engines() {
		for _, n := range []int{8, 32} {
			for _, durable := range []bool{true, false} {
				throughput(ctx, c, engine, n, durable, t)
			}
		}
		latency(ctx, c, engine, t)
		timers(ctx, c, engine, t)
		subscriptions(ctx, c, engine, t)
	}
}

// idleBrain is a brain that does nothing. Its pacer can hold it.
type idleBrain struct {
	pacer *peer.Pacer
	begun atomic.Int64
	note  func(run reeve.Run) // called when a run begins, if set
}

func (b *idleBrain) Run(ctx context.Context, run reeve.Run, _ reeve.RunServer) reeve.RunEnd {
	if b.note != nil {
		b.note(run)
	}
	b.begun.Add(1)
	if err := b.pacer.Wait(ctx); err != nil {
		return reeve.RunEnd{State: reeve.RunFailed, Err: reeve.AsError(err)}
	}
	return reeve.RunEnd{State: reeve.RunCompleted}
}

// wait waits until so many runs have begun.
func (b *idleBrain) wait(n int) error {
	for end := time.Now().Add(time.Minute); b.begun.Load() < int64(n); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d runs began within a minute", b.begun.Load(), n)
		}
	}
	return nil
}

// runWorld is a world with agents that run when they are woken.
type runWorld struct {
	*world
	scheduler *wake.Scheduler
	queue     *wake.Queue
	brain     *idleBrain
	agents    []string
}

// agentID begins the ids of agents; a number follows.
const agentID = "agt_bench"

// newRunWorld makes a database with agents.
func newRunWorld(ctx context.Context, c config, engine, name string, agents int) *runWorld {
	r := &runWorld{world: newWorld(ctx, c, engine, name)}
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

// prepare makes the scheduler that runs agents, n at once; 0 means as many as by default.
func (r *runWorld) prepare(ctx context.Context, n int) {
	process := fmt.Sprint("proc_", n) // PostgreSQL still knows the process of an earlier scheduler
	check(r.db.Update(ctx, func(tx *store.Tx) error { return tx.System().RegisterProcess(ctx, process) }))
	r.brain = &idleBrain{pacer: peer.NewPacer()}
	r.queue = wake.NewQueue(r.db)
	r.scheduler = must(wake.NewScheduler(wake.Config{DB: r.db, Log: slog.New(slog.DiscardHandler), Process: process,
		Queue: r.queue, Planner: wake.NewPlanner(wake.Limits{}), Brain: r.brain, MaxRuns: n}))
}

// start runs the scheduler until stop is called.
func (r *runWorld) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.scheduler.Run(ctx) }()
	return func() { cancel(); warn(<-done) }
}

// throughput compares wakes that are claimed, run and ended in the database with River's jobs. Both have a full
// queue and do nothing in a run. Reeve begins a run while the end of another is being written: so that a crash would
// repeat at most n on both sides, half as many run at once, and River completes each job before it takes the next.
// Without durable, River works as it does by default: it completes jobs up to 50 ms later, many at once, and a crash
// repeats all of these.
func throughput(ctx context.Context, c config, engine string, n int, durable bool, t *table) {
	jobs, atOnce, against, want := pick(c, 100_000, 30_000), n, ", completed later", informs
	flags := []string{"-empty", "-jobs", strconv.Itoa(jobs)}
	if durable {
		atOnce, against, want, flags = n/2, ", equal durability", atLeast(1), append(flags, "-durable")
	}
	w := filledQueue(ctx, c, engine, fmt.Sprintf("queue_%d_%d", n, atOnce), jobs, atOnce)
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

// filledQueue makes a database whose queue holds wakes of 1,000 agents.
func filledQueue(ctx context.Context, c config, engine, name string, wakes, atOnce int) *runWorld {
	const agents = 1000
	w := newRunWorld(ctx, c, engine, name, agents)
	first, err := w.queue.Wake(ctx, workspace, w.agents[0], "ann", "", "")
	w.close()
	check(err)
	multiply(ctx, w.database, "wakes", "run_key = '"+first.RunKey+"'", wakes, map[string]string{
		"run_key": "'key' || CAST(i AS TEXT)", "session_id": "'manual:key' || CAST(i AS TEXT)",
		"due_at":   "due_at - 1000000 + i",
		"agent_id": fmt.Sprintf("'%s' || CAST(i %% %d AS TEXT)", agentID, agents)})
	w.world = w.openWorld(ctx)
	w.prepare(ctx, atOnce)
	return w
}

// latency wakes 100 agents a second by hand and measures from before each wake is written until its run begins.
func latency(ctx context.Context, c config, engine string, t *table) {
	const perSecond = 100
	n := pick(c, 20, 3) * perSecond
	w := newRunWorld(ctx, c, engine, "latency", 100)
	defer w.close()
	asked, took := make([]time.Time, n), make([]float64, n)
	w.brain.note = func(run reeve.Run) {
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

// timers measures until all runs of timers that were due within one second have begun. Half of the timers are
// schedules; each agent has ten. Its runs without a goal must begin in the order in which they were due; each
// schedule with a goal is run independently.
func timers(ctx context.Context, c config, engine string, t *table) {
	const each = 10
	agents := pick(c, 1000, 100)
	w := newRunWorld(ctx, c, engine, "timers", agents)
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
	w.brain.note = func(run reeve.Run) {
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
		err = errors.Join(err, fmt.Errorf("%d runs began before one that was due earlier", wrong))
	}
	check(err)
	const limit = 2.0 // seconds for 10,000 timers; it is asked of SQLite
	want := pick(c, atMost(1), informs)
	if engine == onPostgres {
		want = informs
	}
	name := fmt.Sprintf("%s, %d timers due at once, all begun", engine, agents*each)
	t.add(row{name: name, unit: "s", against: "limit", ours: took, peer: limit, ratio: took / limit, target: want})
}

// subscriptions compares the cost of a change with 100 tokens, ten of them watched, among many subscriptions and few.
func subscriptions(ctx context.Context, c config, engine string, t *table) {
	many := pick(c, 100_000, 20_000)
	sides := make([]side, 2)
	for k, n := range []int{1000, many} {
		w := newWorld(ctx, c, engine, fmt.Sprint("subscriptions_", n))
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

// subscribe subscribes the agent to the things from a number to another.
func (w *world) subscribe(ctx context.Context, tx *store.Tx, from, to int) error {
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
