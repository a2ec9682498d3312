package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/sqlite"
)

// sessions is over how many threads the history is spread.
const sessions = 1000

// readyLimit is how long a start may take, in milliseconds.
const readyLimit = 300

// scale asks whether a long history costs anything: at start, and per call.
func scale(ctx context.Context, c config, t *table) error {
	program, err := buildServer(ctx, c)
	if err != nil {
		return err
	}
	many := pick(c, 1_000_000, 50_000)
	for _, name := range []string{"SQLite", "PostgreSQL"} {
		small, err := history(ctx, c, program, name, "small", 1000)
		if err != nil {
			return err
		}
		large, err := history(ctx, c, program, name, "large", many)
		if err != nil {
			return err
		}
		if err := large.starts(ctx, program, name, many, t); err != nil {
			return err
		}
		if err := large.perCall(ctx, c, name, many, small, t); err != nil {
			return err
		}
		if err := large.listing(ctx, name, many, t); err != nil {
			return err
		}
	}
	return nil
}

// archive is a database with a history, as a server of its own left it.
type archive struct {
	dir      string
	database string // PostgreSQL's URL, or empty
}

func (a archive) engine(ctx context.Context) (store.Engine, error) {
	if a.database != "" {
		return postgres.Open(ctx, postgres.Config{URL: a.database})
	}
	return sqlite.Open(ctx, sqlite.Config{File: filepath.Join(a.dir, "reeve.db")})
}

// world is what works with it.
func (a archive) world(ctx context.Context) (*world, error) {
	e, err := a.engine(ctx)
	if err != nil {
		return nil, err
	}
	return reopenWorld(ctx, e)
}

// history makes a database as a first start leaves it, and then multiplies one real call into n operations, each with its
// action, its result and its events, spread over the sessions.
func history(ctx context.Context, c config, program, engine, name string, n int) (a archive, err error) {
	a.dir = filepath.Join(c.dir, engine+"-"+name)
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return a, err
	}
	if engine == "PostgreSQL" {
		if a.database, err = freshDatabase(ctx, "scale_"+name); err != nil {
			return a, err
		}
	}
	s, _, err := startServer(ctx, program, a.dir, a.database)
	if err != nil {
		return a, err
	}
	if err := s.stop(); err != nil {
		return a, err
	}
	e, err := a.engine(ctx)
	if err != nil {
		return a, err
	}
	w, err := newWorld(ctx, e)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	res, err := w.step(ctx, "template", 0)
	if err != nil {
		return a, err
	}
	db, _, err := e.Migrator(ctx)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return a, multiply(ctx, db, a.database == "", w.agent, res.OperationID, n)
}

