// Command riversqlite is River on SQLite as the benchmarks' peer. It is a module of its own because the newest SQLite driver
// that the module proxy has (0.31) builds only with River 0.31.
//
// It fills its queue, says "0" when it is ready, then works for as long as each line of its input says and answers with the
// steps, or jobs, per second.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
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
	flow *flow
}

// Work does each step in a transaction of its own: the effect, and the checkpoint in the job's row. River 0.31 has no
// ResumableSetStepTx; JobUpdateTx runs the same statement.
func (w *worker) Work(ctx context.Context, job *river.Job[workflow]) error {
	client := river.ClientFromContext[*sql.Tx](ctx)
	for i := range stepsPerJob {
		if err := w.flow.wait(ctx); err != nil {
			return err
		}
		if err := w.step(ctx, client, job, i); err != nil {
			return err
		}
		w.flow.count.Add(1)
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
	f := &flow{}
	f.pause()
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{db: db, flow: f})
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
	for !f.came.Load() { // on a busy machine that takes longer than a turn
		time.Sleep(time.Millisecond)
	}
	done := func() (n int64, err error) {
		if !*idle {
			return f.count.Load(), nil
		}
		return n, db.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
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
