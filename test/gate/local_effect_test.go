package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Effect, operation, messages and notification are committed together. If that fails, only the record of the failure
// exists.
func TestG08_LocalEffectAndRecordAreOne(t *testing.T) {
	t.Parallel()
	var kept *store.Tx
	tools := []reeve.Tool{kit.Tool("put", reeve.Local, putFile(nil)),
		kit.Tool("put_fail", reeve.Local,
			putFile(func(context.Context, *store.Tx, *reeve.Invocation) error { return errors.New("changed my mind") })),
		kit.Tool("put_panic", reeve.Local,
			putFile(func(context.Context, *store.Tx, *reeve.Invocation) error { panic("boom") })),
		kit.Tool("put_careless", reeve.Local, putFile(func(ctx context.Context, tx *store.Tx, _ *reeve.Invocation) error {
			// ignores the error
			_ = tx.Agents().InsertAgent(ctx, reeve.Agent{ID: "x", WorkspaceID: "no such workspace", Name: "x",
				Config: json.RawMessage("{}")})
			return nil
		})),
		kit.Tool("put_keep", reeve.Local,
			putFile(func(_ context.Context, tx *store.Tx, _ *reeve.Invocation) error { kept = tx; return nil }))}
	h := reevetest.Start(t, tools...)
	for _, c := range []struct {
		tool  string
		state reeve.State
	}{{"put_fail", reeve.Failed}, {"put_panic", reeve.Failed}, {"put_careless", reeve.Failed}, {"put", reeve.Committed},
		{"put_keep", reeve.Committed}} {
		a := h.Agent("agent-"+c.tool, c.tool, "read_file")
		res := h.Call(a.ID, c.tool, nil, "Idempotency-Key", "k")
		if res.State != c.state || res.IsError != (c.state == reeve.Failed) {
			t.Errorf("%s: %+v", c.tool, res)
		}
		if len(res.Changed) > 0 != (c.state == reeve.Committed) {
			t.Errorf("%s notified %+v", c.tool, res.Changed)
		}
		op := kit.GetOperation(h, res.OperationID)
		p := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID]
		if op.State != c.state || op.CallID != p[0].ID || op.ResultID != p[1].ID || op.Effect != reeve.Local {
			t.Errorf("%s: %+v", c.tool, op)
		}
		if hasFile(h, a.ID) != (c.state == reeve.Committed) {
			t.Errorf("%s: the effect is there: %v", c.tool, hasFile(h, a.ID))
		}
		if again := h.Call(a.ID, c.tool, nil, "Idempotency-Key", "k"); !again.Replayed || again.State != c.state {
			t.Errorf("%s again: %+v", c.tool, again)
		}
	}
	if err := kept.Chat().PutSessionFile(t.Context(), "default", "s", "/late", nil); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a transaction that a handler kept still writes: %v", err)
	}
}

// A commit that fails leaves neither the effect nor a part of the record.
func TestG08_AnAbandonedCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	var broken atomic.Bool
	cfg.OnFault.OnBefore = func() {
		if broken.Load() {
			panic("the power fails")
		}
	}
	h := reevetest.StartWith(t, cfg, kit.Tool("put", reeve.Local, putFile(nil)))
	a := h.Agent("a", "put", "read_file")
	broken.Store(true)
	func() {
		defer func() { _ = recover() }()
		if res, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "put"}); err == nil {
			t.Errorf("%+v without a commit", res)
		}
	}()
	broken.Store(false)
	if n := len(kit.ListThread(h, a.ID, "")); n != 0 || len(kit.ListOperations(h)) != 0 || hasFile(h, a.ID) {
		t.Errorf("%d messages, %d operations", n, len(kit.ListOperations(h)))
	}
	if res := h.Call(a.ID, "put", nil); res.State != reeve.Committed || !hasFile(h, a.ID) {
		t.Errorf("%+v after the power came back", res)
	}
}
