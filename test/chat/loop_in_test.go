package chat_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An agent is called into a conversation. It speaks there under its own name and persona, knows the earlier messages,
// and the caller continues with what it said. Later turns distinguish all speakers.
func TestW18_LoopIn(t *testing.T) {
	t.Parallel()
	script, err := model.ParseScript([]byte(`answers:
- {when: {system: I am boss, said: hello}, text: "Good morning, I am the boss."}
- {when: {system: I am boss, said: go}, text: "One moment, I ask our lawyer.", calls: [{name: loop_in, args: {agent: lawyer, input: "May we?"}}]}
- {when: {system: I am boss, tool: loop_in}, text: "So be it."}
- {when: {system: I am lawyer}, text: "You may."}
- {when: {system: I am boss}, text: "Heard."}
`))
	if err != nil {
		t.Fatal(err)
	}
	heard := &kit.RecordingModel{Model: model.Rehearsal(script)}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	boss := kit.NewPersona(h, "boss", nil, "loop_in")
	lawyer := kit.NewPersona(h, "lawyer", nil)
	c := h.StartConversation("boss")
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID)
	s := h.Connect(c.ID, -1)
	turn := kit.StartTurn(h, c.ID, "go")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameComplete && f.TurnID == turn.ID })
	var spoken []string
	for _, f := range s.Frames {
		switch f.Type {
		case reeve.FrameMessage, reeve.FrameStarted:
			who := map[string]string{boss.ID: "boss", lawyer.ID: "lawyer"}[f.AgentID]
			if f.Type == reeve.FrameStarted {
				who = "to " + who
			}
			spoken = append(spoken, who+": "+f.Text)
		default:
		}
	}
	want := "to boss: go, boss: One moment, I ask our lawyer., to lawyer: May we?, lawyer: You may., boss: So be it."
	if got := strings.Join(spoken, ", "); got != want {
		t.Errorf("heard %s", got)
	}
	list := kit.ListChildren(h, turn.ID)
	if len(list) != 1 || list[0].SessionID != c.ID || list[0].AgentID != lawyer.ID ||
		list[0].State != reeve.RunCompleted {
		t.Fatalf("%+v", list)
	}
	if got := readPages(h, "lawyer", list[0].ID, 500); len(got) != 2 ||
		messageIDs(got) != messageIDs(kit.GetTurn(h, list[0].ID).
			Messages) {
		t.Errorf("the lawyer's turn is %+v", got)
	}
	told := "user: hello | user: [boss] Good morning, I am the boss. | user: go | user: [boss] One moment, I ask our " +
		"lawyer. | user: [boss asks you] May we?"
	if got := heard.LastPrompt("I am lawyer"); got != told {
		t.Errorf("the lawyer was told %s", got)
	}
	if _, said := kit.ListResults(h, turn.ID, "loop_in"); len(said) != 1 || said[0] != "You may." {
		t.Errorf("the caller was told %q", said)
	}
	var now reeve.Conversation
	h.Want(http.StatusOK, &now, "GET", "/api/conversations/"+c.ID, nil)
	joined := false
	for _, p := range now.Participants {
		joined = joined || p.Kind == reeve.AgentParticipant && p.ID == lawyer.ID && p.AddedBy == turn.ID
	}
	if !joined || now.AgentID != boss.ID || now.Turns != 3 {
		t.Errorf("%+v", now)
	}
	// A person can address any agent that is a participant, and no other agent.
	var direct reeve.Turn
	h.Want(http.StatusCreated, &direct, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "are you sure?", "agent": "lawyer"})
	d := kit.WaitForTurn(h, direct.ID)
	if d.AgentID != lawyer.ID || d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
	told += " | assistant: You may. | user: [boss] So be it. | user: are you sure?"
	if got := heard.LastPrompt("I am lawyer"); got != told {
		t.Errorf("the lawyer was told %s", got)
	}
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "well?").ID)
	told = "user: hello | assistant: Good morning, I am the boss. | user: go | assistant: One moment, I ask our " +
		"lawyer. | assistant: loop_in | user: = You may. | assistant: So be it." +
		" | user: are you sure? | user: [lawyer] You may. | user: well?"
	if got := heard.LastPrompt("I am boss"); got != told {
		t.Errorf("the boss was told %s", got)
	}
	kit.NewPersona(h, "stranger", nil)
	for _, name := range []string{"stranger", "nobody"} {
		if r := h.Do("POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": "hello?", "agent": name}); r.Status != http.StatusBadRequest &&
			r.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
}

// A run that is not a turn cannot loop an agent in.
func TestW18_NoConversation(t *testing.T) {
	t.Parallel()
	h := kit.RunScriptedIn(t, t.TempDir(), `- {when: {tool: loop_in}, text: "I could not."}
- {when: {system: I am boss}, calls: [{name: loop_in, args: {agent: lawyer, input: "May we?"}}]}
`)
	kit.NewPersona(h, "boss", nil, "loop_in")
	kit.NewPersona(h, "lawyer", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/boss/wake", kit.Object{"input": "go"})
	var run reeve.Run
	for deadline := time.Now().Add(reevetest.Timeout); (run.ID == "" || !run.State.IsFinal()) && time.Now().
		Before(deadline); time.Sleep(10 * time.Millisecond) {
		if list := kit.ListChildren(h, ""); len(list) == 1 {
			run = list[0]
		}
	}
	if run.State != reeve.RunCompleted || run.Output != "I could not." || len(kit.ListChildren(h, run.ID)) != 0 {
		t.Errorf("%+v", run)
	}
}
