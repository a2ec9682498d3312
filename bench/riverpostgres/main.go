// Command riverpostgres is River on PostgreSQL as the benchmarks' peer: a process of its own, so that neither side pays for the
// other's garbage. It speaks as riversqlite does.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"reeve/bench/turn"
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
	flow *turn.Flow
}

func (w *worker) Work(ctx context.Context, job *river.Job[workflow]) error {
	for i := range stepsPerJob {
		river.ResumableStep(ctx, fmt.Sprint("step-", i), nil, func(ctx context.Context) error {
			if err := w.flow.Wait(ctx); err != nil {
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
				w.flow.Count.Add(1)
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
	pool *pgxpool.Pool // to complete jobs with; nil leaves that to River, which does it later
	flow *turn.Flow
}

func (w *idler) Work(ctx context.Context, job *river.Job[nothing]) error {
	err := w.flow.Wait(ctx)
	if err == nil && w.pool != nil {
		err = pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
	}
	if err == nil {
		w.flow.Count.Add(1)
	}
	return err
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
	durably := flag.Bool("durably", false, "a job's end is durable before its worker takes another, by River's JobCompleteTx")
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
	f := turn.New()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{pool: pool, flow: f})
	idling := &idler{flow: f}
	if *durably {
		idling.pool = pool
	}
	river.AddWorker(workers, idling)
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
	done := func() (n int64, err error) {
		if !*idle {
			return f.Count.Load(), nil
		}
		return n, pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	}
	if err := f.Serve(done); err != nil {
		return err
	}
	ended, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.StopAndCancel(ended)
}
