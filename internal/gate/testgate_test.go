package gate

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// testEngine is a SQLite engine that counts as shared with other processes. Tests can run code after a commit, block
// writes and make writes fail.
type testEngine struct {
	store.Engine
	ready         bool                         // the tables exist
	afterCommit   atomic.Pointer[func() error] // runs once; the commit returns its error
	blocksWrites  atomic.Bool                  // writes block until their context ends
	failingPrefix atomic.Pointer[string]       // statements with this prefix fail
}

// testConn is a connection of a testEngine. Its writes block or fail as the engine says.
type testConn struct {
	store.Conn
	*testEngine
}

func (c testConn) Exec(ctx context.Context, refused func(store.Fault) error, query string, args ...any) error {
	if c.blocksWrites.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if prefix := c.failingPrefix.Load(); prefix != nil && strings.HasPrefix(query, *prefix) {
		return store.Fault{Kind: store.FaultOther, Err: errors.New("write refused")}
	}
	return c.Conn.Exec(ctx, refused, query, args...)
}

func (c testConn) ExecCount(ctx context.Context, query string, args ...any) (int64, error) {
	if prefix := c.failingPrefix.Load(); prefix != nil && strings.HasPrefix(query, *prefix) {
		return 0, store.Fault{Kind: store.FaultOther, Err: errors.New("write refused")}
	}
	return c.Conn.ExecCount(ctx, query, args...)
}

func (s *testEngine) SingleProcess() bool { return !s.ready }

func (s *testEngine) Update(ctx context.Context, f func(store.Conn) error) error {
	err := s.Engine.Update(ctx, func(c store.Conn) error { return f(testConn{c, s}) })
	if after := s.afterCommit.Load(); err == nil && after != nil && s.afterCommit.CompareAndSwap(after, nil) {
		return (*after)()
	}
	return err
}

// newTestGate returns a gate with the agent agt_one and the tool send, which has the given effect class. The counter
// counts how often the handler ran.
func newTestGate(t *testing.T, effect reeve.Effect) (*Gate, *testEngine, *atomic.Int32) {
	t.Helper()
	ctx := t.Context()
	file, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(t.TempDir(), "gate.db")})
	if err != nil {
		t.Fatal(err)
	}
	e := &testEngine{Engine: file}
	db, err := store.Open(ctx, e, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	e.ready = true
	t.Cleanup(func() { _ = db.Close() })
	var sent atomic.Int32
	g := New(Config{DB: db, Log: slog.New(slog.DiscardHandler)})
	tool := reeve.Tool{ID: "send", Description: "Sends.", Effect: effect, Tier: reeve.SideEffecting, TimeoutMS: 1000,
		Verify: func(context.Context, *reeve.Invocation) (reeve.Outcome, any, error) {
			return reeve.NotApplied, nil, nil
		}}
	if effect != reeve.Verifiable {
		tool.Verify = nil
	}
	send := func(context.Context, struct{}) (string, error) {
		sent.Add(1)
		return "sent", nil
	}
	if err := g.Catalogue.AddTool(reeve.MustTool(tool, send)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Open(ctx), db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(ctx, "home", "Home"); err != nil {
			return err
		}
		return tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "agt_one", WorkspaceID: "home", Name: "one",
			Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()})
	})); err != nil {
		t.Fatal(err)
	}
	return g, e, &sent
}

// onNextCommit runs f after the next commit. The commit returns the error of f.
func (s *testEngine) onNextCommit(f func() error) { s.afterCommit.Store(&f) }