// multiply copies one operation n times in plain SQL: through the store it would take ten times as long, and the rows would be
// the same. Ids sort before those of today, as a past's do.
func multiply(ctx context.Context, db *sql.DB, isSQLite bool, agent, op string, n int) error {
	db.SetMaxOpenConns(1)
	setup := []string{"SET synchronous_commit = off"}
	if isSQLite {
		setup = []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -400000", "PRAGMA foreign_keys = OFF", "PRAGMA wal_autocheckpoint = 200000"}
	}
	for _, q := range setup {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	const (
		numbers = `WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) `
		id      = `'_01a000000000000' || CAST(10000000000 + `
		thread  = `'AGENT:session:s' || CAST(i % SESSIONS AS TEXT)`
		age     = `created_at - 2000000000 + i`
	)
	fill := strings.NewReplacer("INSERT", numbers+"INSERT", "AGENT", agent, "SESSIONS", fmt.Sprint(sessions)).Replace
	opID, call, result := `'op' || `+id+`i AS TEXT)`, `'msg' || `+id+`2 * i AS TEXT)`, `'msg' || `+id+`2 * i + 1 AS TEXT)`
	statements := []string{
		fill(`INSERT INTO calls (operation_id, workspace_id, agent_id, id, result_id, thread_id, run_id, tool, tool_version, policy,
			effect, state, args_hash, base, code, message, tries, next_attempt_at, timeout_at, in_flight_until, deferred, owner, resolution, resolved_by, undo, spent, created_at, updated_at,
			args, request, result, result_info)
			SELECT ` + opID + `, workspace_id, agent_id, ` + call + `, ` + result + `, ` + thread + `, run_id, tool, tool_version, policy,
			effect, state, args_hash, base, code, message, tries, next_attempt_at, timeout_at, in_flight_until, deferred, owner, resolution, resolved_by, undo, spent, ` + age + `, ` + age + `, args, request, result, result_info
			FROM n, calls WHERE calls.operation_id = $3`),
		fill(`INSERT INTO events (id, workspace_id, class, name, agent_id, operation_id, created_at) SELECT 'evt' || ` + id + `2 * i + CASE WHEN class = 'key' THEN 0 ELSE 1 END AS TEXT), workspace_id, class, name, agent_id, ` + opID + `, ` + age + `
			FROM n, events WHERE events.operation_id = $3`),
	}
	start := time.Now()
	for from := 0; from < n; from += 20_000 {
		to := min(n, from+20_000) - 1
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for _, q := range statements {
			if _, err := tx.ExecContext(ctx, q, from, to, op); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	// What a database in use has done by itself: statistics, and its log written back.
	after := []string{"ANALYZE", "CHECKPOINT"}
	if isSQLite {
		after = []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	}
	for _, q := range after {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "  %d operations made in %s\n", n, time.Since(start).Round(time.Second))
	return nil
}

// starts times five starts of the real binary.
func (a archive) starts(ctx context.Context, program, engine string, n int, t *table) error {
	var took []float64
	for range 5 {
		s, d, err := startServer(ctx, program, a.dir, a.database)
		if err != nil {
			return err
		}
		if err := s.stop(); err != nil {
			return err
		}
		took = append(took, float64(d.Microseconds())/1000)
	}
	ms := median(took)
	t.add(row{Section: "scale", Name: fmt.Sprintf("%s, start to ready with %d operations", engine, n), Unit: "ms", Ours: ms, Against: "limit", Peer: readyLimit,
		Ratio: ms / readyLimit, Target: 1, AtMost: true})
	return nil
}

// perCall compares what a call costs after a long history with what it costs after a short one. Calls go to the sessions at
// random, so that they find their places cold where a long history makes that so. A turn is short: the short history must stay so.
func (a archive) perCall(ctx context.Context, c config, engine string, n int, small archive, t *table) error {
	lanes := make([]lane, 2)
	for i, side := range []archive{a, small} {
		w, err := side.world(ctx)
		if err != nil {
			return err
		}
		defer w.close()
		draw := rand.New(rand.NewPCG(1, 1))
		lanes[i] = func(ctx context.Context, _ time.Duration) (float64, error) {
			const calls = 200
			start := time.Now()
			for k := range calls {
				if _, err := w.step(ctx, fmt.Sprint("s", draw.IntN(sessions)), k); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(start).Microseconds()) / calls, nil
		}
	}
	c.rounds *= 2
	got, err := turns(ctx, c, lanes...)
	if err != nil {
		return err
	}
	t.add(compareCosts(row{Section: "scale", Name: fmt.Sprintf("%s, cost per call with %d operations", engine, n), Unit: "µs", Against: "with 1000", Target: 1.2}, got[0], got[1]))
	return nil
}

// listing times the operations of an agent that has none, for which all of its workspace's are looked through, beside the newest of the workspace's.
func (a archive) listing(ctx context.Context, engine string, n int, t *table) error {
	w, err := a.world(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	list := func(agent string) (float64, error) {
		var took []float64
		for range 5 {
			start := time.Now()
			err := w.db.View(ctx, func(s *store.Snap) error {
				_, err := s.ListOperations(ctx, workspace, store.OperationFilter{Agent: agent, Limit: 50})
				return err
			})
			if err != nil {
				return 0, err
			}
			took = append(took, float64(time.Since(start).Microseconds())/1000)
		}
		return median(took), nil
	}
	quiet, err := list("agt_quiet")
	if err != nil {
		return err
	}
	all, err := list("")
	if err != nil {
		return err
	}
	t.add(row{Section: "scale", Name: fmt.Sprintf("%s, operations of an agent without any, of %d", engine, n), Unit: "ms", Ours: quiet, Against: "the newest 50 of all", Peer: all, Ratio: quiet / all})
	return nil
}
