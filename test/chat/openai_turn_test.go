package chat_test

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestW23_ChatCompletions(t *testing.T) {
	t.Parallel()
	h := runForOpenAI(t)
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
	ask := func(body kit.Object) (c completion) {
		t.Helper()
		body["model"] = "mock"
		h.Want(http.StatusOK, &c, "POST", "/v1/chat/completions", body, "X-Workspace-Id", "")
		return c
	}
	user := func(text string) kit.Object { return kit.Object{"role": "user", "content": text} }
	plain := ask(kit.Object{"messages": []kit.Object{user("hi")}})
	if c := plain.Choices[0]; c.Message.Content != "Hello, how can I help you today?" || c.Finish != "stop" ||
		plain.Usage.Total != plain.Usage.Prompt+plain.Usage.Completion {
		t.Errorf("%+v", plain)
	}
	called := ask(kit.Object{"messages": []kit.Object{user("weather in two cities?")}, "tools": []kit.Object{weather}})
	calls := called.Choices[0].Message.ToolCalls
	if called.Choices[0].Finish != "tool_calls" || len(calls) != 2 ||
		calls[1].Function.Arguments != `{"city":"Rome"}` || calls[0].ID == calls[1].ID {
		t.Fatalf("%+v", called)
	}
	said := kit.Object{"role": "assistant",
		"tool_calls": []kit.Object{{"id": calls[0].ID, "type": "function", "function": kit.Object{"name": "get_weather",
			"arguments": `{"city":"Paris"}`}}}}
	answered := ask(kit.Object{"messages": []kit.Object{user("weather in Paris?"), said,
		{"role": "tool", "tool_call_id": calls[0].ID, "content": "21"}}, "tools": []kit.Object{weather}})
	if got := answered.Choices[0].Message.Content; got != "It is 21 degrees there." {
		t.Errorf("with the result the answer is %q", got)
	}
	stream := string(h.Do("POST", "/v1/chat/completions",
		kit.Object{"model": "mock", "messages": []kit.Object{user("hi")},
			"stream": true}, "X-Workspace-Id", "").Body)
	if !strings.HasSuffix(stream, "data: [DONE]\n\n") || strings.Count(stream, `"content"`) < 4 {
		t.Errorf("streamed %s", stream)
	}
	for name, body := range map[string]kit.Object{
		"no messages":             {"messages": []kit.Object{}},
		"an unknown role":         {"messages": []kit.Object{{"role": "wizard", "content": "x"}}},
		"a result without a call": {"messages": []kit.Object{{"role": "tool", "tool_call_id": "x", "content": "21"}}},
		"two answers":             {"messages": []kit.Object{user("hi")}, "n": 2},
		"a picture that is no URL": {"messages": []kit.Object{{"role": "user",
			"content": []kit.Object{{"type": "image_url", "image_url": kit.Object{"url": "ftp://x"}}}}}},
	} {
		body["model"] = "mock"
		if r := h.Do("POST", "/v1/chat/completions", body); r.Status != http.StatusBadRequest ||
			!strings.Contains(string(r.Body), `"error"`) {
			t.Errorf("%s: status %d, %s", name, r.Status, r.Body)
		}
	}
	if r := h.Do("POST", "/v1/chat/completions", kit.Object{"model": "bad", "messages": []kit.Object{user("hi")}}); r.Status != http.StatusNotFound ||
		!strings.Contains(string(r.Body), "model_not_found") {
		t.Errorf("an unknown model: status %d, %s", r.Status, r.Body)
	}
	if r := h.Do("GET", "/v1/models", nil, "Authorization", "Bearer wrong"); r.Status != http.StatusUnauthorized ||
		!strings.Contains(string(r.Body), "invalid_api_key") {
		t.Errorf("a wrong key: status %d, %s", r.Status, r.Body)
	}
	// the owner's token is valid in the second workspace too
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", kit.Object{"id": "acme"})
	if r := h.Do("GET", "/v1/models", nil, "X-Workspace-Id", ""); r.Status != http.StatusBadRequest ||
		!strings.Contains(string(r.Body), "OpenAI-Project") {
		t.Errorf("one of two workspaces: status %d, %s", r.Status, r.Body)
	}
	for project, n := range map[string]int{"default": 1, "acme": 0} {
		if h.Want(http.StatusOK, &models, "GET", "/v1/models", nil, "X-Workspace-Id", "", "OpenAI-Project", project); len(models.Data) != n {
			t.Errorf("%s: %+v", project, models)
		}
	}
}

