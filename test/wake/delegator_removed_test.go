package wake_test

import (
	"context"
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// forEachRemoval runs a test for each way to end an agent, on each engine.
func forEachRemoval(t *testing.T, f func(t *testing.T, engine, how string,
	end func(h *reevetest.Host, a reeve.Agent))) {
	for _, engine := range []string{"sqlite", "postgres"} {
		for how, end := range kit.RemoveAgentBy {
			t.Run(engine+", "+how, func(t *testing.T) { f(t, engine, how, end) })
		}
	}
}

// A proposal on behalf of a removed agent is closed, and the call can be proposed again.
func TestO20_ProposalForARemovedDelegatorEnds(t *testing.T) {
	t.Parallel()
	forEachRemoval(t, func(t *testing.T, engine, how string, end func(*reevetest.Host, reeve.Agent)) {
		var ran kit.Counter
		h, boss := kit.RunBossAndHelper(t, engine, "propose", kit.Tool("act", reeve.Keyed, ran.Handle))
		stays := h.Call("helper", "act", kit.Object{"for": "nobody"}).ProposalID
		kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
		list := kit.ListProposals(h, "state=pending")
		if len(list) != 2 {
			t.Fatalf("%+v", list)
		}
		id := list[0].ID
		end(h, boss)
		if p := kit.GetProposal(h, id); p.State != reeve.ProposalStale ||
			p.Comment != "boss, on whose behalf this runs, was "+
				how || len(kit.GetInbox(h).Proposals) != 1 {
			t.Errorf("%+v", p)
		}
		for _, word := range []string{"accept", "reject"} {
			if _, problem, status := kit.DecideProposal(h, id, word, ""); status != http.StatusConflict ||
				problem.Code != reeve.Stale {
				t.Errorf("%s: %d %+v", word, status, problem)
			}
		}
		again := h.Call("helper", "act", kit.Object{}).ProposalID // a call without a delegator
		for _, p := range []string{stays, again} {
			kit.DecideProposal(h, p, "accept", "")
			kit.Eventually(t, "it to be applied", func() bool {
				return kit.GetProposal(h, p).State == reeve.ProposalApplied
			})
		}
		if ran.Count() != 2 {
			t.Errorf("%d ran", ran.Count())
		}
	})
}

// A call that was approved and then held by the kill switch is refused when it continues, because its delegator is
// gone.
func TestO20_ApprovedCallForARemovedDelegatorIsRefused(t *testing.T) {
	t.Parallel()
	forEachRemoval(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		for _, policy := range []string{"ask", "propose"} {
			var ran kit.Counter
			h, boss := kit.RunBossAndHelper(t, engine, policy, kit.Tool("act", reeve.Keyed, ran.Handle))
			turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
			op := ""
			if policy == "ask" {
				a := waitForApproval(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "helper"})
				kit.Decide(h, a.ID, "approve")
				op = a.OperationID
			} else {
				kit.WaitForTurn(h, turn.ID)
				h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{"agent": "helper"})
				p, _, _ := kit.DecideProposal(h, kit.ListProposals(h, "state=pending")[0].ID, "accept", "")
				op = p.OperationID
			}
			end(h, boss)
			h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{"agent": "helper"})
			waitForDenial(h, op)
			if ran.Count() != 0 {
				t.Errorf("%s: it was done", policy)
			}
		}
	})
}

// A person has a call of unknown outcome run again. It is refused, because its delegator is gone.
func TestO20_RepeatForARemovedDelegatorIsRefused(t *testing.T) {
	t.Parallel()
	forEachRemoval(t, func(t *testing.T, engine, _ string, end func(*reevetest.Host, reeve.Agent)) {
		h, boss := kit.RunBossAndHelper(t, engine, "allow",
			kit.Tool("act", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
			}))
		turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
		kit.WaitForTurnWhere(h, turn.ID, func(api.TurnDetail) bool { return len(kit.GetInbox(h).Unknown) == 1 })
		op := kit.GetInbox(h).Unknown[0].ID
		end(h, boss)
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op+"/resolve", kit.Object{"resolution": "retry"})
		waitForDenial(h, op)
	})
}

// A run whose row no longer names the run that began it makes no call, because its rights are unknown. Approved calls
// wait until the row is corrected.
func TestO20_RunWithoutItsDelegatorMakesNoCall(t *testing.T) {
	t.Parallel()
	for _, ancestors := range []string{"", "null", "[]",
		`[{"run_id":"run_other","agent_id":"agt_other","tools":null}]`} {
		t.Run("ancestors "+ancestors, func(t *testing.T) {
			var ran kit.Counter
			act := kit.Tool("act", reeve.Keyed, ran.Handle)
			cfg := kit.DelegationConfig(t, "sqlite")
			cfg.Dir = t.TempDir()
			h := reevetest.Run(t, cfg, act)
			boss := kit.NewPersona(h, "boss", nil, "delegate", "act")
			kit.NewPersona(h, "helper", kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "ask"}}}, "act")
			a := waitForApproval(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
			kit.UpdateAgent(h, boss, kit.Object{"policy": kit.Object{"tools": kit.Object{"act": "deny"}}})
			h.Stop()
			db, err := sql.Open("sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), `UPDATE runs SET ancestors = $1 WHERE parent_id <> ''`, ancestors); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			h = reevetest.Run(t, cfg, act)
			kit.Decide(h, a.ID, "approve")
			h.RunUntilIdle(t.Context())
			if op := kit.GetOperation(h, a.OperationID); op.State != reeve.Prepared || ran.Count() != 0 {
				t.Errorf("%d ran, %+v", ran.Count(), op)
			}
			if rows := kit.GetHealth(h, "rows"); rows.OK ||
				!strings.Contains(rows.Detail, "in table runs cannot be read: ancestors") {
				t.Errorf("the doctor says %+v", rows)
			}
		})
	}
}

