package host_test

import (
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// What is explained is what holds a call now: one that was approved, and that a budget has held since, waits for the
// budget and not for the policy.
func TestG26_ACallThatABudgetHoldsIsExplained(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		var g guarded
		var ran counter
		h := reevetest.StartWith(t, cfg, g.tool(), tool("keyed", reeve.Keyed, ran.handle))
		a := h.Agent("a", "guarded", "keyed")
		why := func(x reeve.Explanation, step string) string {
			for _, s := range x.Steps {
				if s.Name == step {
					return string(s.Verdict) + ": " + s.Why
				}
			}
			return ""
		}
		const policy, short = "privileged tools need a person's approval", "has too few calls left"
		parked := h.Call(a.ID, "guarded", nil)
		if x := explained(h, parked.CallID); why(x, "approval") != "waits: "+policy ||
			verdict(x, "budget") != reeve.Passed {
			t.Errorf("before anybody decides: %+v", x.Steps)
		}
		budget(h, "agent:"+a.ID, object{"limit": object{"calls": 1}, "on_exceed": "park"})
		h.Call(a.ID, "keyed", nil)
		first := decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		held := inbox(h).Approvals
		if len(held) != 1 || held[0].OperationID != parked.OperationID || !strings.Contains(held[0].Why, short) {
			t.Fatalf("the inbox has %+v", held)
		}
		x := explained(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "waits: "+
			held[0].Why || x.Approval.ID != held[0].ID || g.ran.count() != 0 {
			t.Errorf("while the budget holds it: %+v", x.Steps)
		}
		decide(h, held[0].ID, "approve")
		h.RunUntilIdle(t.Context())
		x = explained(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "passed: "+
			held[0].Why+"; approved by "+first.DecidedBy || x.Outcome != "The call ran and succeeded." ||
			g.ran.count() != 1 {
			t.Errorf("when it has run: %+v", x)
		}

		again := h.Call(a.ID, "guarded", nil) // which waits for both from the start
		if x := explained(h, again.CallID); verdict(x, "approval") != reeve.Waits ||
			verdict(x, "budget") != reeve.Waits {
			t.Errorf("%+v", x.Steps)
		}
		decide(h, again.ApprovalID, "deny")
		if x := explained(h, again.CallID); verdict(x, "approval") != reeve.Refused ||
			verdict(x, "budget") != reeve.NotReached {
			t.Errorf("%+v", x.Steps)
		}
	})
}

// Who may not call tools is told what the gate judges, and nothing that takes the tool to find out: by what a tool
// refuses, a file could be read one character after another.
func TestG26_AToolSaysNothingToAViewer(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		var asked counter
		nosy := tool("nosy", reeve.Keyed, asked.handle)
		nosy.Check = func(ctx context.Context, inv *reeve.Invocation) error {
			_,
				err := asked.handle(ctx, inv)
			return err
		}
		nosy.Categories = func(ctx context.Context, inv *reeve.Invocation) ([]string, error) {
			_, err := asked.handle(ctx, inv)
			return nil, err
		}
		nosy.Preview = func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
			_, err := asked.handle(ctx, inv)
			return reeve.Preview{Change: "x", Base: "b"}, err
		}
		h := reevetest.StartWith(t, cfg, nosy)
		h.Agent("a", "nosy", "file_edit", "file_write")
		h.Call("a", "file_write", object{"path": "/shared/h.txt", "content": "db: correct\n"})
		as := func(role string) []string {
			var made api.NewToken
			h.Want(201, &made, "POST", "/api/tokens", object{"name": role, "role": role})
			return []string{"Authorization", "Bearer " + made.Token}
		}
		viewer, member := as("viewer"), as("member")
		judge := func(who []string, c call) (x reeve.Explanation) {
			h.Want(200, &x, "POST", "/api/agents/a/calls/explain", c, who...)
			return x
		}
		edit := func(old string) call {
			return call{"tool": "file_edit", "args": object{"path": "/shared/h.txt", "old": old, "new": "~"}}
		}
		right, wrong := judge(viewer, edit("db: c")), judge(viewer, edit("db: q"))
		if right.Outcome != wrong.Outcome || !strings.Contains(right.Outcome, "checks: The call would run.") ||
			verdict(right, "preview") != reeve.NotReached || verdict(right, "budget") != reeve.Passed {
			t.Errorf("a viewer is told %+v\nand %+v", right, wrong)
		}
		if right, wrong := judge(member, edit("db: c")),
			judge(member, edit("db: q")); right.Outcome != "The call would run." ||
			!strings.Contains(wrong.Outcome, "does not occur") {
			t.Errorf("a member is told %q and %q", right.Outcome, wrong.Outcome)
		}
		for _, c := range []call{{"tool": "nosy"}, {"tool": "nosy", "base": "other"},
			{"tool": "nosy", "preview_only": true}} {
			x := judge(viewer, c)
			for _, step := range []string{"scope", "security", "preview"} {
				if verdict(x, step) != reeve.NotReached {
					t.Errorf("%v: %s: %+v", c, step, x.Steps)
				}
			}
		}
		if asked.count() != 0 {
			t.Errorf("the tool was asked %d times for a viewer", asked.count())
		}
		if judge(member, call{"tool": "nosy"}); asked.count() != 3 {
			t.Errorf("the tool was asked %d times for a member", asked.count())
		}
		h.Want(200, nil, "PATCH", "/api/agents/a", object{"policy": object{"tools": object{"nosy": "deny"}}})
		if x := judge(viewer, call{"tool": "nosy"}); verdict(x, "approval") != reeve.Refused ||
			!strings.HasPrefix(x.Outcome, "The call would be refused") {
			t.Errorf("what the gate refuses: %+v", x)
		}
	})
}
