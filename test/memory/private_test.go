package memory_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The calls, proposals and change sets that quote a user's notes do not exist for another member, who cannot decide on
// them. The user and owners see them.
func TestN11_CallsOfNotesArePrivate(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		save := call(h, "memory_save", kit.Object{"content": "The gate code of Ann is 4711"}, ann...)
		write(h, "memory_save", kit.Object{"content": "Gate code of Ann is 4711."}, ann...)
		search(h, kit.Object{"query": "gate code"}, ann...)
		p := onlyProposal(h, consolidate(h, ann...))
		kit.NewPersona(h, "bare", nil)
		_, refused, _ := kit.TryCall(h, "bare", kit.Call{"tool": "memory_save",
			"args": kit.Object{"content": "4711"}}, ann...)
		named := map[string]string{"/api/operations/" + save.OperationID: "GET", "/api/changes/" + save.OperationID: "GET",
			"/api/operations/" + save.OperationID + "/undo": "POST", "/api/calls/" + save.CallID + "/explanation": "GET",
			"/api/proposals/" + p.ID: "GET", "/api/proposals/" + p.ID + "/accept": "POST",
			"/api/proposals/" + p.ID + "/reject": "POST", "/api/change-sets/" + p.SetID: "GET",
			"/api/change-sets/" + p.SetID + "/accept": "POST", "/api/calls/" + refused.CallID + "/explanation": "GET"}
		h.Want(http.StatusOK, nil, "GET", "/api/calls/"+refused.CallID+"/explanation", nil, ann...)
		for path, method := range named {
			if r := h.Do(method, path, kit.Object{}, ben...); r.Status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, path, r.Status, r.Body)
			}
		}
		for _, path := range []string{"/api/operations", "/api/proposals", "/api/change-sets", "/api/inbox",
			"/api/changes", "/api/approvals"} {
			if r := h.Want(http.StatusOK, nil, "GET", path, nil, ben...); strings.Contains(string(r.Body), "4711") ||
				strings.Contains(string(r.Body), p.ID) || strings.Contains(string(r.Body), save.OperationID) {
				t.Errorf("%s shows %s", path, r.Body)
			}
		}
		for _, headers := range [][]string{ann, nil} {
			if r := h.Want(http.StatusOK, nil, "GET", "/api/inbox", nil, headers...); !strings.Contains(string(r.Body), p.ID) {
				t.Errorf("the inbox lacks the proposal: %s", r.Body)
			}
		}
		h.Want(http.StatusOK, &p, "POST", "/api/proposals/"+p.ID+"/accept", kit.Object{}, ann...)
		if r := h.Do("GET", "/api/operations/"+p.OperationID, nil, ben...); r.Status != http.StatusNotFound {
			t.Errorf("the accepted merge: %d %s", r.Status, r.Body)
		}
		kit.Eventually(t, "the notes are merged", func() bool { return len(kit.ListNotes(h, "", ann...)) == 1 })
	})
}

// An agent that another agent calls works for the same user, and finds only notes of that user.
func TestN11_DelegationDoesNotWiden(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {system: I am boss, said: go}, calls: [{name: delegate, args: {agent: helper, input: "find the code"}}]}
- {when: {system: I am boss, tool: delegate}, text: "done"}
- {when: {system: I am helper, said: find}, calls: [{name: memory_search, args: {query: "code of the safe"}}]}
- {when: {system: I am helper, tool: memory_search}, text: "found"}
`)
	kit.NewPersona(h, "bot", nil, memoryTools...)
	kit.NewPersona(h, "boss", nil, "delegate", "memory_search")
	kit.NewPersona(h, "helper", nil, "memory_search")
	ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
	write(h, "memory_save", kit.Object{"content": "The code of the safe of Ann is 1111"}, ann...)
	write(h, "memory_save", kit.Object{"content": "The code of the safe of Ben is 2222"}, ben...)
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "boss"}, ben...)
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": "go"}, ben...)
	kit.WaitForTurn(h, turn.ID)
	children := kit.ListChildren(h, turn.ID)
	if len(children) != 1 || children[0].UserID != "ben" {
		t.Fatalf("got %+v", children)
	}
	_, said := kit.ListResults(h, children[0].ID, "memory_search")
	if len(said) != 1 || !strings.Contains(said[0], "2222") || strings.Contains(said[0], "1111") {
		t.Errorf("the called agent found %q", said)
	}
}
