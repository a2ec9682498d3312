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
	"reeve/internal/automation"
	"reeve/internal/gate"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
	"reeve/internal/store/sqlite"
	"reeve/toolbox/files"
)

const (
	workspace = "bench"
	agentName = "bench"
)

// world is a store with a gate before it, an agent, and the tools that calls are made with: the real ones.
type world struct {
	engine store.Engine
	db     *store.DB
	gate   *gate.Gate
	items  *automation.Items // the gate's item rule
	agent  string
	tool   string // what a step calls: write_file, or step, which tells nobody
	rest   func() error
}

// engines are what everything is measured on. Both as the product opens them: SQLite with a full sync per commit, PostgreSQL
// as its server is set (make bench sets fsync on).
var engines = []struct {
	name string
	open func(ctx context.Context, c config, name string) (store.Engine, error)
}{
	{"SQLite", func(ctx context.Context, c config, name string) (store.Engine, error) {
		return sqlite.Open(ctx, sqlite.Config{File: filepath.Join(c.dir, name+".db")})
	}},
	{"PostgreSQL", func(ctx context.Context, _ config, name string) (store.Engine, error) {
		u, err := freshDatabase(ctx, name)
		if err != nil {
			return nil, err
		}
		return postgres.Open(ctx, postgres.Config{URL: u})
	}},
}

func postgresServer() string { return os.Getenv("REEVE_TEST_POSTGRES") }

// freshDatabase makes an empty database on the throwaway server.
func freshDatabase(ctx context.Context, name string) (string, error) {
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

// newWorld puts a gate on an engine and makes the workspace and its agent.
func newWorld(ctx context.Context, e store.Engine, more ...reeve.Tool) (*world, error) {
	w, err := open(ctx, e, more)
	if err != nil {
		return nil, err
	}
	return w, w.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.InsertWorkspace(ctx, workspace, "Bench"); err != nil {
			return err
		}
		w.agent = tx.NewID(reeve.PrefixAgent)
		return tx.InsertAgent(ctx, reeve.Agent{ID: w.agent, WorkspaceID: workspace, Name: agentName, Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
	})
}

// reopenWorld puts a gate on an engine whose workspace is there.
func reopenWorld(ctx context.Context, e store.Engine) (*world, error) {
	w, err := open(ctx, e, nil)
	if err != nil {
		return nil, err
	}
	return w, w.db.View(ctx, func(s *store.Snap) error {
		a, err := s.GetAgent(ctx, workspace, agentName)
		w.agent = a.ID
		return err
	})
}

func open(ctx context.Context, e store.Engine, more []reeve.Tool) (w *world, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	db, err := store.Open(ctx, e, make([]byte, 32))
	if err != nil {
		return nil, err
	}
	items := automation.NewItems()
	w = &world{engine: e, db: db, tool: "write_file", items: items,
		gate: gate.New(gate.Config{DB: db, Log: slog.New(slog.DiscardHandler), ItemRule: items})}
	session := files.Session{DB: db}
	for _, t := range append(append(session.Tools(), quietStep()), more...) {
		if err := w.gate.Catalogue.AddTool(t); err != nil {
			return nil, err
		}
	}
	if err := w.gate.Open(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// serve runs the gate's loop, as a server does, until the world is closed. While it runs, goroutines that handlers ran on are used again.
func (w *world) serve(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.gate.Run(ctx) }()
	w.rest = func() error { stop(); return <-ended }
}

func (w *world) close() error {
	if w.rest == nil {
		return w.db.Close()
	}
	return errors.Join(w.rest(), w.db.Close())
}

// content is what a step writes: 200 bytes.
var content = strings.Repeat("what a step found out, ", 9)[:200]

// path is one of a few files per session, so that steps both add and replace.
func path(i int) string { return fmt.Sprintf("/steps/%d.txt", i%50) }

// step is what a step is told.
type step struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// quietStep is write_file without its notifications: a step of a workflow, whose effect is one row and which nobody watches, as
// a step of River's.
func quietStep() reeve.Tool {
	return reeve.MustTool(reeve.Tool{ID: "step", Description: "A step of a workflow.", Effect: reeve.Local, TimeoutMS: 10_000},
		func(ctx context.Context, in step) (string, error) {
			tx, err := store.TxFrom(ctx)
			if err != nil {
				return "", err
			}
			inv := reeve.InvocationFrom(ctx)
			return "done", tx.PutSessionFile(ctx, inv.Workspace, inv.Session, in.Path, []byte(in.Content))
		})
}

// step makes one gated local call, whose effect is one row.
func (w *world) step(ctx context.Context, session string, i int) (reeve.Result, error) {
	args, err := json.Marshal(step{path(i), content})
	if err != nil {
		return reeve.Result{}, err
	}
	res, err := w.gate.Call(ctx, reeve.Call{Workspace: workspace, Agent: w.agent, Tool: w.tool, Tools: []string{w.tool}, Args: args, Session: session, Via: reeve.ViaGo})
	if err == nil && (res.IsError || res.State != reeve.Committed) {
		err = fmt.Errorf("the call came to %s: %s", res.State, res.Message)
	}
	return res, err
}

// gated is the lane of gated calls.
func (w *world) gated(n int) lane {
	return callers(n, func(ctx context.Context, caller, i int) error {
		_, err := w.step(ctx, fmt.Sprintf("gated-%d-of-%d", caller, n), i)
		return err
	})
}
