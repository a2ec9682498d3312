package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// bossAndHelper is a boss that has a helper do what the helper's policy asks a person about, or proposes.
func bossAndHelper(t *testing.T, policy string) (h *reevetest.Host, boss reeve.Agent, ran *counter) {
	ran = &counter{}
	h, boss = bossAndHelperOn(t, "sqlite", policy, tool("act", reeve.Keyed, ran.handle))
	return h, boss, ran
}

// bossAndHelperOn is bossAndHelper on an engine, with what it is that the helper does.
func bossAndHelperOn(t *testing.T, engine, policy string, act reeve.Tool) (h *reevetest.Host, boss reeve.Agent) {
	h = reevetest.Run(t, delegating(t, engine), act)
	boss = persona(h, "boss", nil, "delegate", "act")
	persona(h, "helper", object{"policy": object{"tools": object{"act": policy}}}, "act")
	return h, boss
}

// delegating is a config of a model whose boss has a helper act.
func delegating(t *testing.T, engine string) host.Config {
	cfg := quick(t)
	if engine == "postgres" {
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: act}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: act, args: {}}]}
`)
	return cfg
}

// TestO20_TheParentAsItIsWhenAPersonAnswers: a person's word comes late. What was asked for on behalf of an agent that
// may not, or is not to act, by then is not done.
func TestO20_TheParentAsItIsWhenAPersonAnswers(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]object{
		"dormant": {"lifecycle": "dormant"}, "denied": {"policy": object{"tools": object{"act": "deny"}}},
		"its tier denied": {"policy": object{"tiers": object{"side_effecting": "deny", "privileged": "deny"}}},
	} {
		t.Run("proposed, "+name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "propose")
			over(h, speak(h, h.StartConversation("boss").ID, "go").ID)
			var box api.Inbox
			if h.Want(http.StatusOK, &box, "GET", "/api/inbox", nil); len(box.Proposals) != 1 {
				t.Fatalf("%+v", box)
			}
			patch(h, boss, change)
			h.Want(http.StatusOK, nil, "POST", "/api/proposals/"+box.Proposals[0].ID+"/accept", object{})
			eventually(t, "the proposal to end", func() bool {
				return proposal(h, box.Proposals[0].ID).
					State == reeve.ProposalDenied
			})
			if ran.count() != 0 {
				t.Errorf("it was done")
			}
		})
	}
	t.Run("asked, dormant", func(t *testing.T) {
		h, boss, ran := bossAndHelper(t, "ask")
		turn := speak(h, h.StartConversation("boss").ID, "go")
		asked := waiting(h, turn.ID)
		patch(h, boss, object{"lifecycle": "dormant"})
		decide(h, asked.ID, "approve")
		eventually(t, "the call to be refused", func() bool {
			return operation(h, asked.OperationID).
				State == reeve.DeniedOp
		})
		if ran.count() != 0 {
			t.Errorf("it was done")
		}
	})
}

// waiting waits until a call that a turn led to is parked, and gives its approval.
func waiting(h *reevetest.Host, turn string) (a reeve.Approval) {
	h.T.Helper()
	until(h, turn, func(api.TurnDetail) bool {
		list := inbox(h).Approvals
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
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			h, boss, ran := bossAndHelper(t, "ask")
			asked := waiting(h, speak(h, h.StartConversation("boss").ID, "go").ID)
			stays := h.Call("helper", "act", object{}) // which nobody called it for
			end(h, boss)
			var was reeve.Approval
			h.Want(http.StatusOK, &was, "GET", "/api/approvals/"+asked.ID, nil)
			if list := inbox(h).Approvals; len(list) != 1 || list[0].ID != stays.ApprovalID ||
				was.State != reeve.ApprovalLapsed || was.Comment == "" || operation(h, asked.OperationID).
				State != reeve.DeniedOp {
				t.Errorf("the inbox has %+v; it was %+v", list, was)
			}
			decide(h, stays.ApprovalID, "approve")
			eventually(t, "the other to be done", func() bool { return ran.count() == 1 })
		})
	}
}
