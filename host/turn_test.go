package host_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// speak begins a turn over REST.
func speak(h *reevetest.Host, conversation, text string) (turn reeve.Turn) {
	h.T.Helper()
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+conversation+"/turns", object{"content": text})
	return turn
}

// over waits until a turn has ended.
func over(h *reevetest.Host, turn string) api.TurnDetail {
	h.T.Helper()
	return until(h, turn, func(d api.TurnDetail) bool { return d.State.IsFinal() })
}

// until waits until a turn is as it should be.
func until(h *reevetest.Host, turn string, is func(api.TurnDetail) bool) api.TurnDetail {
	h.T.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		d := detail(h, turn)
		if is(d) {
			return d
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("the turn is %+v", d.Turn)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// rules checks what must hold of every recorded turn (W22): it has ended, every call has one result, answers come in
// order.
func rules(t *testing.T, h *reevetest.Host, d api.TurnDetail) {
	t.Helper()
	if !d.State.IsFinal() || d.FinishedAt == nil {
		t.Errorf("turn %s is %s", d.ID, d.State)
	}
	results := map[string]int{}
	last := ""
	for i, m := range d.Messages {
		switch {
		case m.Kind == reeve.ToolResult:
			results[m.ActionID]++
			if m.ActionID != last {
				t.Errorf("message %d is not behind its call", i)
			}
		case m.ID <= last:
			t.Errorf("message %d is out of order", i)
		default:
			last = m.ID
		}
	}
	for _, m := range d.Messages {
		if m.Kind == reeve.Action && results[m.ID] != 1 {
			t.Errorf("call %s has %d results", m.ID, results[m.ID])
		}
	}
	var frames struct {
		Frames []reeve.Frame `json:"frames"`
	}
	h.Want(http.StatusOK, &frames, "GET", "/api/conversations/"+d.ConversationID+"/frames", nil)
	seq, started, complete := int64(0), 0, 0
	for _, f := range frames.Frames {
		if f.Seq <= seq {
			t.Errorf("frame %d follows %d", f.Seq, seq)
		}
		seq = f.Seq
		if f.TurnID == d.ID && f.Type == reeve.FrameStarted {
			started++
		}
		if f.TurnID == d.ID && f.Type == reeve.FrameComplete {
			complete++
		}
	}
	if started != 1 || complete != 1 {
		t.Errorf("turn %s was told to begin %d times and to end %d times", d.ID, started, complete)
	}
}

func TestW08_ARetryTellsClientsToDiscard(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: {said: hello, every: 2}, text: 'one two three four', fail: {cut: true, after: 2}}\n- "+
		"{when: hello, text: 'five six'}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("hello")
	end := s.ReadTurns(1)
	discarded := false
	for _, f := range s.Frames {
		discarded = discarded || f.Type == reeve.FrameToken && f.Discard
	}
	d := detail(h, end.TurnID)
	if !discarded || d.State != reeve.RunCompleted || d.Output != "five six" || d.ModelRequests != 1 {
		t.Errorf("discarded %v, %+v", discarded, d.Turn)
	}
	rules(t, h, d)
}

func TestW08_AModelThatStaysDownFailsTheTurnOnly(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: down, fail: {status: 500, message: broken}}\n- {when: nonsense, fail: {nonsense: "+
		"true}}\n- {when: hello, text: 'I am here.'}\n")
	c := h.StartConversation("bot")
	for text, code := range map[string]reeve.Code{"down": reeve.Unavailable, "nonsense": reeve.ModelFailed} {
		d := over(h, speak(h, c.ID, text).ID)
		if d.State != reeve.RunFailed || d.Code != code {
			t.Errorf("%s: %+v", text, d.Turn)
		}
		rules(t, h, d)
	}
	if d := over(h, speak(h, c.ID, "hello").ID); d.State != reeve.RunCompleted || d.Output != "I am here." {
		t.Errorf("the conversation goes on: %+v", d.Turn)
	}
}

func TestW10_AHungToolTimesOutAndTheModelIsTold(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	defer close(end)
	hang := tool("hang", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		<-end
		return "too late", nil
	})
	hang.TimeoutMS = 50
	h := talker(t, "- {when: begin, calls: [{name: hang, args: {}}]}\n- {when: {result: TIMEOUT}, text: 'It hangs.'}\n",
		hang)
	d := over(h, speak(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || d.Output != "It hangs." || d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d.Turn)
	}
	rules(t, h, d)
}

