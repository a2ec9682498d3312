// Command riverpostgres is River on PostgreSQL as the benchmarks' peer: a process of its own, so that neither side pays for the
// other's garbage. It speaks as riversqlite does.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const stepsPerJob = 20

var content = strings.Repeat("what a step found out, ", 9)[:200]

// workflow is a job of stepsPerJob resumable steps.
type workflow struct {
	Number int `json:"number"`
}

func (workflow) Kind() string { return "workflow" }

// worker does each step as River's documentation has it: effect and checkpoint in one transaction.
type worker struct {
	river.WorkerDefaults[workflow]
	pool *pgxpool.Pool
	flow *flow
}

func (w *worker) Work(ctx context.Context, job *river.Job[workflow]) error {
	for i := range stepsPerJob {
		river.ResumableStep(ctx, fmt.Sprint("step-", i), nil, func(ctx context.Context) error {
			if err := w.flow.wait(ctx); err != nil {
				return err
			}
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `INSERT INTO files (session, path, body) VALUES ($1, $2, $3)
					ON CONFLICT (session, path) DO UPDATE SET body = $3`, job.Args.Number, fmt.Sprintf("/steps/%d.txt", i), content); err != nil {
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

// nothing is a job that does nothing.
type nothing struct {
	Number int `json:"number"`
}

func (nothing) Kind() string { return "nothing" }

type idler struct {
	river.WorkerDefaults[nothing]
	flow *flow
}

func (w *idler) Work(ctx context.Context, _ *river.Job[nothing]) error { return w.flow.wait(ctx) }

// flow lets workers go on during their turn and holds them otherwise, so that the engine costs nothing then.
type flow struct {
	count atomic.Int64
	came  atomic.Bool // the first worker: the engine has begun
	mu    sync.Mutex
	open  chan struct{} // closed while work may go on
}

func (f *flow) pause() {
	f.mu.Lock()
	f.open = make(chan struct{})
	f.mu.Unlock()
}

func (f *flow) wait(ctx context.Context) error {
	f.came.Store(true)
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "riverpostgres:", err)
		os.Exit(1)
	}
}

// run gives River its best: as many workers as callers, a connection for each and some to spare, the shortest cooldown and poll
// it allows, batched completion (its default), and a queue that was filled beforehand, so that inserting jobs costs it nothing.
func run() error {
	u := flag.String("database", "", "URL of an empty database")
	n := flag.Int("workers", 1, "how many")
	many := flag.Int("jobs", 10_000, "how many jobs wait")
	idle := flag.Bool("nothing", false, "jobs do nothing, and are counted when they are completed in the database")
	flag.Parse()
	ctx := context.Background()
	cfg, err := pgxpool.ParseConfig(*u)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(*n + 8)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE files (session BIGINT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, path))"); err != nil {
		return err
	}
	f := &flow{}
	f.pause()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{pool: pool, flow: f})
	river.AddWorker(workers, &idler{flow: f})
	client, err := river.NewClient(driver, &river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond, JobTimeout: -1,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: *n}}})
	if err != nil {
		return err
	}
	jobs := make([]river.InsertManyParams, *many)
	for i := range jobs {
		jobs[i].Args = workflow{Number: i}
		if *idle {
			jobs[i].Args = nothing{Number: i}
		}
	}
	for len(jobs) > 0 {
		k := min(len(jobs), 2000)
		if _, err := client.InsertManyFast(ctx, jobs[:k]); err != nil {
			return err
		}
		jobs = jobs[k:]
	}
	if _, err := pool.Exec(ctx, "ANALYZE"); err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	for !f.came.Load() { // on a busy machine that takes longer than a turn
		time.Sleep(time.Millisecond)
	}
	done := func() (n int64, err error) {
		if !*idle {
			return f.count.Load(), nil
		}
		return n, pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	}
	if err := serve(done, f); err != nil {
		return err
	}
	ended, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.StopAndCancel(ended)
}

// serve works for as long as each line of the input says and answers with how many were done per second.
func serve(done func() (int64, error), f *flow) error {
	fmt.Println(0)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		d, err := time.ParseDuration(in.Text())
		if err != nil {
			return err
		}
		before, err := done()
		if err != nil {
			return err
		}
		start := time.Now()
		close(f.open)
		time.Sleep(d)
		f.pause()
		took := time.Since(start)
		after, err := done()
		if err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // what was under way is over before the next turn begins to matter
		if after == before {
			return errors.New("nothing was done in a turn: the queue is empty, or stands still")
		}
		fmt.Println(float64(after-before) / took.Seconds())
	}
	return nil
}
