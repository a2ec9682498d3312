package gate

import (
	"context"
	"errors"
	"testing"

	"reeve"
)

// A local tool that calls another tool while its transaction is open gets an error. Otherwise it would deadlock.
func TestG08_LocalToolCallsAnother(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	call := func(ctx context.Context, tool string) (reeve.Result, error) {
		return g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: tool, Tools: []string{tool},
			Args: []byte("{}"), Via: reeve.ViaGo})
	}
	local := func(id string, do func(context.Context) error) reeve.Tool {
		return reeve.Tool{ID: id, Description: "For tests.", Parameters: []byte(`{"type":"object"}`),
			Effect: reeve.Local, Tier: reeve.SideEffecting, TimeoutMS: 60_000,
			Handler: func(ctx context.Context, _ *reeve.Invocation) (any, error) { return "done", do(ctx) }}
	}
	var within error
	outer := func(ctx context.Context) error { _, within = call(ctx, "inner"); return nil }
	if err := errors.Join(g.Catalogue.AddTool(local("inner", func(context.Context) error { return nil })),
		g.Catalogue.AddTool(local("outer", outer)), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"outer", "inner"} {
		within = reeve.Errorf(reeve.Unsupported, "not called")
		if res, err := call(ctx, tool); err != nil || res.IsError || reeve.CodeOf(within) != reeve.Unsupported {
			t.Errorf("%s: %+v, %v; nested call: %v", tool, res, err, within)
		}
	}
}
