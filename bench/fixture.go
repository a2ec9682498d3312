package main

import (
	"context"
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

// database is the location of a database: a PostgreSQL URL, or the directory of the SQLite file.
type database struct {
	engine string
	dir    string
	url    string
}

const (
	onSQLite   = "SQLite"
	onPostgres = "PostgreSQL"
)

// engines lists the database engines to measure: SQLite, and PostgreSQL if scripts/postgres started a server.
func engines() []string {
	if postgresServer() == "" {
		return []string{onSQLite}
	}
	return []string{onSQLite, onPostgres}
}

func postgresServer() string { return os.Getenv("REEVE_TEST_POSTGRES") }

// newDatabase creates an empty database.
func newDatabase(ctx context.Context, c config, engine, name string) database {
	d := database{engine: engine, dir: filepath.Join(c.dir, engine+"-"+name)}
	check(os.MkdirAll(d.dir, 0o700))
	if engine == onPostgres {
		d.url = createPostgres(ctx, name)
	}
	return d
}

func createPostgres(ctx context.Context, name string) string {
	u := must(url.Parse(postgresServer()))
	conn := must(pgx.Connect(ctx, u.String()))
	name = "bench_" + name
	must(conn.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"))
	must(conn.Exec(ctx, "CREATE DATABASE "+name))
	check(conn.Close(ctx))
	u.Path = "/" + name
	return u.String()
}

// open opens the database like the product: SQLite with a full sync per commit, PostgreSQL with the settings of its
// server.
func (d database) open(ctx context.Context) store.Engine {
	if d.engine == onPostgres {
		return must(postgres.Open(ctx, postgres.Config{URL: d.url}))
	}
	return must(sqlite.Open(ctx, sqlite.Config{File: filepath.Join(d.dir, "reeve.db")}))
}

// fixture is a database with a gate, an agent and the step tool.
type fixture struct {
	database
	handle store.Engine
	db     *store.DB
	gate   *gate.Gate
	agent  string
	end    func() error
}

// newFixture creates a database with a workspace and an agent.
func newFixture(ctx context.Context, c config, engine, name string) *fixture {
	return newDatabase(ctx, c, engine, name).newFixture(ctx)
}

// newFixture adds a workspace and an agent to a database.
func (d database) newFixture(ctx context.Context) *fixture {
	w := d.openFixture(ctx)
	check(w.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(ctx, workspace, "Bench"); err != nil {
			return err
		}
		w.agent = tx.NewID(reeve.PrefixAgent)
		return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: w.agent, WorkspaceID: workspace, Name: agentName,
			Kind:      "assistant",
			Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
	}))
	return w
}

// openFixture opens a database and runs a gate on it, like a server. The caller sets the agent.
func (d database) openFixture(ctx context.Context) *fixture {
	e := d.open(ctx)
	db := must(store.Open(ctx, e, make([]byte, 32)))
	w := &fixture{database: d, handle: e, db: db,
		gate: gate.New(gate.Config{DB: db, Log: slog.New(slog.DiscardHandler)})}
	check(w.gate.Catalogue.AddTool(stepTool()))
	check(w.gate.Open(ctx))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.gate.Run(running) }()
	w.end = func() error { stop(); return <-ended }
	return w
}

func (w *fixture) close() { warn(errors.Join(w.end(), w.db.Close())) }

// content is the text that a step writes: 200 bytes.
var content = strings.Repeat("what a step found out, ", 9)[:200]

// stepArgs are the arguments of the step tool.
type stepArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// filePath cycles through 50 files per session, so that steps both insert and replace.
func filePath(i int) string { return fmt.Sprintf("/steps/%d.txt", i%50) }

// stepTool returns a local tool whose effect is one row, like a step of a River job.
func stepTool() reeve.Tool {
	return reeve.MustTool(reeve.Tool{ID: toolName, Description: "Execute a step of a workflow.", Effect: reeve.Local,
		TimeoutMS: 10_000},
		func(ctx context.Context, in stepArgs) (string, error) {
			tx, err := store.TxFrom(ctx)
			if err != nil {
				return "", err
			}
			inv := reeve.InvocationFrom(ctx)
			return "done", tx.Chat().PutSessionFile(ctx, inv.Workspace, inv.Session, in.Path, []byte(in.Content))
		})
}

