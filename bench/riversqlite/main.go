// Command riversqlite is River on SQLite as the benchmarks' peer. It is a module of its own because the newest SQLite driver
// that the module proxy has (0.31) builds only with River 0.31.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"

	"reeve/bench/turn"
)

const stepsPerJob = 20

var content = strings.Repeat("what a step found out, ", 9)[:200]

type workflow struct {
	Number int `json:"number"`
}

func (workflow) Kind() string { return "workflow" }

type worker struct {
	river.WorkerDefaults[workflow]
	db   *sql.DB
	flow *turn.Flow
}

// Work does each step in a transaction of its own: the effect, and the checkpoint in the job's row. River 0.31 has no
// ResumableSetStepTx; JobUpdateTx runs the same statement.
func (w *worker) Work(ctx context.Context, job *river.Job[workflow]) error {
	client := river.ClientFromContext[*sql.Tx](ctx)
	for i := range stepsPerJob {
		if err := w.flow.Wait(ctx); err != nil {
			return err
		}
		if err := w.step(ctx, client, job, i); err != nil {
			return err
		}
		w.flow.Count.Add(1)
	}
	return nil
}

func (w *worker) step(ctx context.Context, client *river.Client[*sql.Tx], job *river.Job[workflow], i int) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, `INSERT INTO files (session, path, body) VALUES ($1, $2, $3)
		ON CONFLICT (session, path) DO UPDATE SET body = $3`, job.Args.Number, fmt.Sprintf("/steps/%d.txt", i), content); err != nil {
		return err
	}
	if _, err := client.JobUpdateTx(ctx, tx, job.ID, &river.JobUpdateParams{Output: fmt.Sprint("step-", i)}); err != nil {
		return err
	}
	return tx.Commit()
}

// nothing is a job that does nothing.
type nothing struct {
	Number int `json:"number"`
}

func (nothing) Kind() string { return "nothing" }

type idler struct {
	river.WorkerDefaults[nothing]
	db   *sql.DB // to complete jobs with; nil leaves that to River, which does it later
	flow *turn.Flow
}

func (w *idler) Work(ctx context.Context, job *river.Job[nothing]) error {
	err := w.flow.Wait(ctx)
	if err == nil && w.db != nil {
		err = w.complete(ctx, job)
	}
	if err == nil {
		w.flow.Count.Add(1)
	}
	return err
}

func (w *idler) complete(ctx context.Context, job *river.Job[nothing]) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := river.JobCompleteTx[*riversqlite.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "riversqlite:", err)
		os.Exit(1)
	}
}

func run() error {
	file := flag.String("file", "", "database file")
	n := flag.Int("workers", 1, "how many")
	conns := flag.Int("conns", 1, "connections; River's documentation says 1")
	many := flag.Int("jobs", 4000, "how many jobs wait")
	idle := flag.Bool("nothing", false, "jobs do nothing, and are counted when they are completed in the database")
	durably := flag.Bool("durably", false, "a job's end is durable before its worker takes another, by River's JobCompleteTx")
	flag.Parse()
	ctx := context.Background()
	db, err := sql.Open("sqlite", "file:"+*file+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(*conns)
	db.SetMaxIdleConns(*conns)
	driver := riversqlite.New(db)
	m, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE files (session BIGINT NOT NULL, path TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, path))"); err != nil {
		return err
	}
	f := turn.New()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{db: db, flow: f})
	idling := &idler{flow: f}
	if *durably {
		idling.db = db
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
	done := func() (n int64, err error) {
		if !*idle {
			return f.Count.Load(), nil
		}
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	}
	if err := f.Serve(done); err != nil {
		return err
	}
	ended, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.StopAndCancel(ended)
}
