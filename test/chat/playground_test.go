package chat_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

func TestI17_ThePlayground(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: both, calls: [{id: c1, name: echo, args: {n: 1}}, {id: c2, name: echo, args: {n: "+
		"2}}]}\n- {when: {tool: echo}, text: 'Both are there.'}\n- {when: {system: 'I am {{x}} $1 %s'}, text: 'I "+
		"know who you are.'}\n"+
		"- {when: write, calls: [{name: write_file, args: {path: /notes.txt, content: remembered}}]}\n- {when: read, "+
		"calls: [{name: read_file, args: {path: /notes.txt}}]}\n",
		kit.Tool("echo", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
			return "echo of " + string(inv.Args), nil
		}))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "write_file"})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "read_file"})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot",
		kit.Object{"config": kit.Object{"instructions": "I am {{who}}"}})

	var types []string
	var text, conversation string
	args, results := map[string]string{}, map[string]string{}
	postPlayground(h, "sess_1", kit.Object{"message": "both, please", "agentId": "bot"}, func(p playgroundEvent) bool {
		if n := len(types); n == 0 || types[n-1] != p.Type {
			types = append(types, p.Type)
		}
		switch p.Type {
		case "text-delta":
			text += p.Text
		case "tool-call-args":
			args[p.ToolCallID] = string(p.Args)
		case "tool-result":
			results[p.ToolCallID] = p.Result
		case "session-info":
			conversation = p.ConversationID
		}
		return false
	})
	if got := strings.Join(types, " "); got != "message-start tool-call tool-call-args tool-call-end tool-call tool-call-args tool-call-end "+
		"tool-result text-delta finish session-info" {
		t.Errorf("events: %s", got)
	}
	if text != "Both are there." || len(args) != 2 || len(results) != 2 || conversation == "" {
		t.Errorf("text %q, args %v, results %v", text, args, results)
	}
	for id, a := range args {
		if !strings.Contains(results[id], a) {
			t.Errorf("%s: %s came to %s", id, a, results[id])
		}
	}

	say := func(body kit.Object) (text string) { // the session goes on, with its history and its files
		body["agentId"] = "bot"
		postPlayground(h, "sess_1", body, func(p playgroundEvent) bool {
			text += p.Text + p.Result
			if p.Type == "session-info" && p.ConversationID != conversation {
				t.Errorf("the session is now %s", p.ConversationID)
			}
			return false
		})
		return text
	}
	say(kit.Object{"message": "write"})
	if got := say(kit.Object{"message": "read"}); !strings.Contains(got, "remembered") {
		t.Errorf("the file says %q", got)
	}
	if got := say(kit.Object{"message": "who?", "variables": kit.Object{"who": "{{x}} $1 %s"}}); got != "I know who you are." {
		t.Errorf("a variable was not inserted literally: %q", got)
	}
	if n := len(kit.ListTurns(h, conversation)); n != 4 {
		t.Errorf("%d turns", n)
	}
}
