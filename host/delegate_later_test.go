package host_test

import (
	"net/http"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// bossAndHelper is a boss that has a helper do what the helper's policy asks a person about, or proposes.
func bossAndHelper(t *testing.T, policy string) (h *reevetest.Host, boss reeve.Agent, ran *kit.Counter) {
	ran = &kit.Counter{}
	h, boss = kit.RunBossAndHelper(t, "sqlite", policy, kit.Tool("act", reeve.Keyed, ran.Handle))
	return h, boss, ran
}

// TestO20_TheParentAsItIsWhenAPersonAnswers: a person's word comes late. What was asked for on behalf of an agent that
// may not, or is not to act, by then is not done.
func TestO20_TheParentAsItIsWhenAPersonAnswers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]kit.Object{
		"dormant": {"lifecycle": "dormant"}, "denied": {"policy": kit.Object{"tools": kit.Object{"act": "deny"}}},
		"its tier denied": {"policy": kit.Object{"tiers": kit.Object{"side_effecting": "deny", "privileged": "deny"}}},
	} {
		t.Run("proposed, "+name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "propose")
			kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
			var box api.Inbox
			if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Proposals) != 1 {
				t.Fatalf("%+v", box)
			}
			kit.UpdateAgent(h, boss, change)
			h.Want(http.StatusOK, nil, "POST", "/api/proposals/"+box.Proposals[0].ID+"/accept", kit.Object{})
			kit.Eventually(t, "the proposal to end", func() bool {
				return kit.GetProposal(h, box.Proposals[0].ID).
					State == reeve.ProposalDenied
			})
			if ran.Count() != 0 {
				t.Errorf("it was done")
			}
		})
	}
	t.Run("asked, dormant", func(t *testing.T) {
		h, boss, ran := bossAndHelper(t, "ask")
		turn := kit.StartTurn(h, h.Talk("boss").ID, "go")
		asked := waiting(h, turn.ID)
		kit.UpdateAgent(h, boss, kit.Object{"lifecycle": "dormant"})
		kit.Decide(h, asked.ID, "approve")
		kit.Eventually(t, "the call to be refused", func() bool {
			return kit.GetOperation(h, asked.OperationID).
				State == reeve.DeniedOp
		})
		if ran.Count() != 0 {
			t.Errorf("it was done")
		}
	})
}

// waiting waits until a call that a turn led to is parked, and gives its approval.
func waiting(h *reevetest.Host, turn string) (a reeve.Approval) {
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

// TestO20_NobodyIsAskedForAChildThatDied: when an agent is gone, so are the runs that it had called, and nobody is
// asked what they were to do.
func TestO20_NobodyIsAskedForAChildThatDied(t *testing.T) {
	t.Parallel()
	for name, end := range kit.RemoveAgentBy {
		t.Run(name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "ask")
			asked := waiting(h, kit.StartTurn(h, h.Talk("boss").ID, "go").ID)
			stays := h.Call("helper", "act", kit.Object{}) // which nobody called it for
			end(h, boss)
			var was reeve.Approval
			h.Want(http.StatusOK, &was, "GET", "/api/approvals/"+asked.ID, nil)
			if list := kit.GetInbox(h).Approvals; len(list) != 1 || list[0].ID != stays.ApprovalID ||
				was.State != reeve.Lapsed || was.Comment == "" || kit.GetOperation(h, asked.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("the inbox has %+v; it was %+v", list, was)
			}
			kit.Decide(h, stays.ApprovalID, "approve")
			kit.Eventually(t, "the other to be done", func() bool { return ran.Count() == 1 })
		})
	}
}
