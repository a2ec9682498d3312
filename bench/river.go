package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// peer is another engine that takes its turns.
type peer struct {
	name string
	lane lane
	stop func() error
}

func startRiver(ctx context.Context, c config, engine string, n int) (*peer, error) {
	if engine == "SQLite" {
		return riverOnSQLite(ctx, c, n)
	}
	return riverOnPostgres(ctx, n)
}

// stepsPerJob is the length of a workflow, as in the comparison with DBOS.
const stepsPerJob = 20

// workflow is a job of stepsPerJob resumable steps.
type workflow struct {
	Number int `json:"number"`
}

func (workflow) Kind() string { return "workflow" }

// riverWorker runs workflows while the flow is open, and counts steps.
type riverWorker struct {
	river.WorkerDefaults[workflow]
	pool *pgxpool.Pool
	flow flow
}

// Work does each step as River's documentation has it: effect and checkpoint in one transaction.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[workflow]) error {
	for i := range stepsPerJob {
		river.ResumableStep(ctx, fmt.Sprint("step-", i), nil, func(ctx context.Context) error {
			if err := w.flow.wait(ctx); err != nil {
				return err
			}
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `INSERT INTO files (session, path, body) VALUES ($1, $2, $3)
					ON CONFLICT (session, path) DO UPDATE SET body = $3`, job.Args.Number, path(i), content); err != nil {
					return err
				}
				_, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job)
				return err
			})
			if err == nil {
				w.flow.count.Add(1)
			}
			return err
		})
	}
	return nil
}

// riverOnPostgres gives River its best: as many workers as callers, a connection for each and some to spare, the shortest
// cooldown and poll it allows, batched completion (its default), and a queue that was filled beforehand, so that inserting
// jobs costs it nothing.
func riverOnPostgres(ctx context.Context, n int) (_ *peer, err error) {
	u, err := freshDatabase(ctx, fmt.Sprint("river_", n))
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(u)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(n + 8)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE files (session BIGINT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, path))"); err != nil {
		return nil, err
	}
	w := &riverWorker{pool: pool}
	w.flow.pause()
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	client, err := river.NewClient(driver, &river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond, JobTimeout: -1,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: n}}})
	if err != nil {
		return nil, err
	}
	jobs := make([]river.InsertManyParams, 10_000)
	for i := range jobs {
		jobs[i].Args = workflow{Number: i}
	}
	for len(jobs) > 0 {
		k := min(len(jobs), 2000)
		if _, err := client.InsertManyFast(ctx, jobs[:k]); err != nil {
			return nil, err
		}
		jobs = jobs[k:]
	}
	if _, err := pool.Exec(ctx, "ANALYZE"); err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return &peer{name: "River 0.50", lane: w.flow.lane, stop: func() error {
		ended, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := client.StopAndCancel(ended)
		pool.Close()
		return err
	}}, nil
}

// flow lets workers go on during their turn and holds them between steps otherwise, so that the engine costs nothing then.
type flow struct {
	count atomic.Int64
	mu    sync.Mutex
	open  chan struct{} // closed while work may go on
}

func (f *flow) pause() {
	f.mu.Lock()
	f.open = make(chan struct{})
	f.mu.Unlock()
}

func (f *flow) wait(ctx context.Context) error {
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lane opens the flow for a while. Steps under way at its end are over before the next turn begins to matter.
func (f *flow) lane(ctx context.Context, d time.Duration) (float64, error) {
	before, start := f.count.Load(), time.Now()
	close(f.open)
	time.Sleep(d)
	rate := float64(f.count.Load()-before) / time.Since(start).Seconds()
	f.pause()
	time.Sleep(20 * time.Millisecond)
	if rate == 0 {
		return 0, errors.New("River did no step in its turn")
	}
	return rate, nil
}

// riverOnSQLite runs the program in riversqlite, a module of its own: the proxy has River's SQLite driver only up to 0.31,
// which does not build with River 0.50. It takes its turns by lines on its standard input.
func riverOnSQLite(ctx context.Context, c config, n int) (*peer, error) {
	program := filepath.Join(c.dir, "riversqlite")
	if _, err := os.Stat(program); err != nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
		build.Dir, build.Stderr = "riversqlite", os.Stderr
		if err := build.Run(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, program, "-file", filepath.Join(c.dir, fmt.Sprintf("river-%d.db", n)), "-workers", fmt.Sprint(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	answers := bufio.NewScanner(out)
	read := func() (rate float64, err error) {
		if !answers.Scan() {
			return 0, errors.Join(errors.New("River on SQLite ended"), answers.Err())
		}
		return rate, json.Unmarshal(answers.Bytes(), &rate)
	}
	if _, err := read(); err != nil { // says that it is ready
		return nil, errors.Join(err, cmd.Wait())
	}
	return &peer{name: "River 0.31", stop: func() error { return errors.Join(in.Close(), cmd.Wait()) },
		lane: func(_ context.Context, d time.Duration) (float64, error) {
			if _, err := fmt.Fprintln(in, d); err != nil {
				return 0, err
			}
			return read()
		}}, nil
}
