package host_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

// What is explained is what holds a call now: one that was approved, and that a budget has held since, waits for the budget and not for the policy.
func TestG26_ACallThatABudgetHoldsIsExplained(t *testing.T) {
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
		if x := explained(h, parked.CallID); why(x, "approval") != "waits: "+policy || verdict(x, "budget") != reeve.Passed {
			t.Errorf("before anybody decides: %+v", x.Steps)
		}
		budget(h, "agent:"+a.ID, object{"limit": object{"calls": 1}, "on_exceed": "park"})
		h.Call(a.ID, "keyed", nil)
		first := decide(h, parked.ApprovalID, "approve")
		h.Settle(t.Context())
		held := inbox(h).Approvals
		if len(held) != 1 || held[0].OperationID != parked.OperationID || !strings.Contains(held[0].Why, short) {
			t.Fatalf("the inbox has %+v", held)
		}
		x := explained(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "waits: "+held[0].Why || x.Approval.ID != held[0].ID || g.ran.count() != 0 {
			t.Errorf("while the budget holds it: %+v", x.Steps)
		}
		decide(h, held[0].ID, "approve")
		h.Settle(t.Context())
		x = explained(h, parked.CallID)
		if why(x, "approval") != "passed: "+policy+"; approved by "+first.DecidedBy || why(x, "budget") != "passed: "+held[0].Why+"; approved by "+first.DecidedBy || x.Outcome != "It ran and succeeded." || g.ran.count() != 1 {
			t.Errorf("when it has run: %+v", x)
		}

		again := h.Call(a.ID, "guarded", nil) // which waits for both from the start
		if x := explained(h, again.CallID); verdict(x, "approval") != reeve.Waits || verdict(x, "budget") != reeve.Waits {
			t.Errorf("%+v", x.Steps)
		}
		decide(h, again.ApprovalID, "deny")
		if x := explained(h, again.CallID); verdict(x, "approval") != reeve.Refused || verdict(x, "budget") != reeve.NotReached {
			t.Errorf("%+v", x.Steps)
		}
	})
}
