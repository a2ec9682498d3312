package host_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// as gives the headers of another user's token, made by the owner.
func as(h *reevetest.Host, user, role string) []string {
	h.T.Helper()
	var made struct {
		Token string `json:"token"`
	}
	h.Want(http.StatusCreated, &made, "POST", "/api/tokens", object{"name": user, "user": user, "role": role})
	return []string{"Authorization", "Bearer " + made.Token}
}

// TestO11_AConversationIsItsParticipants tries every way around the routes of conversations.
func TestO11_AConversationIsItsParticipants(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	h := talker(t, farScript+
		"- {when: write, calls: [{name: write_file, args: {path: /diary.md, content: mine}}]}\n- {when: {tool: "+
		"write_file}, text: 'Written.'}\n", far(&sent))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": "write_file"})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": "read_file"})
	c := h.StartConversation("bot")
	over(h, speak(h, c.ID, "write").ID)
	turn := speak(h, c.ID, "begin")
	var op reeve.Operation
	until(h, turn.ID, func(d api.TurnDetail) bool {
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
		bob := as(h, "bob-"+role, role)
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
	bob := as(h, "bob", "member")
	for name, body := range map[string]object{
		"session": {"tool": "read_file", "args": object{"path": "/diary.md"}, "session": c.ID},
		"run":     {"tool": "read_file", "args": object{"path": "/diary.md"}, "run": turn.ID},
	} {
		if r := h.Do("POST", "/api/agents/bot/calls", body, bob...); r.Status != http.StatusNotFound {
			t.Errorf("a call in another's %s: %d %s", name, r.Status, r.Body)
		}
	}
	h.Want(http.StatusNotFound, nil, "POST", "/api/operations/"+op.ID+"/result", object{"content": "forged"}, bob...)
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/result", object{"content": "true"})
	over(h, turn.ID)
}

// Of two people whose parts are ended at the same moment one stays: a conversation is somebody's.
func TestO11_AConversationKeepsAPerson(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		h.Agent("bot")
		ann := as(h, "ann", "member")
		as(h, "bob", "member")
		for range 20 {
			var c reeve.Conversation
			h.Want(http.StatusCreated, &c, "POST", "/api/conversations",
				object{"agent": "bot", "participants": []string{"bob"}}, ann...)
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
	h := talker(t, "- {when: hello, text: hi}\n")
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	h.Want(http.StatusCreated, &made, "POST", "/api/tokens", object{"name": "bob", "user": "bob", "role": "member"})
	c := h.StartConversation("bot")
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		object{"kind": "user", "id": "bob"})
	s, _ := h.Dial(h.URL+"/conversations/"+c.ID, "Authorization", "Bearer "+made.Token, "X-Workspace-Id", "default")
	if f := s.ReadFrame(); f.Type != reeve.FrameConnected {
		t.Fatalf("%+v", f)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c.ID+"/participants/bob?kind=user", nil)
	if code := s.ReadUntilClosed(); code != 1008 {
		t.Errorf("the connection ended with %d", code)
	}
}

func TestL01_ADestroyedAgentEndsItsTurns(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"lifecycle": "destroyed"})
	end := s.ReadTurns(1)
	if end.State != reeve.RunCancelled {
		t.Errorf("%+v", end)
	}
	for _, f := range s.Frames {
		if f.Type == reeve.FrameMessage {
			t.Error("a turn that was over said something")
		}
	}
}

func TestG23_TheKillSwitchStopsATurnInMidStream(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{})
	if end := s.ReadTurns(1); end.State != reeve.RunCancelled || end.Code != reeve.Stopped {
		t.Errorf("%+v", end)
	}
	if d := turns(h, c.ID)[0]; d.Spent.Tokens == 0 && d.ModelRequests != 0 {
		t.Errorf("%+v", d)
	}
}

func TestW20_NothingIsDoneBeyondTheLimit(t *testing.T) {
	t.Parallel()
	var n counter
	h := talkerIn(t, t.TempDir(), "- {when: {system: LOOP}, calls: [{name: effect, args: {}}]}\n",
		tool("effect", reeve.Keyed, n.handle))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		object{"name": "bot", "config": object{"instructions": "LOOP", "max_model_requests": 2}})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": "effect"})
	d := over(h, speak(h, h.StartConversation("bot").ID, "go").ID)
	if d.Code != reeve.StepLimit || n.count() != 2 {
		t.Errorf("%d effects, %+v", n.count(), d.Turn)
	}
}

func TestW12_AnAnswerBegunAgainAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "- {when: slow, text: 'w01 w02 w03 w04 w05 w06 w07 w08 w09 w10', pace: 60ms}\n"
	h := talkerIn(t, dir, script)
	h.Agent("bot")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	last := reeve.Frame{}
	for range 4 {
		last = s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	h.Stop()
	h = talkerIn(t, dir, script)
	s = h.Connect(c.ID, last.Seq)
	s.ReadTurns(1)
	text, discarded, seq := "", false, last.Seq
	for _, f := range s.Frames {
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

func TestG17_AnAnswerThatIsGivenUpIsCharged(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace",
		object{"on_exceed": "end", "limit": object{"tokens": 1_000_000}})
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	token := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+token.TurnID+"/cancel", nil)
	s.ReadTurns(1)
	h.Stop() // which waits for what is under way
	h = talkerIn(t, h.Config.Dir, "- {text: x}\n")
	var list struct {
		Budgets []reeve.Budget `json:"budgets"`
	}
	h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil)
	if len(list.Budgets) != 1 || list.Budgets[0].Used.Tokens == 0 {
		t.Errorf("%+v", list.Budgets)
	}
	if spent := detail(h, token.TurnID).Spent; spent.Tokens != list.Budgets[0].Used.Tokens {
		t.Errorf("the turn spent %+v, of %+v", spent, list.Budgets)
	}
}

// A budget that is set while an agent talks, and calls nothing, holds from its next turn on.
func TestG17_ABudgetThatIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {text: x}\n")
	s := h.Connect(h.StartConversation("bot").ID, -1)
	s.SendMessage("one")
	s.ReadTurns(1)
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:bot",
		object{"on_exceed": "end", "limit": object{"tokens": 1}})
	s.SendMessage("two")
	eventually(t, "its end", func() bool { return len(runsOf(h, "state=failed")) == 1 })
	if failed := runsOf(h, "state=failed")[0]; failed.Code != reeve.BudgetExceeded || failed.Input != "two" {
		t.Errorf("%+v", failed)
	}
}

func TestW23_ArgumentsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	h := responder(t)
	said := object{"role": "assistant", "content": nil,
		"tool_calls": []object{{"id": "c1", "type": "function", "function": object{"name": "f", "arguments": "{"}}}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions",
		object{"model": "mock", "messages": []object{{"role": "user", "content": "hi"}, said,
			{"role": "tool", "tool_call_id": "c1", "content": "no"}, {"role": "user", "content": "hi"}}})
}
