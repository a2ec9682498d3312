package wake_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/test/kit"
)

// A task goes to another agent. The test checks everything that follows.
func TestW17_Delegate(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {system: I am boss, said: go}, text: "I ask the writer.", calls: [{name: delegate, args: {agent: writer, input: "write a line about rain"}}]}
- {when: {system: I am boss, tool: delegate}, text: "The writer says: it pours."}
- {when: {system: I am writer, said: secret}, text: "I know what nobody told me."}
- {when: {system: I am writer, said: rain}, text: "It pours."}
`)
	kit.NewPersona(h, "boss", nil, "delegate")
	writer := kit.NewPersona(h, "writer", nil)
	c := h.StartConversation("boss")
	s := h.Connect(c.ID, -1)
	s.SendMessage("go, and the secret is 42")
	end := s.ReadTurns(1)
	if end.State != reeve.RunCompleted {
		t.Fatalf("%+v", end)
	}
	if got := kit.FrameTypes(s.Frames); got != "turn_started token message_complete tool_started tool_result token "+
		"message_complete turn_complete" {
		t.Errorf("frames: %s", got)
	}
	infos, said := kit.ListResults(h, end.TurnID, "delegate")
	if len(said) != 1 || said[0] != "It pours." || infos[0].Status != "success" {
		t.Fatalf("%q %+v", said, infos)
	}
	list := kit.ListChildren(h, end.TurnID)
	if len(list) != 1 {
		t.Fatalf("%d children", len(list))
	}
	child := list[0]
	if child.AgentID != writer.ID || child.State != reeve.RunCompleted || child.Output != "It pours." ||
		child.Input != "write a line about rain" || child.SessionID == c.ID {
		t.Errorf("%+v", child)
	}
	if len(child.Ancestors) != 1 || child.Ancestors[0].RunID != end.TurnID {
		t.Errorf("ancestors: %+v", child.Ancestors)
	}
	var talk reeve.Conversation
	h.Want(http.StatusOK, &talk, "GET", "/api/conversations/"+child.SessionID, nil)
	if talk.Origin != "delegate" || talk.AgentID != writer.ID || talk.Turns != 1 {
		t.Errorf("%+v", talk)
	}
	d := kit.GetTurn(h, end.TurnID)
	if d.Output != "The writer says: it pours." || d.ModelRequests != 2 {
		t.Errorf("%+v", d.Turn)
	}
	if own := child.Spent.Tokens; own == 0 || d.Spent.Tokens <= own || infos[0].Spent.Tokens != own {
		t.Errorf("the child cost %d tokens, the call %d, the parent %d in all", own, infos[0].Spent.Tokens,
			d.Spent.Tokens)
	}
}

// A delegation fails in every known way. Each time the caller gets the reason and continues.
func TestW17_FailuresAreTyped(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "I go on."}
- {when: {system: I am boss, said: ask nobody}, calls: [{name: delegate, args: {agent: nobody, input: hello}}]}
- {when: {system: I am boss, said: ask stranger}, calls: [{name: delegate, args: {agent: stranger, input: hello}}]}
- {when: {system: I am boss, said: ask failing}, calls: [{name: delegate, args: {agent: failing, input: hello}}]}
- {when: {system: I am boss, said: ask poor}, calls: [{name: delegate, args: {agent: poor, input: hello}}]}
- {when: {system: I am boss, said: ask slow}, calls: [{name: delegate, args: {agent: slow, input: hello}}]}
- {when: {system: I am boss, said: ask again}, calls: [{name: delegate, args: {agent: again, input: hello}}]}
- {when: {system: I am boss, said: ask asleep}, calls: [{name: delegate, args: {agent: asleep, input: hello}}]}
- {when: {system: I am boss, said: ask empty}, calls: [{name: delegate, args: {agent: failing, input: ""}}]}
- {when: {system: I am again}, calls: [{name: delegate, args: {agent: boss, input: "and you?"}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 200)+`", pace: 100ms}
- {when: {system: I am failing}, fail: {status: 400, message: broken}}
`)
	for _, name := range []string{"stranger", "failing", "slow", "nobody"} {
		kit.NewPersona(h, name, nil)
	}
	kit.NewPersona(h, "again", nil, "delegate")
	poor := kit.NewPersona(h, "poor", nil)
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:"+poor.ID, kit.Object{"limit": kit.Object{"tokens": 1}})
	kit.NewPersona(h, "asleep", nil)
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/asleep", kit.Object{"lifecycle": "dormant"})
	kit.NewPersona(h, "boss", nil, "delegate",
		kit.Object{"agents": []string{"nobody", "failing", "poor", "slow", "again", "asleep"}, "timeout_s": 1})
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/nobody", nil)
	c := h.StartConversation("boss")
	for said, want := range map[string]reeve.Code{"nobody": reeve.NotFound, "stranger": reeve.Denied,
		"failing": reeve.ModelFailed, "poor": reeve.BudgetExceeded, "slow": reeve.Timeout,
		"asleep": reeve.Conflict, "empty": reeve.Validation} {
		turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "ask "+said).ID)
		infos, _ := kit.ListResults(h, turn.ID, "delegate")
		if len(infos) != 1 || infos[0].Status != "error" || infos[0].Code != want {
			t.Errorf("%s: %+v, want %s", said, infos, want)
		}
		if turn.State != reeve.RunCompleted || turn.Output != "I go on." {
			t.Errorf("%s: the caller is %s: %q", said, turn.State, turn.Output)
		}
		for _, child := range kit.ListChildren(h, turn.ID) {
			if !child.State.IsFinal() {
				t.Errorf("%s: its child is %s", said, child.State)
			}
		}
	}
	turn := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "ask again").ID) // which asks back
	if _, said := kit.ListResults(h, turn.ID, "delegate"); len(said) != 1 || said[0] != "I go on." {
		t.Errorf("asked in a circle: %q", said)
	}
	back := kit.ListChildren(h, turn.ID)
	infos, said := kit.ListResults(h, back[0].ID, "delegate")
	if len(infos) != 1 || infos[0].Code != reeve.Denied || !strings.Contains(said[0], "boss → again → boss") {
		t.Errorf("the circle: %+v %q", infos, said)
	}
}

// A task whose time is up while it waits for an approval keeps waiting and completes after the approval.
func TestW17_WaitingForAPersonIsNotTimed(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: helper, input: go}}]}
- {when: {system: I am helper, tool: ask}, text: "Done."}
- {when: {system: I am helper, said: go}, calls: [{name: ask, args: {}}]}
`, kit.Tool("ask", reeve.Keyed, ran.Handle))
	kit.NewPersona(h, "boss", nil, "delegate", kit.Object{"timeout_s": 1}, "ask")
	kit.NewPersona(h, "helper", kit.Object{"policy": kit.Object{"tools": kit.Object{"ask": "ask"}}}, "ask")
	turn := kit.StartTurn(h, h.StartConversation("boss").ID, "go")
	kit.WaitForTurnWhere(h, turn.ID, func(api.TurnDetail) bool { // it was looked at, and left
		for _, op := range kit.ListOperations(h) {
			if op.Tool == "delegate" && op.NextAttemptAt.After(*op.TimeoutAt) {
				return true
			}
		}
		return false
	})
	var inbox api.Inbox
	h.Want(http.StatusOK, &inbox, "GET", "/api/inbox", nil)
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox.Approvals[0].ID+"/decision",
		kit.Object{"decision": "approve"})
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "Back." || ran.Count() != 1 {
		t.Errorf("%+v", d.Turn)
	}
}

// The caller of an agent that is removed or destroyed gets an error.
func TestW17_CalledAgentIsRemoved(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: delegate}, text: "Back."}
- {when: {system: I am boss}, calls: [{name: delegate, args: {agent: slow, input: go}}]}
- {when: {system: I am slow}, text: "`+strings.Repeat("word ", 500)+`", pace: 50ms}
`)
	kit.NewPersona(h, "boss", nil, "delegate")
	c := h.StartConversation("boss")
	for _, remove := range []func(id string){
		func(id string) {
			h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+id, kit.Object{"lifecycle": "destroyed",
				"name": "was-slow"})
		},
		func(id string) { h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+id, nil) },
	} {
		slow := kit.NewPersona(h, "slow", nil)
		turn := kit.StartTurn(h, c.ID, "go")
		kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
		remove(slow.ID)
		d := kit.WaitForTurn(h, turn.ID)
		if infos, _ := kit.ListResults(h, turn.ID, "delegate"); d.Output != "Back." || len(infos) != 1 ||
			infos[0].Code != reeve.Canceled {
			t.Errorf("%+v %+v", d.Turn, infos)
		}
	}
}
