package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	seq "slices"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The messages of a turn are its own thoughts and calls, without those of other turns of the conversation.
func TestW14_TheMessagesOfATurn(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: write, calls: [{name: write_file, args: {path: /diary.md, content: mine}}]}\n- "+
		"{when: "+
		"{tool: write_file}, text: 'Written.'}\n- {when: hello, text: 'Hi.'}\n")
	for _, tool := range []string{"write_file", "read_file"} {
		h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": tool})
	}
	h.Agent("other", "read_file")
	c := h.StartConversation("bot")
	var list []string
	for _, text := range []string{"hello", "write", "hello"} {
		turn := kit.StartTurn(h, c.ID, text)
		kit.WaitForTurn(h, turn.ID)
		list = append(list, turn.ID)
	}
	byHand := kit.Object{"tool": "read_file", "args": kit.Object{"path": "/diary.md"}, "run": list[1]}
	// the turn is over; the refusal is recorded in it
	h.Want(http.StatusConflict, nil, "POST", "/api/agents/bot/calls", byHand)
	for i, want := range []int{2, 7, 2} {
		whole := kit.GetTurn(h, list[i]).Messages
		if len(whole) != want {
			t.Errorf("turn %d has %d messages, want %d", i, len(whole), want)
		}
		for _, limit := range []int{1, 2, 3, 500} {
			if got := readPages(h, "bot", list[i], limit); messageIDs(got) != messageIDs(whole) {
				t.Errorf("turn %d in pages of %d:\n%s, want\n%s", i, limit, messageIDs(got), messageIDs(whole))
			}
		}
	}
	if got := readPages(h, "other", list[1], 500); len(got) != 0 {
		t.Errorf("another agent has %d messages in the turn", len(got))
	}
	bob := kit.NewTokenFor(h, "bob", "viewer")
	if got := readPages(h, "bot", list[1], 500, bob...); len(got) != 0 {
		t.Errorf("somebody who does not see the conversation reads %d messages of its turn", len(got))
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		kit.Object{"kind": "user", "id": "bob"})
	if got := readPages(h, "bot", list[2], 500, bob...); messageIDs(got) != messageIDs(kit.GetTurn(h, list[2]).Messages) {
		t.Errorf("somebody who takes part reads %+v", got)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/"+c.AgentID, nil)
	if got := readPages(h, c.AgentID, list[0], 500); len(got) != 2 {
		t.Errorf("of an agent that is gone: %+v", got)
	}
}

func TestW11_ARestartWithWorkPending(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	dir := t.TempDir()
	h := kit.RunScriptedIn(t, dir, farScript, newFarTool(&sent))
	h.Agent("bot", "far")
	c := h.StartConversation("bot")
	turn := kit.StartTurn(h, c.ID, "begin")
	var op reeve.Operation
	kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool {
		var list struct {
			Operations []reeve.Operation `json:"operations"`
		}
		h.Want(http.StatusOK, &list, "GET", "/api/operations", nil)
		if len(list.Operations) == 1 && list.Operations[0].TimeoutAt != nil {
			op = list.Operations[0]
		}
		return d.State == reeve.RunParked && op.ID != ""
	})
	h.Stop()
	h = kit.RunScriptedIn(t, dir, farScript, newFarTool(&sent))
	// a result must have either content or error
	for _, none := range []kit.Object{{}, {"error": ""}, {"error": nil}, {"content": nil},
		{"content": "42", "error": "no"},
		{"content": nil, "error": "no"}} {
		h.Want(http.StatusBadRequest, nil, "POST", "/api/operations/"+op.ID+"/result", none)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "42"})
	d := kit.WaitForTurn(h, turn.ID)
	if d.State != reeve.RunCompleted || d.Output != "It is done." || d.ModelRequests != 3 {
		t.Errorf("%+v", d.Turn)
	}
	sent.Range(func(op, n any) bool {
		if *n.(*int) != 1 {
			t.Errorf("%v was sent %d times", op, *n.(*int))
		}
		return true
	})
	kit.CheckTurn(t, h, d)
	// a second time
	h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/result", kit.Object{"content": "43"})
	if again := kit.GetTurn(h, turn.ID); len(again.Messages) != len(d.Messages) {
		t.Error("a second result changed the turn")
	}
}

