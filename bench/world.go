package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/sqlite"
)

const (
	workspace = "bench"
	agentName = "bench"
	toolName  = "step"
)

// database says where a database is: a PostgreSQL URL, or the directory that holds the SQLite file.
type database struct {
	engine string
	dir    string
	url    string
}

const (
	onSQLite   = "SQLite"
	onPostgres = "PostgreSQL"
)

// engines lists the databases to measure on. PostgreSQL is left out where scripts/postgres did not start one.
func engines() []string {
	if postgresServer() == "" {
		return []string{onSQLite}
	}
	return []string{onSQLite, onPostgres}
}

func postgresServer() string { return os.Getenv("REEVE_TEST_POSTGRES") }

// newDatabase makes an empty database.
func newDatabase(ctx context.Context, c config, engine, name string) (d database, err error) {
	d = database{engine: engine, dir: filepath.Join(c.dir, engine+"-"+name)}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return d, err
	}
	if engine == onPostgres {
		d.url, err = freshPostgres(ctx, name)
	}
	return d, err
}

func freshPostgres(ctx context.Context, name string) (string, error) {
	u, err := url.Parse(postgresServer())
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, u.String())
	if err != nil {
		return "", err
	}
	name = "bench_" + name
	_, err = conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
	}
	u.Path = "/" + name
	return u.String(), errors.Join(err, conn.Close(ctx))
}

// open opens the database as the product does: SQLite with a full sync per commit, PostgreSQL as its server is set.
func (d database) open(ctx context.Context) (store.Engine, error) {
	if d.engine == onPostgres {
		return postgres.Open(ctx, postgres.Config{URL: d.url})
	}
	return sqlite.Open(ctx, sqlite.Config{File: filepath.Join(d.dir, "reeve.db")})
}

// world is a database with a gate, an agent, and the step tool.
type world struct {
	database
	handle store.Engine
	db     *store.DB
	gate   *gate.Gate
	agent  string
	end    func() error
}

// newWorld makes a database with a workspace and an agent.
func newWorld(ctx context.Context, c config, engine, name string) (*world, error) {
	d, err := newDatabase(ctx, c, engine, name)
	if err != nil {
		return nil, err
	}
	return d.newWorld(ctx)
}

