package gate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An explanation names what holds the call now: a call that was approved and then parked by a budget waits for the
// budget, not for the policy.
func TestG26_ACallThatABudgetHoldsIsExplained(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		var g guardedTool
		var ran kit.Counter
		h := reevetest.StartWith(t, cfg, g.tool(), kit.Tool("keyed", reeve.Keyed, ran.Handle))
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
		if x := getExplanation(h, parked.CallID); why(x, "approval") != "waits: "+policy ||
			findVerdict(x, "budget") != reeve.Passed {
			t.Errorf("before anybody decides: %+v", x.Steps)
		}
		kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 1}, "on_exceed": "park"})
		h.Call(a.ID, "keyed", nil)
		first := kit.Decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		held := kit.GetInbox(h).Approvals
		if len(held) != 1 || held[0].OperationID != parked.OperationID || !strings.Contains(held[0].Why, short) {
			t.Fatalf("the inbox has %+v", held)
		}
		x := getExplanation(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "waits: "+
			held[0].Why || x.Approval.ID != held[0].ID || g.ran.Count() != 0 {
			t.Errorf("while the budget holds it: %+v", x.Steps)
		}
		kit.Decide(h, held[0].ID, "approve")
		h.RunUntilIdle(t.Context())
		x = getExplanation(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "passed: "+
			held[0].Why+"; approved by "+first.DecidedBy || x.Outcome != "The call ran and succeeded." ||
			g.ran.Count() != 1 {
			t.Errorf("when it has run: %+v", x)
		}

		again := h.Call(a.ID, "guarded", nil) // which waits for both from the start
		if x := getExplanation(h, again.CallID); findVerdict(x, "approval") != reeve.Waits ||
			findVerdict(x, "budget") != reeve.Waits {
			t.Errorf("%+v", x.Steps)
		}
		kit.Decide(h, again.ApprovalID, "deny")
		if x := getExplanation(h, again.CallID); findVerdict(x, "approval") != reeve.Refused ||
			findVerdict(x, "budget") != reeve.NotReached {
			t.Errorf("%+v", x.Steps)
		}
	})
}

// A user who may not call tools gets the decision of the gate, but nothing that needs the tool's code. Otherwise
// refusals of a tool would reveal the content of a file.
func TestG26_ExplanationForAViewerRunsNoToolCode(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		var asked kit.Counter
		nosy := kit.Tool("nosy", reeve.Keyed, asked.Handle)
		nosy.Check = func(ctx context.Context, inv *reeve.Invocation) error {
			_, err := asked.Handle(ctx, inv)
			return err
		}
		nosy.Categories = func(ctx context.Context, inv *reeve.Invocation) ([]string, error) {
			_, err := asked.Handle(ctx, inv)
			return nil, err
		}
		nosy.Preview = func(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
			_, err := asked.Handle(ctx, inv)
			return reeve.Preview{Change: "x", Base: "b"}, err
		}
		h := reevetest.StartWith(t, cfg, nosy)
		h.Agent("a", "nosy", "file_edit", "file_write")
		h.Call("a", "file_write", kit.Object{"path": "/shared/h.txt", "content": "db: correct\n"})
		as := func(role string) []string {
			var made api.NewToken
			h.Want(201, &made, "POST", "/api/tokens", kit.Object{"name": role, "role": role})
			return []string{"Authorization", "Bearer " + made.Token}
		}
		viewer, member := as("viewer"), as("member")
		judge := func(who []string, c kit.Call) (x reeve.Explanation) {
			h.Want(200, &x, "POST", "/api/agents/a/calls/explain", c, who...)
			return x
		}
		edit := func(old string) kit.Call {
			return kit.Call{"tool": "file_edit", "args": kit.Object{"path": "/shared/h.txt", "old": old, "new": "~"}}
		}
		right, wrong := judge(viewer, edit("db: c")), judge(viewer, edit("db: q"))
		if right.Outcome != wrong.Outcome || !strings.Contains(right.Outcome, "checks: The call would run.") ||
			findVerdict(right, "preview") != reeve.NotReached || findVerdict(right, "budget") != reeve.Passed {
			t.Errorf("a viewer is told %+v\nand %+v", right, wrong)
		}
		if right, wrong := judge(member, edit("db: c")), judge(member, edit("db: q")); right.Outcome != "The call would run." ||
			!strings.Contains(wrong.Outcome, "does not occur") {
			t.Errorf("a member is told %q and %q", right.Outcome, wrong.Outcome)
		}
		for _, c := range []kit.Call{{"tool": "nosy"}, {"tool": "nosy", "base": "other"},
			{"tool": "nosy", "preview_only": true}} {
			x := judge(viewer, c)
			for _, step := range []string{"scope", "security", "preview"} {
				if findVerdict(x, step) != reeve.NotReached {
					t.Errorf("%v: %s: %+v", c, step, x.Steps)
				}
			}
		}
		if asked.Count() != 0 {
			t.Errorf("the tool was asked %d times for a viewer", asked.Count())
		}
		if judge(member, kit.Call{"tool": "nosy"}); asked.Count() != 3 {
			t.Errorf("the tool was asked %d times for a member", asked.Count())
		}
		h.Want(200, nil, "PATCH", "/api/agents/a",
			kit.Object{"policy": kit.Object{"tools": kit.Object{"nosy": "deny"}}})
		if x := judge(viewer, kit.Call{"tool": "nosy"}); findVerdict(x, "approval") != reeve.Refused ||
			!strings.HasPrefix(x.Outcome, "The call would be refused") {
			t.Errorf("what the gate refuses: %+v", x)
		}
	})
}

