package chat_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The test tries every route of conversations as an outsider.
func TestO11_ConversationIsForItsParticipants(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	h := kit.RunScripted(t, farScript+
		"- {when: write, calls: [{name: write_file, args: {path: /diary.md, content: mine}}]}\n- {when: {tool: "+
		"write_file}, text: 'Written.'}\n", newFarTool(&sent))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "write_file"})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "read_file"})
	c := h.StartConversation("bot")
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "write").ID)
	turn := kit.StartTurn(h, c.ID, "begin")
	var op reeve.Operation
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		var list struct {
			Operations []reeve.Operation `json:"operations"`
		}
		h.Want(http.StatusOK, &list, "GET", "/api/operations", nil)
		for _, o := range list.Operations {
			if o.Tool == "far" && o.TimeoutAt != nil {
				op = o
			}
		}
		return d.State == reeve.RunParked && op.ID != ""
	})
	for _, role := range []string{"member", "viewer"} {
		bob := kit.NewTokenFor(h, "bob-"+role, role)
		for _, query := range []string{"session=" + c.ID, "run=" + turn.ID} {
			var page api.MessageList
			h.Want(http.StatusOK, &page, "GET", "/api/agents/bot/messages?"+query, nil, bob...)
			if len(page.Messages) != 0 {
				t.Errorf("%s reads %d messages by %s", role, len(page.Messages), query)
			}
		}
		if r := h.Do("GET", "/v1/responses/resp_"+turn.ID, nil, bob...); role == "member" &&
			(r.Status != http.StatusNotFound || strings.Contains(string(r.Body), "conv_")) {
			t.Errorf("a response of another: %d %s", r.Status, r.Body)
		}
	}
	bob := kit.NewTokenFor(h, "bob", "member")
	for name, body := range map[string]kit.Object{
		"session": {"tool": "read_file", "args": kit.Object{"path": "/diary.md"}, "session": c.ID},
		"run":     {"tool": "read_file", "args": kit.Object{"path": "/diary.md"}, "run": turn.ID},
	} {
		if r := h.Do("POST", "/api/agents/bot/calls", body, bob...); r.Status != http.StatusNotFound {
			t.Errorf("a call in another's %s: %d %s", name, r.Status, r.Body)
		}
	}
	h.Want(http.StatusNotFound, nil, "POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "forged"},
		bob...)
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "true"})
	kit.WaitForTurn(h, turn.ID)
}

// Two people are removed from a conversation at once. One stays, because a conversation has a participant.
func TestO11_AConversationKeepsAPerson(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		h.Agent("bot")
		ann := kit.NewTokenFor(h, "ann", "member")
		kit.NewTokenFor(h, "bob", "member")
		for range 20 {
			var c reeve.Conversation
			h.Want(http.StatusCreated, &c, "POST", "/api/conversations",
				kit.Object{"agent": "bot", "participants": []string{"bob"}}, ann...)
			replies := make([]reevetest.Reply, 2)
			var all sync.WaitGroup
			for i, name := range []string{"ann", "bob"} {
				all.Go(func() { replies[i] = h.Do("DELETE", "/api/conversations/"+c.ID+"/participants/"+name, nil) })
			}
			all.Wait()
			if replies[0].Status+replies[1].Status != http.StatusNoContent+http.StatusConflict {
				t.Fatalf("%d %s, %d %s", replies[0].Status, replies[0].Body, replies[1].Status, replies[1].Body)
			}
		}
	})
}

// A participant that is not a user of the workspace is refused, with its position.
func TestW12_ParticipantsAreUsers(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hi, text: hello}\n")
	kit.NewTokenFor(h, "bob", "member")
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations",
		kit.Object{"agent": "bot", "participants": []string{"bob"}})
	r := h.Do("POST", "/api/conversations", kit.Object{"agent": "bot", "participants": []string{"bob", "bobb"}})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "/participants/1") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if r := h.Do("POST", "/api/conversations/"+c.ID+"/participants", kit.Object{"kind": "user", "id": "bobb"}); r.Status != http.StatusBadRequest ||
		!strings.Contains(string(r.Body), "is unknown") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