// waitForDenial waits until an operation is denied because of its delegator.
func waitForDenial(h *reevetest.Host, id string) {
	h.T.Helper()
	var op reeve.Operation
	kit.Eventually(h.T, "the operation to be refused",
		func() bool { op = kit.GetOperation(h, id); return op.State != reeve.Prepared })
	if op.State != reeve.DeniedOp || op.Code != reeve.Denied || op.ResultID == "" ||
		!strings.Contains(op.Message, "behalf") && !strings.Contains(op.Message, "run has ended") {
		h.T.Errorf("%+v", op)
	}
}

// runBossAndHelper runs a host with a boss that delegates to a helper, whose call needs approval or is proposed.
func runBossAndHelper(t *testing.T, policy string) (h *reevetest.Host, boss reeve.Agent, ran *kit.Counter) {
	ran = &kit.Counter{}
	h, boss = kit.RunBossAndHelper(t, "sqlite", policy, kit.Tool("act", reeve.Keyed, ran.Handle))
	return h, boss, ran
}

// A person decides late. A call on behalf of an agent that has lost the right, or is stopped, by then is not made.
func TestO20_DelegatorIsCheckedAtTheDecision(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]kit.Object{
		"dormant": {"lifecycle": "dormant"}, "denied": {"policy": kit.Object{"tools": kit.Object{"act": "deny"}}},
		"its tier denied": {"policy": kit.Object{"tiers": kit.Object{"side_effecting": "deny", "privileged": "deny"}}},
	} {
		t.Run("proposed, "+name, func(t *testing.T) {
			h, boss, ran := runBossAndHelper(t, "propose")
			kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
			var box api.Inbox
			if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Proposals) != 1 {
				t.Fatalf("%+v", box)
			}
			kit.UpdateAgent(h, boss, change)
			h.Want(http.StatusOK, nil, "POST", "/api/proposals/"+box.Proposals[0].ID+"/accept", kit.Object{})
			kit.Eventually(t, "the proposal to end", func() bool {
				return kit.GetProposal(h, box.Proposals[0].ID).State == reeve.ProposalDenied
			})
			if ran.Count() != 0 {
				t.Errorf("it was done")
			}
		})
	}
	t.Run("asked, dormant", func(t *testing.T) {
		h, boss, ran := runBossAndHelper(t, "ask")
		turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
		asked := waitForApproval(h, turn.ID)
		kit.UpdateAgent(h, boss, kit.Object{"lifecycle": "dormant"})
		kit.Decide(h, asked.ID, "approve")
		kit.Eventually(t, "the call to be refused", func() bool {
			return kit.GetOperation(h, asked.OperationID).State == reeve.DeniedOp
		})
		if ran.Count() != 0 {
			t.Errorf("it was done")
		}
	})
}

// waitForApproval waits until a call that a turn led to is parked, and returns its approval.
func waitForApproval(h *reevetest.Host, turn string) (a reeve.Approval) {
	h.T.Helper()
	kit.WaitForTurnWhere(h, turn, func(api.TurnDetail) bool {
		list := kit.GetInbox(h).Approvals
		if len(list) == 1 {
			a = list[0]
		}
		return len(list) == 1
	})
	return a
}

// When an agent is removed, the runs that it had called end, and their approvals lapse.
func TestO20_ApprovalsOfAnEndedChildLapse(t *testing.T) {
	t.Parallel()
	for name, end := range kit.RemoveAgentBy {
		t.Run(name, func(t *testing.T) {
			h, boss, ran := runBossAndHelper(t, "ask")
			asked := waitForApproval(h, kit.StartTurn(h, h.StartConversation("boss").ID, "go").ID)
			stays := h.Call("helper", "act", kit.Object{}) // which nobody called it for
			end(h, boss)
			var was reeve.Approval
			h.Want(http.StatusOK, &was, "GET", "/api/approvals/"+asked.ID, nil)
			if list := kit.GetInbox(h).Approvals; len(list) != 1 || list[0].ID != stays.ApprovalID ||
				was.State != reeve.ApprovalLapsed || was.Comment == "" || kit.GetOperation(h, asked.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("the inbox has %+v; it was %+v", list, was)
			}
			kit.Decide(h, stays.ApprovalID, "approve")
			kit.Eventually(t, "the other to be done", func() bool { return ran.Count() == 1 })
		})
	}
}
