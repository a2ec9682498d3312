package gate

import (
	"context"
	"errors"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// A caller that cancels a local call, which is rolled back, can make the call again with the same operation id.
func TestG12_RepeatAfterCancel(t *testing.T) {
	t.Parallel()
	g, _, _ := newTestGate(t, reeve.Keyed)
	ctx, cancel := context.WithCancel(t.Context())
	waits := reeve.Tool{ID: "waits", Description: "For tests.", Parameters: []byte(`{"type":"object"}`),
		Effect: reeve.Local, Tier: reeve.SideEffecting, TimeoutMS: 60_000,
		Handler: func(ctx context.Context, inv *reeve.Invocation) (any, error) {
			tx, err := store.TxFrom(ctx)
			if err == nil {
				err = tx.Chat().PutSessionFile(ctx, inv.Workspace, inv.Session, "f", []byte("written"))
			}
			if cancel != nil {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return "written", err
		}}
	if err := errors.Join(g.Catalogue.AddTool(waits), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context) (reeve.Result, error) {
		return g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "waits", Tools: []string{"waits"},
			Args: []byte("{}"), Operation: "key", Via: reeve.ViaGo})
	}
	res, err := call(ctx)
	if err != nil || res.Code != reeve.Canceled || res.OperationID != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	if x, err := g.Explain(t.Context(), "home", res.CallID); err != nil || x.Operation != nil {
		t.Errorf("%+v, %v", x, err)
	}
	cancel = nil
	for _, isReplay := range []bool{false, true} {
		if res, err := call(t.Context()); err != nil || res.State != reeve.Committed || res.Content != "written" ||
			res.Replayed != isReplay {
			t.Errorf("repeated call: %+v, %v", res, err)
		}
	}
}
