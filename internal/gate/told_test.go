package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// What the gate says of calls again and again is kept once, and told of each: of those that are over at once, and of those that wait.
func TestG26_WhatIsSaidOfManyCallsIsToldOfEach(t *testing.T) {
	ctx := t.Context()
	g, _, _ := sender(t, reeve.Keyed)
	local := func(id string, awaits bool, answer error) reeve.Tool {
		return reeve.Tool{ID: id, Description: "For tests.", Parameters: []byte(`{"type":"object"}`), Effect: reeve.Local, Tier: reeve.SideEffecting, Awaits: awaits, TimeoutMS: 3_600_000,
			Handler: func(context.Context, *reeve.Invocation) (any, error) { return "done", answer }}
	}
	if err := errors.Join(g.AddTool(local("at_once", false, nil)), g.AddTool(local("waits", true, reeve.Errorf(reeve.InProgress, "begun"))), g.Open(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"at_once", "waits"} {
		for i := range 4 {
			op := fmt.Sprintf("%s_%d", tool, i)
			if _, err := g.Call(ctx, reeve.Call{Workspace: "home", Agent: "agt_one", Tool: tool, Tools: []string{tool}, Args: []byte("{}"), Operation: op, Via: reeve.ViaGo}); err != nil {
				t.Fatal(err)
			}
			var info reeve.ActionInfo
			if err := g.DB.View(ctx, func(s *store.Snap) error {
				o, err := s.GetOperation(ctx, "home", op)
				if err != nil {
					return err
				}
				m, err := s.GetMessage(ctx, "home", o.CallID)
				return errors.Join(err, json.Unmarshal(m.Metadata, &info))
			}); err != nil {
				t.Fatal(err)
			}
			if x, err := g.Explain(ctx, "home", op); err != nil || len(info.Trail) != len(steps) || len(x.Steps) <= len(steps) {
				t.Errorf("%s: %d steps are told, %d explained (%v)", op, len(info.Trail), len(x.Steps), err)
			}
		}
	}
}

// Of a call of which it is lost what the gate said, the explanation says so, and nothing of steps of which nobody knows.
func TestG26_WhatTheGateSaidIsLost(t *testing.T) {
	lost := []reeve.Step{{Name: "gate", Verdict: reeve.NotReached, Why: "lost"}}
	if got := fill(lost); len(got) != 1 || got[0] != lost[0] {
		t.Errorf("%+v", got)
	}
	if got := fill([]reeve.Step{{Name: steps[0].name}}); len(got) != len(steps) || got[0].Verdict != reeve.Passed || got[1].Verdict != reeve.NotReached {
		t.Errorf("%+v", got)
	}
}
