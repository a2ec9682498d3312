package gate

import (
	"context"
	"errors"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// The policy hash of a call depends on the call's own list of tools.
func TestG15_PolicyHashDependsOnTools(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	tool := reeve.Tool{ID: "note", Description: "For tests.", Parameters: []byte(`{"type":"object"}`),
		Effect: reeve.Local, Tier: reeve.SideEffecting, TimeoutMS: 1000,
		Handler: func(context.Context, *reeve.Invocation) (any, error) { return "done", nil }}
	if err := errors.Join(g.Catalogue.AddTool(tool), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	policy := func(op string, tools ...string) (hash string) {
		if _, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "note", Tools: tools,
			Args: []byte("{}"), Operation: op, Via: reeve.ViaGo}); err != nil {
			t.Fatal(err)
		}
		if err := g.DB.View(ctx, func(s *store.Snap) error {
			o, err := s.Ledger().GetOperation(ctx, "home", op)
			hash = o.Policy
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	one, two, again := policy("op_1", "note"), policy("op_2", "note", "other"), policy("op_3", "note")
	if one == two || one != again {
		t.Errorf("%s with one tool, %s with two, %s with one again", one, two, again)
	}
}
