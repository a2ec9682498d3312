package host_test

import (
	"context"
	"net/http"
	seq "slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// eavesdropper is a model that notes what it is asked.
type eavesdropper struct {
	model.Model
	mu    sync.Mutex
	asked []model.Request
}

func (l *eavesdropper) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	l.mu.Lock()
	l.asked = append(l.asked, r)
	l.mu.Unlock()
	return l.Model.Answer(ctx, r, watch)
}

// last gives what the agent with these instructions was told when it was last asked.
func (l *eavesdropper) last(system string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range seq.Backward(l.asked) {
		if !strings.Contains(r.System, system) {
			continue
		}
		var lines []string
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				line := string(m.Role) + ": "
				switch p.Type {
				case model.ToolCall:
					line += p.Name
				case model.Result:
					line += "= " + p.Text
				default:
					line += p.Text
				}
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, " | ")
	}
	return ""
}

// TestW18_LoopIn calls an agent into a conversation. It speaks there under its own name, with its own persona, knows
// what was said, and the caller goes on with what it said; later turns tell everybody apart.
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
	heard := &eavesdropper{Model: model.Rehearsal(script)}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	boss := persona(h, "boss", nil, "loop_in")
	lawyer := persona(h, "lawyer", nil)
	c := h.StartConversation("boss")
	over(h, speak(h, c.ID, "hello").ID)
	s := h.Connect(c.ID, -1)
	turn := speak(h, c.ID, "go")
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
	list := children(h, turn.ID)
	if len(list) != 1 || list[0].SessionID != c.ID || list[0].AgentID != lawyer.ID ||
		list[0].State != reeve.RunCompleted {
		t.Fatalf("%+v", list)
	}
	if got := pages(h, "lawyer", list[0].ID, 500); len(got) != 2 || messageIDs(got) != messageIDs(detail(h, list[0].ID).
		Messages) {
		t.Errorf("the lawyer's turn is %+v", got)
	}
	told := "user: hello | user: [boss] Good morning, I am the boss. | user: go | user: [boss] One moment, I ask our " +
		"lawyer. | user: [boss asks you] May we?"
	if got := heard.last("I am lawyer"); got != told {
		t.Errorf("the lawyer was told %s", got)
	}
	if _, said := results(h, turn.ID, "loop_in"); len(said) != 1 || said[0] != "You may." {
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
	// Whoever takes part can be spoken to; nobody else can.
	var direct reeve.Turn
	h.Want(http.StatusCreated, &direct, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "are you sure?", "agent": "lawyer"})
	d := over(h, direct.ID)
	if d.AgentID != lawyer.ID || d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
	told += " | assistant: You may. | user: [boss] So be it. | user: are you sure?"
	if got := heard.last("I am lawyer"); got != told {
		t.Errorf("the lawyer was told %s", got)
	}
	over(h, speak(h, c.ID, "well?").ID)
	told = "user: hello | assistant: Good morning, I am the boss. | user: go | assistant: One moment, I ask our " +
		"lawyer. | assistant: loop_in | user: = You may. | assistant: So be it." +
		" | user: are you sure? | user: [lawyer] You may. | user: well?"
	if got := heard.last("I am boss"); got != told {
		t.Errorf("the boss was told %s", got)
	}
	persona(h, "stranger", nil)
	for _, name := range []string{"stranger", "nobody"} {
		if r := h.Do("POST", "/api/conversations/"+c.ID+"/turns",
			object{"content": "hello?", "agent": name}); r.Status != http.StatusBadRequest &&
			r.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
}

// TestW18_NoConversation: a run that is no turn has nothing to call anybody into.
func TestW18_NoConversation(t *testing.T) {
	t.Parallel()
	h := talkerIn(t, t.TempDir(), `- {when: {tool: loop_in}, text: "I could not."}
- {when: {system: I am boss}, calls: [{name: loop_in, args: {agent: lawyer, input: "May we?"}}]}
`)
	persona(h, "boss", nil, "loop_in")
	persona(h, "lawyer", nil)
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/boss/wake", object{"input": "go"})
	var run reeve.Run
	for deadline := time.Now().Add(reevetest.Timeout); (run.ID == "" || !run.State.IsFinal()) && time.Now().
		Before(deadline); time.Sleep(10 * time.Millisecond) {
		if list := children(h, ""); len(list) == 1 {
			run = list[0]
		}
	}
	if run.State != reeve.RunCompleted || run.Output != "I could not." || len(children(h, run.ID)) != 0 {
		t.Errorf("%+v", run)
	}
}
