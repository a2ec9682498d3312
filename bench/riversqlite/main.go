// Command riversqlite runs River on SQLite, a peer of the benchmarks. Package peer describes its options. It is a
// separate module, because the newest available SQLite driver (0.31) builds only with River 0.31.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"

	"reeve/bench/peer"
)

// workflow is a job of resumable steps.
type workflow struct {
	Number int `json:"number"`
}

func (workflow) Kind() string { return "workflow" }

// stepper works on a workflow: each step writes its effect and checkpoint in one transaction. River 0.31 has no
// ResumableSetStepTx. JobUpdateTx runs the same statement.
type stepper struct {
	river.WorkerDefaults[workflow]
	db    *sql.DB
	pacer *peer.Pacer
}

func (w *stepper) Work(ctx context.Context, job *river.Job[workflow]) error {
	client := river.ClientFromContext[*sql.Tx](ctx)
	for i := range peer.StepsPerJob {
		if err := w.pacer.Wait(ctx); err != nil {
			return err
		}
		err := inTx(ctx, w.db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `INSERT INTO files (session, path, body) VALUES ($1, $2, $3)
				ON CONFLICT (session, path) DO UPDATE SET body = $3`,
				job.Args.Number, fmt.Sprintf("/steps/%d.txt", i), peer.Content); err != nil {
				return err
			}
			_, err := client.JobUpdateTx(ctx, tx, job.ID, &river.JobUpdateParams{Output: fmt.Sprint("step-", i)})
			return err
		})
		if err != nil {
			return err
		}
		w.pacer.Count.Add(1)
	}
	return nil
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// empty is a job that does nothing.
type empty struct {
	Number int `json:"number"`
}

func (empty) Kind() string { return "empty" }

type completer struct {
	river.WorkerDefaults[empty]
	db      *sql.DB
	pacer   *peer.Pacer
	durable bool // complete the job here; otherwise River completes it later, in a batch
}

func (w *completer) Work(ctx context.Context, job *river.Job[empty]) error {
	if err := w.pacer.Wait(ctx); err != nil || !w.durable {
		return err
	}
	return inTx(ctx, w.db, func(tx *sql.Tx) error {
		_, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job)
		return err
	})
}

func main() {
	if err := run(context.Background(), peer.ParseOptions()); err != nil {
		fmt.Fprintln(os.Stderr, "riversqlite:", err)
		os.Exit(1)
	}
}

// run runs River with its best settings: one connection, as its documentation recommends, the shortest possible
// cooldown and poll interval, and a queue filled in advance.
func run(ctx context.Context, o peer.Options) error {
	db, err := sql.Open("sqlite",
		"file:"+o.Database+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"+
			"&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	driver := riversqlite.New(db)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE files (session BIGINT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL,
		PRIMARY KEY (session, path))`); err != nil {
		return err
	}
	pacer, workers := peer.NewPacer(), river.NewWorkers()
	river.AddWorker(workers, &stepper{db: db, pacer: pacer})
	river.AddWorker(workers, &completer{db: db, pacer: pacer, durable: o.Durable})
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
		k := min(len(jobs), 4000)
		if _, err := client.InsertMany(ctx, jobs[:k]); err != nil {
			return err
		}
		jobs = jobs[k:]
	}
	if _, err := db.ExecContext(ctx, "ANALYZE"); err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	err = pacer.Serve(func() (n int64, err error) {
		if !o.Empty {
			return pacer.Count.Load(), nil
		}
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	})
	if err != nil {
		return err
	}
	ended, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.StopAndCancel(ended)
}
