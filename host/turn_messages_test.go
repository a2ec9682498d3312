package host_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// messageIDs is messages by their ids, in order.
func messageIDs(list []reeve.Message) string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// pages reads what a run of an agent wrote, so many messages at a time.
func pages(h *reevetest.Host, agent, run string, limit int, headers ...string) (out []reeve.Message) {
	h.T.Helper()
	for cursor := ""; ; {
		var page api.MessageList
		h.Want(http.StatusOK, &page, "GET", fmt.Sprintf("/api/agents/%s/messages?run=%s&limit=%d&cursor=%s", agent, run,
			limit, cursor), nil, headers...)
		out = append(out, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// A turn's messages are what it thought and did, and nothing of the other turns of its conversation.
func TestW14_TheMessagesOfATurn(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: write, calls: [{name: write_file, args: {path: /diary.md, content: mine}}]}\n- {when: "+
		"{tool: write_file}, text: 'Written.'}\n- {when: hello, text: 'Hi.'}\n")
	for _, tool := range []string{"write_file", "read_file"} {
		h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": tool})
	}
	h.Agent("other", "read_file")
	c := h.StartConversation("bot")
	var list []string
	for _, text := range []string{"hello", "write", "hello"} {
		turn := speak(h, c.ID, text)
		over(h, turn.ID)
		list = append(list, turn.ID)
	}
	byHand := object{"tool": "read_file", "args": object{"path": "/diary.md"}, "run": list[1]}
	// the turn is over; the refusal is recorded in it
	h.Want(http.StatusConflict, nil, "POST", "/api/agents/bot/calls", byHand)
	for i, want := range []int{2, 7, 2} {
		whole := detail(h, list[i]).Messages
		if len(whole) != want {
			t.Errorf("turn %d has %d messages, want %d", i, len(whole), want)
		}
		for _, limit := range []int{1, 2, 3, 500} {
			if got := pages(h, "bot", list[i], limit); messageIDs(got) != messageIDs(whole) {
				t.Errorf("turn %d in pages of %d:\n%s, want\n%s", i, limit, messageIDs(got), messageIDs(whole))
			}
		}
	}
	if got := pages(h, "other", list[1], 500); len(got) != 0 {
		t.Errorf("another agent has %d messages in the turn", len(got))
	}
	bob := as(h, "bob", "viewer")
	if got := pages(h, "bot", list[1], 500, bob...); len(got) != 0 {
		t.Errorf("somebody who does not see the conversation reads %d messages of its turn", len(got))
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		object{"kind": "user", "id": "bob"})
	if got := pages(h, "bot", list[2], 500, bob...); messageIDs(got) != messageIDs(detail(h, list[2]).Messages) {
		t.Errorf("somebody who takes part reads %+v", got)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+c.AgentID, nil)
	if got := pages(h, c.AgentID, list[0], 500); len(got) != 2 {
		t.Errorf("of an agent that is gone: %+v", got)
	}
}