func TestW23_Responses(t *testing.T) {
	t.Parallel()
	h := runForOpenAI(t)
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
	h.Want(http.StatusOK, &first, "POST", "/v1/responses", kit.Object{"model": "mock", "input": "hi"})
	if first.Status != "completed" || len(first.Output) != 1 ||
		first.Output[0].Content[0].Text != "Hello, how can I help you today?" || first.Usage.Total == 0 {
		t.Fatalf("%+v", first)
	}
	h.Want(http.StatusOK, &again, "GET", "/v1/responses/"+first.ID, nil)
	if again.Output[0].Content[0].Text != first.Output[0].Content[0].Text {
		t.Errorf("%+v", again)
	}
	tool := kit.Object{"type": "function", "name": "get_weather", "parameters": kit.Object{"type": "object"}}
	h.Want(http.StatusOK, &second, "POST", "/v1/responses",
		kit.Object{"model": "mock", "input": []kit.Object{{"role": "user", "content": "weather in Paris?"}},
			"tools": []kit.Object{tool}, "previous_response_id": first.ID})
	if len(second.Output) != 1 || second.Output[0].Type != "function_call" ||
		second.Output[0].Arguments != `{"city":"Paris"}` {
		t.Errorf("%+v", second)
	}
	var c api.ConversationList
	h.Want(http.StatusOK, &c, "GET", "/api/conversations", nil)
	if len(c.Conversations) != 1 || c.Conversations[0].Turns != 2 {
		t.Errorf("a response that goes on from another is in the same conversation: %+v", c)
	}
	stream := string(h.Do("POST", "/v1/responses", kit.Object{"model": "mock", "input": "hi", "stream": true}).Body)
	at := 0
	for _, want := range []string{"response.created", "response.output_item.added", "response.output_text.delta",
		"response.output_text.done", "response.output_item.done", "response.completed"} {
		i := strings.Index(stream[at:], "event: "+want+"\n")
		if i < 0 {
			t.Fatalf("no %s after byte %d of %s", want, at, stream)
		}
		at += i
	}
	h.Want(http.StatusBadRequest, nil, "POST", "/v1/responses", kit.Object{"model": "mock", "input": "hi",
		"previous_response_id": "resp_nosuch"})
	for _, nothing := range []any{"", nil, []kit.Object{}} {
		h.Want(http.StatusBadRequest, nil, "POST", "/v1/responses", kit.Object{"model": "mock", "input": nothing})
	}
}

// A refused request leaves nothing behind, however often it is made.
func TestW23_ARefusedRequestLeavesNoConversation(t *testing.T) {
	t.Parallel()
	h := runForOpenAI(t)
	refused := func(why string) {
		t.Helper()
		for _, r := range []reevetest.Reply{
			h.Do("POST", "/v1/chat/completions",
				kit.Object{"model": "mock", "messages": []kit.Object{{"role": "user", "content": "hi"}}}),
			h.Do("POST", "/v1/responses", kit.Object{"model": "mock", "input": "hi"}),
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
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{})
	refused("everything is stopped")
	h.Want(http.StatusNoContent, nil, "POST", "/api/resume", kit.Object{})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/mock", kit.Object{"mode": "autonomous"})
	refused("the agent wakes for nobody")
}

// Text and cost of a response are those of its answers, however much the turn wrote before them.
func TestW23_AResponseOfALongTurn(t *testing.T) {
	t.Parallel()
	h := runForOpenAI(t)
	type response struct {
		ID     string
		Output []struct{ Content []struct{ Text string } }
		Usage  struct {
			Total int `json:"total_tokens"`
		}
	}
	var first, again response
	h.Want(http.StatusOK, &first, "POST", "/v1/responses", kit.Object{"model": "mock", "input": "hi"})
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