// callStep makes one gated call of the step tool.
func (w *fixture) callStep(ctx context.Context, session string, i int) (reeve.Result, error) {
	args, err := json.Marshal(stepArgs{filePath(i), content})
	if err != nil {
		return reeve.Result{}, err
	}
	res, err := w.gate.Call(ctx, reeve.Call{Workspace: workspace, Agent: w.agent, Tool: toolName,
		Tools: []string{toolName}, Args: args,
		Session: session, Via: reeve.ViaGo})
	if err == nil && (res.IsError || res.State != reeve.Committed) {
		err = fmt.Errorf("the call ended as %s: %s", res.State, res.Message)
	}
	return res, err
}

// gatedCalls returns a side of n callers that make gated calls.
func (w *fixture) gatedCalls(n int) side {
	return callers(n, func(ctx context.Context, caller, i int) error {
		_, err := w.callStep(ctx, fmt.Sprintf("gated-%d-of-%d", caller, n), i)
		return err
	})
}

// bareTransactions returns a side of n callers that write the rows of a gated call without the gate: the effect, and a
// copy of a real call under new ids. extra is the number of additional messages of the same size.
func (w *fixture) bareTransactions(ctx context.Context, n, extra int) side {
	res := must(w.callStep(ctx, "template", 0))
	var template store.Call
	var judged store.Preconditions
	check(w.db.View(ctx, func(s *store.Snap) error {
		ws, err := s.Agents().GetWorkspace(ctx, workspace)
		if err != nil {
			return err
		}
		judged.Revision = ws.Revision
		op, err := s.Ledger().GetOperation(ctx, workspace, res.OperationID)
		if err != nil {
			return err
		}
		template, err = s.Ledger().GetCall(ctx, workspace, op.CallID)
		return err
	}))
	return callers(n, func(ctx context.Context, caller, i int) error {
		thread := fmt.Sprintf("%s:session:bare-%d-of-%d-%d", w.agent, caller, n, extra)
		return w.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.Chat().PutSessionFile(ctx, workspace, thread, filePath(i), []byte(content)); err != nil {
				return err
			}
			call, result := template, *template.Result
			call.Operation.ID, call.Operation.ThreadID = tx.NewID(reeve.PrefixOperation), thread
			call.Operation.CallID, result.ID = tx.NewID(reeve.PrefixMessage), tx.NewID(reeve.PrefixMessage)
			call.Result = &result
			if err := tx.Ledger().InsertCall(ctx, call, judged); err != nil {
				return err
			}
			for range extra {
				m := reeve.Message{ID: tx.NewID(reeve.PrefixMessage), WorkspaceID: workspace, ThreadID: thread,
					AgentID: w.agent,
					Kind:    reeve.Thought, Content: call.Args, Metadata: call.Request}
				if err := tx.Ledger().AppendMessage(ctx, m); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// multiply copies the rows of a table that satisfy a condition n times. It uses plain SQL, which takes a tenth of the
// time of the store. set maps columns that differ in the copies to SQL expressions of i, the number of the copy.
func multiply(ctx context.Context, d database, table, where string, n int, set map[string]string) {
	e := d.open(ctx)
	db, _, err := e.Migrator(ctx)
	check(err)
	defer func() { warn(errors.Join(db.Close(), e.Close())) }()
	db.SetMaxOpenConns(1)
	before, after := []string{"SET synchronous_commit = off"}, []string{"ANALYZE", "CHECKPOINT"}
	if d.engine == onSQLite {
		before = []string{"PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF", "PRAGMA cache_size = -400000",
			"PRAGMA wal_autocheckpoint = 200000"}
		after = []string{"PRAGMA wal_checkpoint(TRUNCATE)"}
	}
	for _, q := range before {
		must(db.ExecContext(ctx, q))
	}
	rows := must(db.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0"))
	names := must(rows.Columns())
	check(rows.Close())
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = table + "." + name
		if v, ok := set[name]; ok {
			values[i] = v
		}
	}
	copies := fmt.Sprintf(`WITH RECURSIVE numbers(i) AS
		(SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM numbers WHERE i < $2)
		INSERT INTO %s (%s) SELECT %s FROM numbers, %s WHERE %s`,
		table, strings.Join(names, ", "), strings.Join(values, ", "), table, where)
	for from := 0; from < n; from += 20_000 {
		must(db.ExecContext(ctx, copies, from, min(n, from+20_000)-1))
	}
	for _, q := range after {
		must(db.ExecContext(ctx, q))
	}
}

// pastID returns an SQL expression for an id that sorts before the ids of today. number is an SQL expression. series
// separates the ids of several multiplied tables.
func pastID(prefix string, series int, number string) string {
	return fmt.Sprintf("'%s_01a00000000000%d' || CAST(10000000000 + %s AS TEXT)", prefix, series, number)
}