func TestI08_TheToolsOfATurn(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: begin, calls: [{name: one, args: {}}, {name: two, args: {}}]}\n- {when: {tool: "+
		"two}, "+
		"text: done}\n",
		kit.Tool("one", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "1", nil }),
		kit.Tool("two", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "2", nil }))
	c := h.StartConversation("bot")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "begin", "tools": []string{"two"}})
	d := kit.WaitForTurn(h, turn.ID)
	if d.Issues.ToolFailures != 1 {
		t.Errorf("with the tool two alone: %+v", d.Turn)
	}
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "begin").ID); d.Issues.ToolFailures != 0 {
		t.Errorf("with the agent's own: %+v", d.Turn)
	}
}

func TestW07_MappingComesAfterValidation(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- string(b)
		fmt.Fprint(w, `"ok"`)
	}))
	defer far.Close()
	file := kit.WriteScript(t,
		"- {when: begin, calls: [{name: order, args: {n: 2, note: secret, extra: x}}]}\n- {when: "+
			"{tool: order}, text: done}\n")
	cfg := host.Config{Dir: t.TempDir(), HTTPAllow: []string{"127.0.0.1"}}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", file
	h := reevetest.Run(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", kit.Object{"id": "order", "description": "Order something.",
		"effect": "keyed", "tier": "side_effecting",
		"parameters": kit.Object{"type": "object", "properties": kit.Object{"n": kit.Object{"type": "integer"},
			"note": kit.Object{"type": "string"}, "extra": kit.Object{"type": "string"}}},
		"spec": kit.Object{"method": "POST", "url": far.URL, "body": kit.Object{"amount": "n"}}})
	h.Agent("bot", "order")
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || d.Issues.ToolFailures != 0 {
		t.Fatalf("%+v", d.Turn)
	}
	if body := <-got; body != `{"amount":2}` {
		t.Errorf("sent %s", body)
	}
}

// turnWatcher records the hooks that run around a turn, in order.
type turnWatcher struct {
	mu   sync.Mutex
	seen map[string][]string // by turn
}

func (s *turnWatcher) add(turn, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[turn] = append(s.seen[turn], what)
}

// Assemble implements host.Assembler: it records the call and returns the built-in request.
func (s *turnWatcher) Assemble(_ context.Context, in host.AssemblyInput) (model.Request, error) {
	s.add(in.TurnID, "assemble")
	return model.Request{Model: in.ModelProfileID, System: in.TurnID, Messages: []model.Message{in.UserMessage}}, nil
}

// Extract implements host.Extractor.
func (s *turnWatcher) Extract(_ context.Context, in host.ExtractionInput) ([]string, error) {
	s.add(in.TurnID, "extract")
	return nil, nil
}

// Answer implements model.Model: it calls a tool once, then says that it is done; told to fail, it fails.
func (s *turnWatcher) Answer(_ context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	s.add(r.System, "ask")
	last := r.Messages[len(r.Messages)-1].Parts[0]
	switch {
	case last.Type == model.Result:
		return model.Answer{Stop: model.StopEnd, Parts: []model.Part{{Type: model.Text, Text: "done"}}}, nil
	case last.Text == "fail":
		return model.Answer{}, reeve.Errorf(reeve.ModelFailed, "it will not")
	}
	return model.Answer{Stop: model.StopTools,
		Parts: []model.Part{{Type: model.ToolCall, ID: "c1", Name: last.Text, Args: json.RawMessage("{}")}}}, nil
}

