package host_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // to hold the lock that keeps the server from writing

	"reeve"
	"reeve/reevetest"
)

// A request has left, and the store takes no writes: the caller is not told that nothing happened, and the running
// server records the outcome once it can.
func TestG12_AnOutcomeThatCannotBeRecordedIsOwed(t *testing.T) {
	t.Parallel()
	var file string
	var lock *sql.Conn
	h := reevetest.Start(t, tool("sends_once", reeve.Unsafe, func(ctx context.Context, _ *reeve.Invocation) (any,
		error) {
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = db.Close() })
		if lock, err = db.Conn(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		_, err = lock.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE")
		return "sent", err
	}))
	file = filepath.Join(h.Dir(), "reeve.db")
	a := h.Agent("sender", "sends_once")
	h.Want(200, nil, "PATCH", "/api/agents/"+a.ID,
		map[string]any{"policy": map[string]any{"tools": map[string]any{"sends_once": "allow"}}})
	res := h.Call(a.ID, "sends_once", map[string]any{})
	if res.State != reeve.Dispatched || res.Code != reeve.InProgress {
		t.Fatalf("%+v", res)
	}
	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	h.RunUntilIdle(t.Context())
	var op reeve.Operation
	h.Want(200, &op, "GET", "/api/operations/"+res.OperationID, nil)
	if op.State != reeve.Committed || op.ResultID == "" {
		t.Errorf("%+v", op)
	}
}