// far is an asynchronous tool whose outcome is delivered from outside.
func far(sent *sync.Map) reeve.Tool {
	t := tool("far", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		n, _ := sent.LoadOrStore(inv.Operation, new(int))
		*n.(*int)++
		return nil, reeve.Errorf(reeve.InProgress, "it will come")
	})
	t.Async, t.TimeoutMS = true, 60_000
	return t
}

const farScript = "- {when: begin, calls: [{name: far, args: {}}]}\n- {when: {result: Started}, text: 'I have " +
	"begun.'}\n- {when: has arrived, text: 'It is done.'}\n"

func TestW11_ARestartWithWorkPending(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	dir := t.TempDir()
	h := talkerIn(t, dir, farScript, far(&sent))
	h.Agent("bot", "far")
	c := h.StartConversation("bot")
	turn := speak(h, c.ID, "begin")
	var op reeve.Operation
	until(h, turn.ID, func(d api.TurnDetail) bool {
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
	h = talkerIn(t, dir, farScript, far(&sent))
	// which of the two it is nobody can tell
	for _, none := range []object{{}, {"error": ""}, {"error": nil}, {"content": nil}, {"content": "42", "error": "no"},
		{"content": nil, "error": "no"}} {
		h.Want(http.StatusBadRequest, nil, "POST", "/api/operations/"+op.ID+"/result", none)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/result", object{"content": "42"})
	d := over(h, turn.ID)
	if d.State != reeve.RunCompleted || d.Output != "It is done." || d.ModelRequests != 3 {
		t.Errorf("%+v", d.Turn)
	}
	sent.Range(func(op, n any) bool {
		if *n.(*int) != 1 {
			t.Errorf("%v was sent %d times", op, *n.(*int))
		}
		return true
	})
	rules(t, h, d)
	// a second time
	h.Want(http.StatusConflict, nil, "POST", "/api/operations/"+op.ID+"/result", object{"content": "43"})
	if again := detail(h, turn.ID); len(again.Messages) != len(d.Messages) {
		t.Error("a second result changed the turn")
	}
}

func TestI08_TheToolsOfATurn(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: begin, calls: [{name: one, args: {}}, {name: two, args: {}}]}\n- {when: {tool: two}, "+
		"text: done}\n",
		tool("one", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "1", nil }),
		tool("two", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "2", nil }))
	c := h.StartConversation("bot")
	var turn reeve.Turn
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "begin", "tools": []string{"two"}})
	d := over(h, turn.ID)
	if d.Issues.ToolFailures != 1 {
		t.Errorf("with the tool two alone: %+v", d.Turn)
	}
	if d := over(h, speak(h, c.ID, "begin").ID); d.Issues.ToolFailures != 0 {
		t.Errorf("with the agent's own: %+v", d.Turn)
	}
}

// What people call a model is no name of a series: each would be kept for ever, and shown to whoever looks.
func TestI19_ModelsThatNobodyKnowsAreCountedTogether(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: begin, text: done}\n")
	for _, model := range []string{"rehearsal/made-up", "made-up"} {
		var turn reeve.Turn
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+h.StartConversation("bot").
			ID+"/turns", object{"content": "begin", "model": model})
		over(h, turn.ID)
	}
	metrics := string(h.Do("GET", "/metrics", nil).Body)
	if strings.Contains(metrics, "made-up") ||
		!strings.Contains(metrics, `reeve_model_answers_total{code="",model="rehearsal"} 1`) ||
		!strings.Contains(metrics, `reeve_model_seconds_count{model="other"} 1`) {
		t.Errorf("/metrics:\n%s", metrics)
	}
}

// An operation of which a person has said what becomes of it waits for nobody.
func TestI19_WhatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, tool("send", reeve.Unsafe, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	}))
	res := h.Call(h.Agent("a", "send").ID, "send", nil)
	for _, n := range []string{"1", "0"} {
		if metrics := string(h.Do("GET", "/metrics", nil).Body); !strings.Contains(metrics,
			`reeve_waiting{what="operations_for_a_person"} `+n+"\n") {
			t.Errorf("not %s: %s", n, metrics)
		}
		if n == "1" {
			h.Want(http.StatusOK, nil, "POST", "/api/operations/"+res.OperationID+"/resolve",
				object{"resolution": "skip"})
		}
	}
}