func TestW22_InvariantsOfEveryTurn(t *testing.T) {
	t.Parallel()
	s := &turnWatcher{seen: map[string][]string{}}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: s, Assemble: s, Extract: s},
		kit.Tool("good", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "seen", nil }),
		kit.Tool("bad", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, reeve.Errorf(reeve.ToolFailed, "no")
		}))
	h.Agent("bot", "good", "bad")
	c := h.StartConversation("bot")
	for text, want := range map[string]string{"good": "assemble ask ask extract", "bad": "assemble ask ask extract",
		"nosuch": "assemble ask ask extract", "fail": "assemble ask"} {
		d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, text).ID)
		kit.CheckTurn(t, h, d)
		s.mu.Lock()
		if got := strings.Join(s.seen[d.ID], " "); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
		s.mu.Unlock()
	}
}

// Tools of a turn that do not exist are refused, each with its position, and no message is stored.
func TestW06_UnknownToolsOfATurnAreRefused(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {text: hi}\n")
	c := h.StartConversation("bot")
	var p api.Problem
	r := h.Do("POST", "/api/conversations/"+c.ID+"/turns",
		kit.Object{"content": "hello", "tools": []string{"read_file", "raed_file"}})
	if r.Decode(t, &p); r.Status/100 != 4 || p.Code != reeve.Validation || len(p.Errors) != 1 ||
		p.Errors[0].Path != "/tools/1" {
		t.Errorf("%d %+v", r.Status, p)
	}
	if n := len(kit.ListTurns(h, c.ID)); n != 0 {
		t.Errorf("%d turns", n)
	}
	if d := kit.WaitForTurn(h,
		kit.StartTurnWith(h, c.ID, kit.Object{"content": "hello", "tools": []string{"read_file"}}).
			ID); d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
}

func TestW20_NoCallBeyondTheLimit(t *testing.T) {
	t.Parallel()
	var n kit.Counter
	h := kit.RunScriptedIn(t, t.TempDir(), "- {when: {system: LOOP}, calls: [{name: effect, args: {}}]}\n",
		kit.Tool("effect", reeve.Keyed, n.Handle))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "bot", "config": kit.Object{"instructions": "LOOP", "max_model_requests": 2}})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", kit.Object{"tool_id": "effect"})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "go").ID)
	if d.Code != reeve.StepLimit || n.Count() != 2 {
		t.Errorf("%d effects, %+v", n.Count(), d.Turn)
	}
}

func TestW23_ArgumentsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	h := runForOpenAI(t)
	said := kit.Object{"role": "assistant", "content": nil,
		"tool_calls": []kit.Object{{"id": "c1", "type": "function",
			"function": kit.Object{"name": "f", "arguments": "{"}}}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions",
		kit.Object{"model": "mock", "messages": []kit.Object{{"role": "user", "content": "hi"}, said,
			{"role": "tool", "tool_call_id": "c1", "content": "no"}, {"role": "user", "content": "hi"}}})
}

func TestW01_TurnWithTextOnly(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, `- {text: "Good morning. What can I do for you today?", pace: 1ms}`)
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("hello")
	end := s.ReadTurns(1)
	if end.State != reeve.RunCompleted {
		t.Fatalf("%+v", end)
	}
	if got := kit.FrameTypes(s.Frames); got != "turn_started token message_complete turn_complete" {
		t.Errorf("frames: %s", got)
	}
	d := kit.GetTurn(h, end.TurnID)
	said := listAnswers(t, d)
	whole := s.Frames[len(s.Frames)-2]
	if len(said) != 1 || said[0] != s.TurnText(end.TurnID) || said[0] != whole.Text || d.Output != said[0] ||
		!strings.HasPrefix(said[0], "Good morning") {
		t.Errorf("stored %q, streamed %q, told %q, output %q", said, s.TurnText(end.TurnID), whole.Text, d.Output)
	}
	people := seq.DeleteFunc(seq.Clone(d.Messages), func(m reeve.Message) bool { return m.Kind != reeve.UserMessage })
	if len(people) != 1 || people[0].Content != "hello" || d.State != reeve.RunCompleted {
		t.Errorf("%d user messages, turn %s", len(people), d.State)
	}
}
