package kit

import (
	"encoding/json"
	"net/http"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// SetBudget sets the budget of a subject, such as "workspace".
func SetBudget(h *reevetest.Host, subject string, body map[string]any) {
	h.T.Helper()
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/"+subject, body)
}

// GetBudget returns the budget of a subject.
func GetBudget(h *reevetest.Host, subject string) reeve.Budget {
	h.T.Helper()
	var list api.BudgetList
	h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil)
	for _, b := range list.Budgets {
		if b.Subject == subject {
			return b
		}
	}
	h.T.Fatalf("no budget for %s in %+v", subject, list)
	return reeve.Budget{}
}

// ListThread returns all messages of an agent's thread that a query selects.
func ListThread(h *reevetest.Host, agent, query string) []reeve.Message {
	h.T.Helper()
	var out []reeve.Message
	for cursor := ""; ; {
		var page api.MessageList
		h.Want(http.StatusOK, &page, "GET", "/api/agents/"+agent+"/messages?limit=500&cursor="+cursor+"&"+query, nil)
		out = append(out, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// PairCalls checks that messages form one chain and that every action has exactly one result. It returns action and
// result by the id of the action.
func PairCalls(h *reevetest.Host, list []reeve.Message) map[string][2]reeve.Message {
	h.T.Helper()
	out := map[string][2]reeve.Message{}
	prev := ""
	for _, m := range list {
		if m.PrevID != prev {
			h.T.Errorf("message %s follows %q, want %q", m.ID, m.PrevID, prev)
		}
		prev = m.ID
		switch m.Kind {
		case reeve.Action:
			out[m.ID] = [2]reeve.Message{m}
		case reeve.ToolResult:
			p, ok := out[m.ActionID]
			if !ok || p[1].ID != "" || p[0].ThreadID != m.ThreadID {
				h.T.Errorf("result %s answers %q, which is not an open action of its thread", m.ID, m.ActionID)
			}
			p[1] = m
			out[m.ActionID] = p
		default:
			h.T.Errorf("message %s is a %s", m.ID, m.Kind)
		}
	}
	for id, p := range out {
		if p[1].ID == "" {
			h.T.Errorf("action %s has no result", id)
		}
	}
	return out
}

// ActionInfo decodes the metadata of an action.
func ActionInfo(t testing.TB, m reeve.Message) (info reeve.ActionInfo) {
	t.Helper()
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// ResultInfo decodes the metadata of a tool result.
func ResultInfo(t testing.TB, m reeve.Message) (info reeve.ResultInfo) {
	t.Helper()
	if err := json.Unmarshal(m.Metadata, &info); err != nil {
		t.Fatal(err)
	}
	return info
}

// GetOperation returns an operation.
func GetOperation(h *reevetest.Host, id string) (op reeve.Operation) {
	h.T.Helper()
	h.Want(http.StatusOK, &op, "GET", "/api/operations/"+id, nil)
	return op
}

// ListOperations returns all operations of the workspace.
func ListOperations(h *reevetest.Host) []reeve.Operation {
	h.T.Helper()
	var list api.OperationList
	h.Want(http.StatusOK, &list, "GET", "/api/operations?limit=500", nil)
	return list.Operations
}

// GetInbox returns what waits for a person.
func GetInbox(h *reevetest.Host) (in api.Inbox) {
	h.T.Helper()
	h.Want(http.StatusOK, &in, "GET", "/api/inbox", nil)
	return in
}

// Decide decides an approval: "approve" or "deny".
func Decide(h *reevetest.Host, approval, decision string) reeve.Approval {
	h.T.Helper()
	var a reeve.Approval
	h.Want(http.StatusOK, &a, "POST", "/api/approvals/"+approval+"/decision", map[string]any{"decision": decision})
	return a
}

// GetProposal returns a proposal.
func GetProposal(h *reevetest.Host, id string) (p reeve.Proposal) {
	h.T.Helper()
	h.Want(http.StatusOK, &p, "GET", "/api/proposals/"+id, nil)
	return p
}

// ListProposals returns the proposals that a query selects.
func ListProposals(h *reevetest.Host, query string) []reeve.Proposal {
	h.T.Helper()
	var list api.ProposalList
	h.Want(http.StatusOK, &list, "GET", "/api/proposals?limit=500&"+query, nil)
	return list.Proposals
}

// DecideProposal accepts or rejects a proposal and returns it, or the problem, with the status. word is the last part
// of the route.
func DecideProposal(h *reevetest.Host, id, word, comment string) (p reeve.Proposal, problem api.Problem, status int) {
	h.T.Helper()
	r := h.Do("POST", "/api/proposals/"+id+"/"+word, Object{"comment": comment})
	if r.Status < 300 {
		r.Decode(h.T, &p)
	} else {
		r.Decode(h.T, &problem)
	}
	return p, problem, r.Status
}

// PairRunCalls returns action and result by the id of the action for the thread of a run, which also has other
// messages.
func PairRunCalls(h *reevetest.Host, agent, run string) map[string][2]reeve.Message {
	h.T.Helper()
	out := map[string][2]reeve.Message{}
	for _, m := range ListThread(h, agent, "run="+run) {
		switch m.Kind {
		case reeve.Action:
			out[m.ID] = [2]reeve.Message{m}
		case reeve.ToolResult:
			p := out[m.ActionID]
			p[1] = m
			out[m.ActionID] = p
		default:
		}
	}
	return out
}