func TestW04_ParallelTurnsWhileOneWaits(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	h := talker(t, farScript+"- {when: weather, text: 'It rains.'}\n", far(&sent))
	c := h.StartConversation("bot")
	first := speak(h, c.ID, "begin")
	until(h, first.ID, func(d api.TurnDetail) bool { return d.State == reeve.RunParked })
	if d := over(h, speak(h, c.ID, "the weather?").ID); d.Output != "It rains." {
		t.Errorf("%+v", d.Turn)
	}
	if d := detail(h, first.ID); d.State != reeve.RunParked {
		t.Errorf("the first turn is %+v", d.Turn)
	}
}

// responder is a Reeve as OpenAI clients see it, with the script that other makers' clients are tried with.
func responder(t *testing.T) *reevetest.Host {
	t.Helper()
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", "../model/testdata/clients.yaml"
	h := reevetest.Run(t, cfg,
		tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "seen", nil }))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents", object{"name": "mock", "config": object{"model": "mock"}})
	return h
}

// weather is a tool that the client offers.
var weather = object{"type": "function", "function": object{"name": "get_weather",
	"parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}}}}

func TestW23_ChatCompletions(t *testing.T) {
	t.Parallel()
	h := responder(t)
	var models struct{ Data []struct{ ID string } }
	h.Want(http.StatusOK, &models, "GET", "/v1/models", nil, "X-Workspace-Id", "")
	if len(models.Data) != 1 || models.Data[0].ID != "mock" {
		t.Fatalf("%+v", models)
	}
	type completion struct {
		Choices []struct {
			Message struct {
				Content   string
				ToolCalls []struct {
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Total      int `json:"total_tokens"`
		}
	}
	ask := func(body object) (c completion) {
		t.Helper()
		body["model"] = "mock"
		h.Want(http.StatusOK, &c, "POST", "/v1/chat/completions", body, "X-Workspace-Id", "")
		return c
	}
	user := func(text string) object { return object{"role": "user", "content": text} }
	plain := ask(object{"messages": []object{user("hi")}})
	if c := plain.Choices[0]; c.Message.Content != "Hello, how can I help you today?" || c.Finish != "stop" ||
		plain.Usage.Total != plain.Usage.Prompt+plain.Usage.Completion {
		t.Errorf("%+v", plain)
	}
	called := ask(object{"messages": []object{user("weather in two cities?")}, "tools": []object{weather}})
	calls := called.Choices[0].Message.ToolCalls
	if called.Choices[0].Finish != "tool_calls" || len(calls) != 2 ||
		calls[1].Function.Arguments != `{"city":"Rome"}` || calls[0].ID == calls[1].ID {
		t.Fatalf("%+v", called)
	}
	said := object{"role": "assistant",
		"tool_calls": []object{{"id": calls[0].ID, "type": "function", "function": object{"name": "get_weather",
			"arguments": `{"city":"Paris"}`}}}}
	answered := ask(object{"messages": []object{user("weather in Paris?"), said,
		{"role": "tool", "tool_call_id": calls[0].ID, "content": "21"}}, "tools": []object{weather}})
	if got := answered.Choices[0].Message.Content; got != "It is 21 degrees there." {
		t.Errorf("with the result the answer is %q", got)
	}
	stream := string(h.Do("POST", "/v1/chat/completions", object{"model": "mock", "messages": []object{user("hi")},
		"stream": true}, "X-Workspace-Id", "").Body)
	if !strings.HasSuffix(stream, "data: [DONE]\n\n") || strings.Count(stream, `"content"`) < 4 {
		t.Errorf("streamed %s", stream)
	}
	for name, body := range map[string]object{
		"no messages":             {"messages": []object{}},
		"an unknown role":         {"messages": []object{{"role": "wizard", "content": "x"}}},
		"a result without a call": {"messages": []object{{"role": "tool", "tool_call_id": "x", "content": "21"}}},
		"two answers":             {"messages": []object{user("hi")}, "n": 2},
		"a picture that is no URL": {"messages": []object{{"role": "user",
			"content": []object{{"type": "image_url", "image_url": object{"url": "ftp://x"}}}}}},
	} {
		body["model"] = "mock"
		if r := h.Do("POST", "/v1/chat/completions", body); r.Status != http.StatusBadRequest ||
			!strings.Contains(string(r.Body), `"error"`) {
			t.Errorf("%s: status %d, %s", name, r.Status, r.Body)
		}
	}
	if r := h.Do("POST", "/v1/chat/completions",
		object{"model": "bad", "messages": []object{user("hi")}}); r.Status != http.StatusNotFound ||
		!strings.Contains(string(r.Body), "model_not_found") {
		t.Errorf("an unknown model: status %d, %s", r.Status, r.Body)
	}
	if r := h.Do("GET", "/v1/models", nil, "Authorization", "Bearer wrong"); r.Status != http.StatusUnauthorized ||
		!strings.Contains(string(r.Body), "invalid_api_key") {
		t.Errorf("a wrong key: status %d, %s", r.Status, r.Body)
	}
	// which the owner's token is of, too
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", object{"id": "acme"})
	if r := h.Do("GET", "/v1/models", nil, "X-Workspace-Id", ""); r.Status != http.StatusBadRequest ||
		!strings.Contains(string(r.Body), "OpenAI-Project") {
		t.Errorf("one of two workspaces: status %d, %s", r.Status, r.Body)
	}
	for project, n := range map[string]int{"default": 1, "acme": 0} {
		if h.Want(http.StatusOK, &models, "GET", "/v1/models", nil, "X-Workspace-Id", "", "OpenAI-Project",
			project); len(models.Data) != n {
			t.Errorf("%s: %+v", project, models)
		}
	}
}

func TestW23_Responses(t *testing.T) {
	t.Parallel()
	h := responder(t)
	type response struct {
		ID, Status string
		Output     []struct {
			Type, Name, Arguments string
			Content               []struct{ Text string }
		}
		Usage struct {
			Total int `json:"total_tokens"`
		}
	}
	var first, second, again response
	h.Want(http.StatusOK, &first, "POST", "/v1/responses", object{"model": "mock", "input": "hi"})
	if first.Status != "completed" || len(first.Output) != 1 ||
		first.Output[0].Content[0].Text != "Hello, how can I help you today?" || first.Usage.Total == 0 {
		t.Fatalf("%+v", first)
	}
	h.Want(http.StatusOK, &again, "GET", "/v1/responses/"+first.ID, nil)
	if again.Output[0].Content[0].Text != first.Output[0].Content[0].Text {
		t.Errorf("%+v", again)
	}
	tool := object{"type": "function", "name": "get_weather", "parameters": object{"type": "object"}}
	h.Want(http.StatusOK, &second, "POST", "/v1/responses",
		object{"model": "mock", "input": []object{{"role": "user", "content": "weather in Paris?"}},
			"tools": []object{tool}, "previous_response_id": first.ID})
	if len(second.Output) != 1 || second.Output[0].Type != "function_call" ||
		second.Output[0].Arguments != `{"city":"Paris"}` {
		t.Errorf("%+v", second)
	}
	var c api.ConversationList
	h.Want(http.StatusOK, &c, "GET", "/api/conversations", nil)
	if len(c.Conversations) != 1 || c.Conversations[0].Turns != 2 {
		t.Errorf("a response that goes on from another is in the same conversation: %+v", c)
	}
	stream := string(h.Do("POST", "/v1/responses", object{"model": "mock", "input": "hi", "stream": true}).Body)
	at := 0
	for _, want := range []string{"response.created", "response.output_item.added", "response.output_text.delta",
		"response.output_text.done", "response.output_item.done", "response.completed"} {
		i := strings.Index(stream[at:], "event: "+want+"\n")
		if i < 0 {
			t.Fatalf("no %s after byte %d of %s", want, at, stream)
		}
		at += i
	}
	h.Want(http.StatusBadRequest, nil, "POST", "/v1/responses", object{"model": "mock", "input": "hi",
		"previous_response_id": "resp_nosuch"})
	for _, nothing := range []any{"", nil, []object{}} {
		h.Want(http.StatusBadRequest, nil, "POST", "/v1/responses", object{"model": "mock", "input": nothing})
	}
}

// A request that is refused leaves nothing behind, however often it is made.
func TestW23_ARefusedRequestLeavesNoConversation(t *testing.T) {
	t.Parallel()
	h := responder(t)
	refused := func(why string) {
		t.Helper()
		for _, r := range []reevetest.Reply{
			h.Do("POST", "/v1/chat/completions",
				object{"model": "mock", "messages": []object{{"role": "user", "content": "hi"}}}),
			h.Do("POST", "/v1/responses", object{"model": "mock", "input": "hi"}),
		} {
			if r.Status < 400 {
				t.Errorf("%s: %d %s", why, r.Status, r.Body)
			}
		}
		var c api.ConversationList
		if h.Want(http.StatusOK, &c, "GET", "/api/conversations", nil); len(c.Conversations) != 0 {
			t.Errorf("%s: it left %+v", why, c.Conversations)
		}
	}
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", object{})
	refused("everything is stopped")
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", object{})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/mock", object{"mode": "autonomous"})
	refused("the agent wakes for nobody")
}

// What a response says and cost is that of its answers, however much was written in the turn before them.
func TestW23_AResponseOfALongTurn(t *testing.T) {
	t.Parallel()
	h := responder(t)
	type response struct {
		ID     string
		Output []struct{ Content []struct{ Text string } }
		Usage  struct {
			Total int `json:"total_tokens"`
		}
	}
	var first, again response
	h.Want(http.StatusOK, &first, "POST", "/v1/responses", object{"model": "mock", "input": "hi"})
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.Dir(), "reeve.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 5000)
		INSERT INTO messages (id, workspace_id, thread_id, agent_id, kind, content, metadata, created_at, run_id)
		SELECT said.id || n, said.workspace_id, said.thread_id, said.agent_id, 'thought', 'hm', '{}', said.created_at, said.run_id
		FROM number, (SELECT * FROM messages ORDER BY id LIMIT 1) AS said`); err != nil {
		t.Fatal(err)
	}
	h.Want(http.StatusOK, &again, "GET", "/v1/responses/"+first.ID, nil)
	if first.Usage.Total == 0 || again.Usage != first.Usage ||
		again.Output[0].Content[0].Text != first.Output[0].Content[0].Text {
		t.Errorf("it was %+v, and is %+v", first, again)
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
	file := scriptFile(t, "- {when: begin, calls: [{name: order, args: {n: 2, note: secret, extra: x}}]}\n- {when: "+
		"{tool: order}, text: done}\n")
	cfg := host.Config{Dir: t.TempDir(), HTTPAllow: []string{"127.0.0.1"}}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", file
	h := reevetest.Run(t, cfg)
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", object{"id": "order", "description": "Order something.",
		"effect": "keyed", "tier": "side_effecting",
		"parameters": object{"type": "object", "properties": object{"n": object{"type": "integer"},
			"note": object{"type": "string"}, "extra": object{"type": "string"}}},
		"spec": object{"method": "POST", "url": far.URL, "body": object{"amount": "n"}}})
	h.Agent("bot", "order")
	d := over(h, speak(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || d.Issues.ToolFailures != 0 {
		t.Fatalf("%+v", d.Turn)
	}
	if body := <-got; body != `{"amount":2}` {
		t.Errorf("sent %s", body)
	}
}

// watcher counts what is done around a turn, in order.
type watcher struct {
	mu   sync.Mutex
	seen map[string][]string // by turn
}

func (s *watcher) note(turn, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[turn] = append(s.seen[turn], what)
}

// Assemble implements host.Assembler: it notes, and does the built-in thing.
func (s *watcher) Assemble(_ context.Context, in host.AssemblyInput) (model.Request, error) {
	s.note(in.TurnID, "assemble")
	return model.Request{Model: in.ModelProfileID, System: in.TurnID, Messages: []model.Message{in.UserMessage}}, nil
}

// Extract implements host.Extractor.
func (s *watcher) Extract(_ context.Context, in host.ExtractionInput) ([]string, error) {
	s.note(in.TurnID, "extract")
	return nil, nil
}

// Answer implements model.Model: it calls a tool once, then says that it is done; told to fail, it fails.
func (s *watcher) Answer(_ context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	s.note(r.System, "ask")
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

func TestW22_WhatHoldsOfEveryTurn(t *testing.T) {
	t.Parallel()
	s := &watcher{seen: map[string][]string{}}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: s, Assemble: s, Extract: s},
		tool("good", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "seen", nil }),
		tool("bad", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			return nil, reeve.Errorf(reeve.ToolFailed, "no")
		}))
	h.Agent("bot", "good", "bad")
	c := h.StartConversation("bot")
	for text, want := range map[string]string{"good": "assemble ask ask extract", "bad": "assemble ask ask extract",
		"nosuch": "assemble ask ask extract", "fail": "assemble ask"} {
		d := over(h, speak(h, c.ID, text).ID)
		rules(t, h, d)
		s.mu.Lock()
		if got := strings.Join(s.seen[d.ID], " "); got != want {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
		s.mu.Unlock()
	}
}

// TestW06_ATurnThatNamesNoTool: tools of a turn that do not exist are refused, each by its place, and nothing is said.
func TestW06_ATurnThatNamesNoTool(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {text: hi}\n")
	c := h.StartConversation("bot")
	var p api.Problem
	r := h.Do("POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "hello", "tools": []string{"read_file", "raed_file"}})
	if r.Decode(t, &p); r.Status/100 != 4 || p.Code != reeve.Validation || len(p.Errors) != 1 ||
		p.Errors[0].Path != "/tools/1" {
		t.Errorf("%d %+v", r.Status, p)
	}
	if n := len(turns(h, c.ID)); n != 0 {
		t.Errorf("%d turns", n)
	}
	if d := over(h, speakWith(h, c.ID, object{"content": "hello", "tools": []string{"read_file"}}).
		ID); d.State != reeve.RunCompleted {
		t.Errorf("%+v", d.Turn)
	}
}

// TestW12_AnUnknownOutcomeIsTold: the clients of a conversation are told, also when the call of a turn becomes unknown
// long after the turn was parked.
func TestW12_AnUnknownOutcomeIsTold(t *testing.T) {
	t.Parallel()
	lost := tool("lost", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	})
	cfg := host.Config{Dir: t.TempDir(), RetryFirst: host.Duration(50 * time.Millisecond), RetryAttempts: 3}
	cfg.Models.Default, cfg.Models.Script = "rehearsal",
		scriptFile(t, "- {when: go, calls: [{name: lost, args: {}}]}\n- {when: {tool: lost}, text: 'So be it.'}\n")
	h := reevetest.Run(t, cfg, lost)
	h.Agent("bot", "lost")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	turn := speak(h, c.ID, "go")
	f := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameApproval })
	if f.TurnID != turn.ID || f.Code != reeve.UnknownOutcome || f.OperationID == "" || f.Tool != "lost" ||
		f.ToolCallID == "" {
		t.Fatalf("%+v", f)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+f.OperationID+"/resolve", object{"resolution": "happened"})
	if d := over(h, turn.ID); d.Output != "So be it." {
		t.Errorf("%+v", d.Turn)
	}
	n := 0
	for _, f := range s.Frames {
		if f.Type == reeve.FrameApproval {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was told %d times", n)
	}
}

func speakWith(h *reevetest.Host, conversation string, body object) (turn reeve.Turn) {
	h.T.Helper()
	h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+conversation+"/turns", body)
	return turn
}

// TestW21_WhatWasSaidBeforeTheCancel: the person has read it, so it is in the history, and the next turn knows of it.
func TestW21_WhatWasSaidBeforeTheCancel(t *testing.T) {
	t.Parallel()
	heard := &eavesdropper{Model: script(t,
		"answers:\n- {when: {said: tell}, text: 'Once upon a time there was a reeve who', fail: {hang: true, after: "+
			"4}}\n- {when: {said: /./}, text: fine}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	h.Agent("bot")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, 0)
	turn := speak(h, c.ID, "tell")
	said := ""
	for said != "Once upon a time " {
		if f := s.ReadFrame(); f.Type == reeve.FrameToken {
			said += f.Text
		}
	}
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
	d := until(h, turn.ID, func(d api.TurnDetail) bool { return len(d.Messages) > 1 })
	if m := d.Messages[1]; d.State != reeve.RunCancelled || m.Kind != reeve.Thought || m.Content != "Once upon a time" {
		t.Errorf("%+v", d)
	}
	over(h, speak(h, c.ID, "go on").ID)
	if got := heard.last(""); got != "user: tell | assistant: Once upon a time\n[This turn was cancelled.] | user: "+
		"go on" {
		t.Errorf("the model was told %s", got)
	}
}

// TestW12_ParticipantsAreUsers: a name that nobody in the workspace has is refused, where it stands.
func TestW12_ParticipantsAreUsers(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hi, text: hello}\n")
	as(h, "bob", "member")
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations",
		object{"agent": "bot", "participants": []string{"bob"}})
	r := h.Do("POST", "/api/conversations", object{"agent": "bot", "participants": []string{"bob", "bobb"}})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "/participants/1") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if r := h.Do("POST", "/api/conversations/"+c.ID+"/participants",
		object{"kind": "user", "id": "bobb"}); r.Status != http.StatusBadRequest ||
		!strings.Contains(string(r.Body), "is unknown") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
