package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Every call stores its decision trace, both a call that ends at once and one that waits.
func TestG26_EveryCallStoresItsDecisionTrace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g, _, _ := newTestGate(t, reeve.Keyed)
	local := func(id string, awaits bool, answer error) reeve.Tool {
		return reeve.Tool{ID: id, Description: "For tests.", Parameters: []byte(`{"type":"object"}`),
			Effect: reeve.Local, Tier: reeve.SideEffecting, AwaitsOutcome: awaits, TimeoutMS: 3_600_000,
			Handler: func(context.Context, *reeve.Invocation) (any, error) { return "done", answer }}
	}
	if err := errors.Join(g.Catalogue.AddTool(local("at_once", false, nil)),
		g.Catalogue.AddTool(local("waits", true, reeve.Errorf(reeve.InProgress, "begun"))), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"at_once", "waits"} {
		for i := range 4 {
			op := fmt.Sprintf("%s_%d", tool, i)
			if _, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: tool, Tools: []string{tool},
				Args: []byte("{}"), Operation: op, Via: reeve.ViaGo}); err != nil {
				t.Fatal(err)
			}
			var info reeve.ActionInfo
			if err := g.DB.View(ctx, func(s *store.Snap) error {
				o, err := s.Ledger().GetOperation(ctx, "home", op)
				if err != nil {
					return err
				}
				c, err := s.Ledger().GetCall(ctx, "home", o.CallID)
				if err == nil {
					info, err = c.RequestInfo()
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if x, err := g.Explain(ctx, "home", op); err != nil || len(info.Trace) != len(steps) ||
				len(x.Steps) <= len(steps) {
				t.Errorf("%s: %d steps are stored, %d explained (%v)", op, len(info.Trace), len(x.Steps), err)
			}
		}
	}
}

// A call of a tool whose name is not valid text is refused and recorded like a call of any unknown tool.
func TestG26_ToolNameIsNotText(t *testing.T) {
	t.Parallel()
	g, _, _ := newTestGate(t, reeve.Keyed)
	res, err := g.Call(t.Context(), reeve.Call{Workspace: "home", Agent: "agt_one", Tool: "no\x00such\xff",
		Args: []byte("{}"), Via: reeve.ViaGo})
	if reeve.CodeOf(err) != reeve.NotFound {
		t.Fatalf("%+v, %v", res, err)
	}
	if x, err := g.Explain(t.Context(), "home", res.CallID); err != nil || x.Operation != nil {
		t.Errorf("%+v, %v", x, err)
	}
}