// findVerdict returns the verdict of a step.
func findVerdict(x reeve.Explanation, step string) reeve.Verdict {
	for _, s := range x.Steps {
		if s.Name == step {
			return s.Verdict
		}
	}
	return ""
}

func TestG26_APastCallIsExplained(t *testing.T) {
	t.Parallel()
	var g guardedTool
	var ran kit.Counter
	h := reevetest.StartWith(t, kit.FastConfig(t), g.tool(), kit.Tool("keyed", reeve.Keyed, ran.Handle),
		kit.Tool("long", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return strings.Repeat("x", 20_000), nil
		}),
		kit.Tool("fails", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, fmt.Errorf("no luck")
		}),
		kit.Tool("lost", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) { panic("boom") }))
	a := h.Agent("a", "guarded", "keyed", "long", "fails", "lost")
	ok := h.Call(a.ID, "keyed", nil)
	for _, id := range []string{ok.CallID, ok.OperationID} { // by either id
		if x := getExplanation(h, id); x.Outcome != "The call ran and succeeded." || x.Operation == nil ||
			x.Operation.State != reeve.Committed || x.Hypothetical ||
			findVerdict(x, "invoke") != reeve.Passed || findVerdict(x, "record") != reeve.Passed {
			t.Errorf("%+v", x)
		}
	}
	if x := getExplanation(h, h.Call(a.ID, "long", nil).CallID); !strings.Contains(fmt.Sprint(x.Steps),
		"truncated from 20000 bytes") {
		t.Errorf("%+v", x)
	}
	if x := getExplanation(h, h.Call(a.ID, "fails", nil).CallID); x.Outcome != "The call ran and failed: no luck" {
		t.Errorf("%+v", x)
	}
	_, p, _ := kit.TryCall(h, a.ID, kit.Call{"tool": "keyed", "args": 3})
	if x := getExplanation(h, p.CallID); findVerdict(x, "arguments") != reeve.Refused ||
		!strings.Contains(x.Outcome, "refused") || findVerdict(x, "capability") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	parked := h.Call(a.ID, "guarded", nil)
	if x := getExplanation(h, parked.CallID); findVerdict(x, "approval") != reeve.Waits || x.Approval == nil ||
		x.Approval.ID != parked.ApprovalID || !strings.Contains(x.Outcome, "parked") {
		t.Errorf("%+v", x)
	}
	kit.Decide(h, parked.ApprovalID, "deny")
	if x := getExplanation(h, parked.CallID); findVerdict(x, "approval") != reeve.Refused ||
		findVerdict(x, "invoke") != reeve.NotReached || !strings.Contains(x.Outcome, "denied") {
		t.Errorf("%+v", x)
	}
	approved := h.Call(a.ID, "guarded", nil)
	kit.Decide(h, approved.ApprovalID, "approve")
	h.RunUntilIdle(t.Context())
	if x := getExplanation(h, approved.OperationID); x.Approval == nil || x.Approval.State != reeve.ApprovalApproved ||
		x.Outcome != "The call ran and succeeded." {
		t.Errorf("%+v", x)
	}
	shown, _, _ := kit.TryCall(h, a.ID, kit.Call{"tool": "guarded", "preview_only": true})
	if x := getExplanation(h, shown.CallID); !strings.Contains(x.Outcome, "changed nothing") ||
		findVerdict(x, "invoke") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	lost := h.Call(a.ID, "lost", nil)
	if x := getExplanation(h, lost.CallID); !strings.Contains(x.Outcome, "unknown") || findVerdict(x, "invoke") != reeve.Waits {
		t.Errorf("%+v", x)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+lost.OperationID+"/resolve",
		map[string]any{"resolution": "happened"})
	if x := getExplanation(h, lost.CallID); !strings.Contains(x.Outcome, "confirmed") {
		t.Errorf("%+v", x)
	}
	h.Want(http.StatusNotFound, nil, "GET", "/api/calls/nope/explanation", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	h.Want(http.StatusNotFound, nil, "GET", "/api/calls/"+ok.CallID+"/explanation", nil, "X-Workspace-Id", "other")
}

