// Package storetest tests storage engines and provides databases for tests.
//
// Conformance is the suite that every engine must pass. Migration and ForeignTables test how a store opens databases
// of other versions and of other programs. Benchmark measures the transaction that records a call.
//
// PostgresURL, EmptyPostgresURL and SQLiteFile create databases that are deleted when the test ends. A test that needs
// PostgreSQL fails if no server is configured. PgBouncer and Hang place a pooler or a faulty proxy between the test and
// the server.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/postgres"
)

// Key is the key that encrypts secrets in tests.
var Key = []byte("0123456789abcdef0123456789abcdef")

// OpenPostgres opens a store on a new PostgreSQL database.
func OpenPostgres(t testing.TB) *store.DB {
	t.Helper()
	return Open(t, postgres.Config{URL: PostgresURL(t)}, Key)
}

// Open opens a store on PostgreSQL and closes it when the test ends.
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

// mustGet returns a function that fails the test if err is not nil and returns v otherwise.
func mustGet[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// update runs f in a transaction and fails the test if the transaction does not commit.
func update(t testing.TB, db *store.DB, f func(*store.Tx) error) {
	t.Helper()
	must(t, db.Update(t.Context(), f))
}

// view returns the result of f, which runs on a snapshot.
func view[T any](t testing.TB, db *store.DB, f func(*store.Snap) (T, error)) T {
	t.Helper()
	var v T
	must(t, db.View(t.Context(), func(s *store.Snap) (err error) {
		v, err = f(s)
		return err
	}))
	return v
}

// wantCode fails the test if err does not have the code. It returns err as a *reeve.Error.
func wantCode(t testing.TB, err error, code reeve.Code) *reeve.Error {
	t.Helper()
	if got := reeve.CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
	return reeve.AsError(err)
}

// wantAs fails the test if err is not a T.
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

// joinIDs returns the ids of a list, separated by spaces.
func joinIDs[T any](list []T, id func(T) string) string {
	var s []string
	for _, v := range list {
		s = append(s, id(v))
	}
	return strings.Join(s, " ")
}

const ws = "ws_one"

// setUp inserts the workspaces ws and ws_two, and returns an agent that it inserts in ws.
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

// newCall returns a call without a result and without an operation.
func newCall(id, thread string) store.Call {
	return store.Call{Operation: reeve.Operation{WorkspaceID: ws, AgentID: "agt_one", CallID: id, ThreadID: thread,
		Tool: "echo"}, Args: "{}", Request: []byte(`{"type":"tool_call"}`)}
}

// completedCall returns a call with a result and without an operation.
func completedCall(id, thread, result string) store.Call {
	c := newCall(id, thread)
	c.Result = &store.CallResult{ID: result, Content: "done", Info: []byte(`{}`)}
	return c
}

// insertOperation inserts a call with operation o, at the current revision of the workspace.
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

// newOperation returns an operation of agt_one in the given state.
func newOperation(id string, state reeve.State) reeve.Operation {
	return reeve.Operation{ID: id, WorkspaceID: ws, AgentID: "agt_one", CallID: "msg_" + id,
		ThreadID: "agent:session:s", Tool: "echo", Effect: reeve.Unsafe, State: state}
}

// newTool returns a tool with default settings.
func newTool(workspace, id string) reeve.Tool {
	return reeve.Tool{ID: id, WorkspaceID: workspace, Description: "Description of " + id,
		Parameters: []byte(`{"type":"object"}`)}.WithDefaults()
}

// runConcurrently runs f n times concurrently and returns the errors.
func runConcurrently(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	all.Wait()
	return errs
}

// firstError returns the first error that is not nil.
func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// wantOneSuccess checks that exactly one of errs is nil and that all others have the given code.
func wantOneSuccess(t testing.TB, errs []error, others reeve.Code) {
	t.Helper()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			wantCode(t, err, others)
		}
	}
	equal(t, won, 1, "successes")
}

// Conformance runs the conformance suite. Each test opens its own store.
func Conformance(t *testing.T, open func(t *testing.T) *store.DB) {
	for _, group := range []map[string]func(*testing.T, *store.DB){catalogue, ledger, calls, claims, approvals,
		budgets, credentials, payloads, transactions, journal, wakes, runs, timers, states,
		modelAnswers, proposals, automations,
		branches, mail, notes, changes, visibility} {
		for name, test := range group {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, open(t))
			})
		}
	}
}
