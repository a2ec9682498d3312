package host_test

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

// TestO11_AConversationIsItsParticipants tries every way around the routes of conversations.
func TestO11_AConversationIsItsParticipants(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	h := kit.RunScripted(t, farScript+
		"- {when: write, calls: [{name: write_file, args: {path: /diary.md, content: mine}}]}\n- {when: {tool: "+
		"write_file}, text: 'Written.'}\n", far(&sent))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "write_file"})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "read_file"})
	c := h.Talk("bot")
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

// Of two people whose parts are ended at the same moment one stays: a conversation is somebody's.
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

func TestW12_ALostRightEndsAConnection(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: hi}\n")
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	h.Want(http.StatusCreated, &made, "POST", "/api/tokens", kit.Object{"name": "bob", "user": "bob", "role": "member"})
	c := h.Talk("bot")
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		kit.Object{"kind": "user", "id": "bob"})
	s, _ := h.Dial(h.URL+"/conversations/"+c.ID, "Authorization", "Bearer "+made.Token, "X-Workspace-Id", "default")
	if f := s.Next(); f.Type != reeve.FrameConnected {
		t.Fatalf("%+v", f)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c.ID+"/participants/bob?kind=user", nil)
	if code := s.Ended(); code != 1008 {
		t.Errorf("the connection ended with %d", code)
	}
}

func TestL01_ADestroyedAgentEndsItsTurns(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.Talk("bot")
	s := h.Connect(c.ID, -1)
	s.Say("slow")
	s.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"lifecycle": "destroyed"})
	end := s.Done(1)
	if end.State != reeve.RunCancelled {
		t.Errorf("%+v", end)
	}
	for _, f := range s.Seen {
		if f.Type == reeve.FrameMessage {
			t.Error("a turn that was over said something")
		}
	}
}

func TestG23_TheKillSwitchStopsATurnInMidStream(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.Talk("bot")
	s := h.Connect(c.ID, -1)
	s.Say("slow")
	s.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{})
	if end := s.Done(1); end.State != reeve.RunCancelled || end.Code != reeve.Stopped {
		t.Errorf("%+v", end)
	}
	if d := kit.ListTurns(h, c.ID)[0]; d.Spent.Tokens == 0 && d.Moves != 0 {
		t.Errorf("%+v", d)
	}
}

func TestW20_NothingIsDoneBeyondTheLimit(t *testing.T) {
	t.Parallel()
	var n kit.Counter
	h := kit.RunScriptedIn(t, t.TempDir(), "- {when: {system: LOOP}, calls: [{name: effect, args: {}}]}\n",
		kit.Tool("effect", reeve.Keyed, n.Handle))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "bot", "config": kit.Object{"instructions": "LOOP", "max_moves": 2}})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "effect"})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.Talk("bot").ID, "go").ID)
	if d.Code != reeve.StepLimit || n.Count() != 2 {
		t.Errorf("%d effects, %+v", n.Count(), d.Turn)
	}
}

func TestW12_AnAnswerBegunAgainAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "- {when: slow, text: 'w01 w02 w03 w04 w05 w06 w07 w08 w09 w10', pace: 60ms}\n"
	h := kit.RunScriptedIn(t, dir, script)
	h.Agent("bot")
	c := h.Talk("bot")
	s := h.Connect(c.ID, -1)
	s.Say("slow")
	last := reeve.Frame{}
	for range 4 {
		last = s.Until(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	h.Stop()
	h = kit.RunScriptedIn(t, dir, script)
	s = h.Connect(c.ID, last.Seq)
	s.Done(1)
	text, discarded, seq := "", false, last.Seq
	for _, f := range s.Seen {
		if f.Seq <= seq {
			t.Errorf("frame %d comes after %d", f.Seq, seq)
		}
		seq = f.Seq
		if f.Type != reeve.FrameToken {
			continue
		}
		if f.Discard {
			text, discarded = "", true
			continue
		}
		text += f.Text
	}
	if !discarded || strings.TrimSpace(text) != "w01 w02 w03 w04 w05 w06 w07 w08 w09 w10" {
		t.Errorf("discarded %v, heard %q", discarded, text)
	}
}

func TestW23_ArgumentsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	h := responder(t)
	said := kit.Object{"role": "assistant", "content": nil,
		"tool_calls": []kit.Object{{"id": "c1", "type": "function",
			"function": kit.Object{"name": "f", "arguments": "{"}}}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions",
		kit.Object{"model": "mock", "messages": []kit.Object{{"role": "user", "content": "hi"}, said,
			{"role": "tool", "tool_call_id": "c1", "content": "no"}, {"role": "user", "content": "hi"}}})
}
