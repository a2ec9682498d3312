// Package storetest is the conformance suite that every engine passes, and the way tests get a PostgreSQL database.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
)

// Key is a key that seals secrets, for tests.
var Key = []byte("0123456789abcdef0123456789abcdef")

// OpenPostgres opens a store on a PostgreSQL database of the test's own.
func OpenPostgres(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, postgres.Config{URL: PostgresURL(t)}, Key)
}

// Open opens a store on PostgreSQL and closes it with the test.
func Open(t testing.TB, cfg postgres.Config, key []byte) *store.DB {
	t.Helper()
	e, err := postgres.Open(context.Background(), cfg)
	must(t, err)
	db, err := store.Open(context.Background(), e, key)
	if err != nil {
		_ = e.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// update runs f and fails the test if it does not commit.
func update(t testing.TB, db *store.DB, f func(*store.Tx) error) {
	t.Helper()
	must(t, db.Update(t.Context(), f))
}

// view reads one thing.
func view[T any](t testing.TB, db *store.DB, f func(*store.Snap) (T, error)) T {
	t.Helper()
	var v T
	must(t, db.View(t.Context(), func(s *store.Snap) (err error) {
		v, err = f(s)
		return err
	}))
	return v
}

func wantCode(t testing.TB, err error, code reeve.Code) *reeve.Error {
	t.Helper()
	if got := reeve.CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
	return reeve.AsError(err)
}

func wantAs[T error](t testing.TB, err error) {
	t.Helper()
	var want T
	if !errors.As(err, &want) {
		t.Fatalf("got %v, want a %T", err, want)
	}
}

func equal[T comparable](t testing.TB, got, want T, what string, args ...any) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

// ids joins the ids of a list.
func ids[T any](list []T, id func(T) string) string {
	var s []string
	for _, v := range list {
		s = append(s, id(v))
	}
	return strings.Join(s, " ")
}

const ws = "ws_one"

// setUp makes two workspaces and an agent.
func setUp(t testing.TB, db *store.DB) reeve.Agent {
	t.Helper()
	a := reeve.Agent{ID: "agt_one", WorkspaceID: ws, Name: "one", Kind: "general", Lifecycle: reeve.AgentActive,
		Mode: reeve.Hybrid, Categories: []string{"general"}, CreatedAt: reeve.Now()}
	update(t, db, func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(t.Context(), ws, "One"); err != nil {
			return err
		}
		if _, err := tx.Agents().InsertWorkspace(t.Context(), "ws_two", "Two"); err != nil {
			return err
		}
		return tx.Agents().InsertAgent(t.Context(), a)
	})
	return a
}

// call is a call that has no result yet, and leaves no operation.
func call(id, thread string) store.Call {
	return store.Call{Operation: reeve.Operation{WorkspaceID: ws, AgentID: "agt_one", CallID: id, ThreadID: thread,
		Tool: "echo"}, Args: "{}", Request: []byte(`{"type":"tool_call"}`)}
}

// finished is a call that has its result, and leaves no operation.
func finished(id, thread, result string) store.Call {
	c := call(id, thread)
	c.Result = &store.CallResult{ID: result, Content: "done", Info: []byte(`{}`)}
	return c
}

// insertOperation writes a call that leaves an operation, whatever was changed in its workspace before.
func insertOperation(ctx context.Context, tx *store.Tx, o reeve.Operation) error {
	w, err := tx.Agents().GetWorkspace(ctx, o.WorkspaceID)
	if err != nil {
		return err
	}
	c := store.Call{Operation: o, Args: "{}", Request: []byte(`{"type":"tool_call"}`)}
	if o.ResultID != "" {
		c.Result = &store.CallResult{ID: o.ResultID, Content: "done", Info: []byte(`{}`)}
	}
	return tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: w.Revision})
}

func operation(id string, state reeve.State) reeve.Operation {
	return reeve.Operation{ID: id, WorkspaceID: ws, AgentID: "agt_one", CallID: "msg_" + id,
		ThreadID: "agent:session:s", Tool: "echo", Effect: reeve.Unsafe, State: state}
}

func tool(workspace, id string) reeve.Tool {
	return reeve.Tool{ID: id, WorkspaceID: workspace, Description: "It is " + id + ".",
		Parameters: []byte(`{"type":"object"}`)}.WithDefaults()
}

// Exercise runs the conformance suite. Each test opens a store of its own.
func Exercise(t *testing.T, open func(t *testing.T) *store.DB) {
	for _, group := range []map[string]func(*testing.T, *store.DB){catalogue, ledger, calls, work, keeping,
		transactions, journal, wakes, timers, states, proposals, automations, branches, mail, notes} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, open(t))
			})
		}
	}
}
