// Command riverpostgres runs River on PostgreSQL, a peer of the benchmarks. Package peer describes its options.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"reeve/bench/peer"
)

// workflow is a job of resumable steps.
type workflow struct {
	Number int `json:"number"`
}

func (workflow) Kind() string { return "workflow" }

// stepper works on a workflow as in River's documentation: each step writes its effect and checkpoint in one
// transaction.
type stepper struct {
	river.WorkerDefaults[workflow]
	pool  *pgxpool.Pool
	pacer *peer.Pacer
}

func (w *stepper) Work(ctx context.Context, job *river.Job[workflow]) error {
	for i := range peer.StepsPerJob {
		river.ResumableStep(ctx, fmt.Sprint("step-", i), nil, func(ctx context.Context) error {
			if err := w.pacer.Wait(ctx); err != nil {
				return err
			}
			err := pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, `INSERT INTO files (session, path, body) VALUES ($1, $2, $3)
					ON CONFLICT (session, path) DO UPDATE SET body = $3`,
					job.Args.Number, fmt.Sprintf("/steps/%d.txt", i), peer.Content); err != nil {
					return err
				}
				_, err := river.ResumableSetStepTx[*riverpgxv5.Driver](ctx, tx, job)
				return err
			})
			if err == nil {
				w.pacer.Count.Add(1)
			}
			return err
		})
	}
	return nil
}

// empty is a job that does nothing.
type empty struct {
	Number int `json:"number"`
}

func (empty) Kind() string { return "empty" }

type completer struct {
	river.WorkerDefaults[empty]
	pool    *pgxpool.Pool
	pacer   *peer.Pacer
	durable bool // complete the job here; otherwise River completes it later, in a batch
}

func (w *completer) Work(ctx context.Context, job *river.Job[empty]) error {
	if err := w.pacer.Wait(ctx); err != nil || !w.durable {
		return err
	}
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

func main() {
	if err := run(context.Background(), peer.ParseOptions()); err != nil {
		fmt.Fprintln(os.Stderr, "riverpostgres:", err)
		os.Exit(1)
	}
}

// run runs River with its best settings: a connection for each worker and some to spare, the shortest possible cooldown
// and poll interval, and a queue filled in advance, so that inserting jobs costs nothing.
func run(ctx context.Context, o peer.Options) error {
	cfg, err := pgxpool.ParseConfig(o.Database)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(o.Workers + 8)
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
	if _, err := pool.Exec(ctx, `CREATE TABLE files (session BIGINT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL,
		PRIMARY KEY (session, path))`); err != nil {
		return err
	}
	pacer, workers := peer.NewPacer(), river.NewWorkers()
	river.AddWorker(workers, &stepper{pool: pool, pacer: pacer})
	river.AddWorker(workers, &completer{pool: pool, pacer: pacer, durable: o.Durable})
	client, err := river.NewClient(driver, &river.Config{Workers: workers, Logger: slog.New(slog.DiscardHandler),
		FetchCooldown: time.Millisecond, FetchPollInterval: 5 * time.Millisecond, JobTimeout: -1,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Workers}}})
	if err != nil {
		return err
	}
	jobs := make([]river.InsertManyParams, o.Jobs)
	for i := range jobs {
		jobs[i].Args = workflow{Number: i}
		if o.Empty {
			jobs[i].Args = empty{Number: i}
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
	err = pacer.Serve(func() (n int64, err error) {
		if !o.Empty {
			return pacer.Count.Load(), nil
		}
		return n, pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	})
	if err != nil {
		return err
	}
	ended, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.StopAndCancel(ended)
}