// A hypothetical call is decided by the current rules. Nothing is executed or written.
func TestG26_HypotheticalCallIsExplainedAndNotMade(t *testing.T) {
	t.Parallel()
	var w observedTool
	var g guardedTool
	h := reevetest.Start(t, w.tool("watched"), g.tool())
	a := h.Agent("a", "watched", "guarded")
	judge := func(c kit.Call, headers ...string) reeve.Explanation {
		t.Helper()
		var x reeve.Explanation
		h.Want(http.StatusOK, &x, "POST", "/api/agents/a/calls/explain", c, headers...)
		checkSteps(h, x)
		if !x.Hypothetical || findVerdict(x, "record") != reeve.NotReached {
			t.Errorf("%+v", x)
		}
		return x
	}
	for _, c := range []struct {
		call kit.Call
		step string
		said string
	}{
		{kit.Call{"tool": "nope"}, "lookup", "refused"},
		{kit.Call{"tool": "read_file"}, "attachment", "refused"},
		{kit.Call{"tool": "watched", "args": map[string]any{"x": 1}}, "arguments", "refused"},
		{kit.Call{"tool": "watched"}, "scope", "refused"},
		{kit.Call{"tool": "guarded"}, "", "wait for a person"},
	} {
		x := judge(c.call)
		if (c.step != "" && findVerdict(x, c.step) != reeve.Refused) || !strings.Contains(x.Outcome, c.said) {
			t.Errorf("%v: %+v", c.call, x)
		}
	}
	kit.UpdateAgent(h, a, map[string]any{"categories": []string{w.useCategory(h, "work")}}) // seen at once
	if x := judge(kit.Call{"tool": "watched"}); x.Outcome != "The call would run." ||
		findVerdict(x, "budget") != reeve.Passed ||
		findVerdict(x, "invoke") != reeve.NotReached {
		t.Errorf("%+v", x)
	}
	if w.handler.Load() != 0 || g.ran.Count() != 0 || len(kit.ListOperations(h)) != 0 ||
		len(kit.ListThread(h, a.ID, "")) != 0 ||
		len(kit.GetInbox(h).Approvals) != 0 {
		t.Error("something was done")
	}
	h.Call(a.ID, "watched", nil, "Idempotency-Key", "k")
	if x := judge(kit.Call{"tool": "watched"}, "Idempotency-Key", "k"); !strings.Contains(x.Outcome, "stored result") {
		t.Errorf("%+v", x)
	}
	if x := judge(kit.Call{"tool": "watched", "args": map[string]any{"n": 1}}, "Idempotency-Key", "k"); findVerdict(x,
		"idempotency") != reeve.Refused {
		t.Errorf("%+v", x)
	}
}