// newWorld adds a workspace and an agent to a database.
func (d database) newWorld(ctx context.Context) (*world, error) {
	w, err := d.openWorld(ctx)
	if err != nil {
		return nil, err
	}
	err = w.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.InsertWorkspace(ctx, workspace, "Bench"); err != nil {
			return err
		}
		w.agent = tx.NewID(reeve.PrefixAgent)
		return tx.InsertAgent(ctx, reeve.Agent{ID: w.agent, WorkspaceID: workspace, Name: agentName, Kind: "assistant",
			Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
	})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// openWorld opens a database and runs a gate on it, as a server does. The caller sets the agent.
func (d database) openWorld(ctx context.Context) (w *world, err error) {
	e, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, e, make([]byte, 32))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	w = &world{database: d, handle: e, db: db, gate: gate.New(gate.Config{DB: db, Log: slog.New(slog.DiscardHandler)})}
	if err := w.gate.Catalogue.AddTool(stepTool()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := w.gate.Open(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.gate.Run(running) }()
	w.end = func() error { stop(); return <-ended }
	return w, nil
}

func (w *world) close() error { return errors.Join(w.end(), w.db.Close()) }

// content is what a step writes: 200 bytes.
var content = strings.Repeat("what a step found out, ", 9)[:200]

// stepArgs are the arguments of the step tool.
type stepArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// filePath cycles through 50 files per session, so that steps both add and replace.
func filePath(i int) string { return fmt.Sprintf("/steps/%d.txt", i%50) }

// stepTool is a local tool whose effect is one row, like a step of a River job.
func stepTool() reeve.Tool {
	return reeve.MustTool(reeve.Tool{ID: toolName, Description: "A step of a workflow.", Effect: reeve.Local, TimeoutMS: 10_000},
		func(ctx context.Context, in stepArgs) (string, error) {
			tx, err := store.TxFrom(ctx)
			if err != nil {
				return "", err
			}
			inv := reeve.InvocationFrom(ctx)
			return "done", tx.PutSessionFile(ctx, inv.Workspace, inv.Session, in.Path, []byte(in.Content))
		})
}

// step makes one gated call of the step tool.
func (w *world) step(ctx context.Context, session string, i int) (reeve.Result, error) {
	args, err := json.Marshal(stepArgs{filePath(i), content})
	if err != nil {
		return reeve.Result{}, err
	}
	res, err := w.gate.Call(ctx, reeve.Call{Workspace: workspace, Agent: w.agent, Tool: toolName, Tools: []string{toolName}, Args: args,
		Session: session, Via: reeve.ViaGo})
	if err == nil && (res.IsError || res.State != reeve.Committed) {
		err = fmt.Errorf("the call came to %s: %s", res.State, res.Message)
	}
	return res, err
}

// gated is the side of n callers that make gated calls.
func (w *world) gated(n int) side {
	return callers(n, func(ctx context.Context, caller, i int) error {
		_, err := w.step(ctx, fmt.Sprintf("gated-%d-of-%d", caller, n), i)
		return err
	})
}

// bare is the side of n callers whose transactions write the rows of a gated call without the gate: the effect, and a copy
// of a call that was really made, under new ids. Extra adds that many messages of the same size.
func (w *world) bare(ctx context.Context, n, extra int) (side, error) {
	res, err := w.step(ctx, "template", 0)
	if err != nil {
		return nil, err
	}
	var template store.Call
	var judged store.Judged
	err = w.db.View(ctx, func(s *store.Snap) error {
		ws, err := s.GetWorkspace(ctx, workspace)
		if err != nil {
			return err
		}
		judged.Revision = ws.Revision
		op, err := s.GetOperation(ctx, workspace, res.OperationID)
		if err != nil {
			return err
		}
		template, err = s.GetCall(ctx, workspace, op.CallID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return callers(n, func(ctx context.Context, caller, i int) error {
		thread := fmt.Sprintf("%s:session:bare-%d-of-%d-%d", w.agent, caller, n, extra)
		return w.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.PutSessionFile(ctx, workspace, thread, filePath(i), []byte(content)); err != nil {
				return err
			}
			call, result := template, *template.Result
			call.Operation.ID, call.Operation.ThreadID = tx.NewID(reeve.PrefixOperation), thread
			call.Operation.CallID, result.ID = tx.NewID(reeve.PrefixMessage), tx.NewID(reeve.PrefixMessage)
			call.Result = &result
			if err := tx.InsertCall(ctx, call, judged); err != nil {
				return err
			}
			for range extra {
				m := reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: workspace, ThreadID: thread, AgentID: w.agent,
					Kind: reeve.Thought, Content: call.Args, Metadata: call.Request}
				if err := tx.AppendMessage(ctx, m); err != nil {
					return err
				}
			}
			return nil
		})
	}), nil
}

// multiply copies the rows of a table that satisfy a condition n times, in plain SQL, which takes a tenth of the time that
// the store would need. Set gives columns that differ in the copies, as expressions of i, the number of the copy.
func multiply(ctx context.Context, d database, table, where string, n int, set map[string]string) (err error) {
	e, err := d.open(ctx)
	if err != nil {
		return err
	}
	db, _, err := e.Migrator(ctx)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	defer func() { err = errors.Join(err, db.Close(), e.Close()) }()
	db.SetMaxOpenConns(1)
	before, after := []string{"SET synchronous_commit = off"}, []string{"ANALYZE", "CHECKPOINT"}
	if d.engine == onSQLite {
		before = []string{"PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF", "PRAGMA cache_size = -400000",
			"PRAGMA wal_autocheckpoint = 200000"}
		after = []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	}
	if err := execAll(ctx, db, before); err != nil {
		return err
	}
	names, err := columns(ctx, db, table)
	if err != nil {
		return err
	}
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = table + "." + name
		if v, ok := set[name]; ok {
			values[i] = v
		}
	}
	copies := fmt.Sprintf(`WITH RECURSIVE numbers(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < $2)
		INSERT INTO %s (%s) SELECT %s FROM numbers, %s WHERE %s`, table, strings.Join(names, ", "), strings.Join(values, ", "), table, where)
	for from := 0; from < n; from += 20_000 {
		if _, err := db.ExecContext(ctx, copies, from, min(n, from+20_000)-1); err != nil {
			return err
		}
	}
	return execAll(ctx, db, after)
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, q := range statements {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func columns(ctx context.Context, db *sql.DB, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	names, err := rows.Columns()
	return names, errors.Join(err, rows.Close())
}

// pastID is an SQL expression for the id of copy i that sorts before the ids of today. Number is an expression; series
// keeps the ids of several copies apart.
func pastID(prefix string, series int, number string) string {
	return fmt.Sprintf("'%s_01a00000000000%d' || CAST(10000000000 + %s AS TEXT)", prefix, series, number)
}
