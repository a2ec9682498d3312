package chat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// openAISchema returns a function that checks a text against a definition of testdata/openai/schema.json.
func openAISchema(t *testing.T) func(definition string, text []byte) {
	t.Helper()
	b, err := os.ReadFile("testdata/openai/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("https://openai.example/schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(definition string, text []byte) {
		t.Helper()
		s, err := c.Compile("https://openai.example/schema.json#/$defs/" + definition)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("not a %s: %s: %v", definition, text, err)
		}
	}
}

// listEventData returns the data of each event of a stream.
func listEventData(r reevetest.Reply) (data []string) {
	for line := range strings.Lines(string(r.Body)) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			data = append(data, text)
		}
	}
	return data
}

const openAIScript = `
- {when: begin, text: Let me look., calls: [{name: look, args: {}}]}
- when: {tool: look}
  text: I have looked.
  calls: [{name: get_weather, args: {city: Paris}}, {name: get_weather, args: {city: Rome}}]
- {when: short, text: Once upon a, stop: length}
- {when: count, text: one two three four}
- {when: wrong, fail: {status: 400, message: Not like this.}}
- {when: busy, fail: {status: 429, retry_after: 1200ms, message: Slow down.}}
`

// newAgentTool returns a tool that the agent itself has.
func newAgentTool() reeve.Tool {
	return kit.Tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "seen", nil })
}

var (
	offeredFunction = kit.Object{"type": "function", "name": "get_weather", "parameters": kit.Object{"type": "object"}}
	otherFunction   = kit.Object{"type": "function", "name": "get_time", "parameters": kit.Object{"type": "object"}}
)

// Every answer and event under /v1 has what OpenAI's published schema requires.
func TestW23_AnswersFitThePublishedSchema(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, openAIScript, newAgentTool())
	fits := openAISchema(t)
	fits("models", h.Want(http.StatusOK, nil, "GET", "/v1/models", nil).Body)
	fits("model", h.Want(http.StatusOK, nil, "GET", "/v1/models/bot", nil).Body)
	shape := kit.Object{"type": "object", "properties": kit.Object{"a": kit.Object{"type": "string"}}}
	for _, said := range []string{"hello", "short", "begin"} {
		chat := kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": said}},
			"tools": []kit.Object{weather}}
		fits("completion", h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", chat).Body)
		chat["stream"], chat["stream_options"] = true, kit.Object{"include_usage": true}
		events := listEventData(h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", chat))
		for i, data := range events[:len(events)-1] {
			fits("chunk", []byte(data))
			if last := i == len(events)-2; last != strings.Contains(data, `"total_tokens"`) ||
				!strings.Contains(data, `"usage"`) {
				t.Errorf("the usage of chunk %d of %d: %s", i, len(events), data)
			}
		}
		respond := kit.Object{"model": "bot", "input": said, "tools": []kit.Object{offeredFunction},
			"instructions": "Be kind.", "temperature": 0.5, "top_p": 0.9,
			"metadata":    kit.Object{"a": "b"},
			"text":        kit.Object{"format": kit.Object{"type": "json_schema", "name": "x", "schema": shape}},
			"tool_choice": "auto", "max_output_tokens": 99, "reasoning": kit.Object{"effort": "low"}}
		whole := h.Want(http.StatusOK, nil, "POST", "/v1/responses", respond)
		fits("response", whole.Body)
		var got struct {
			ID     string
			Output json.RawMessage
		}
		whole.Decode(t, &got)
		again := h.Want(http.StatusOK, nil, "GET", "/v1/responses/"+got.ID, nil)
		fits("response", again.Body)
		for _, part := range []string{string(got.Output), `"top_p":0.9`, `"temperature":0.5`, `"metadata":{"a":"b"}`,
			`"max_output_tokens":99`, `"type":"json_schema"`} {
			if !strings.Contains(string(whole.Body), part) || !strings.Contains(string(again.Body), part) {
				t.Errorf("%s is not in both: %s\n%s", part, whole.Body, again.Body)
			}
		}
		respond["stream"] = true
		events = listEventData(h.Want(http.StatusOK, nil, "POST", "/v1/responses", respond))
		for _, data := range events {
			fits("event", []byte(data))
		}
		if len(events) < 6 {
			t.Errorf("%d events", len(events))
		}
	}
	for _, data := range listEventData(h.Want(http.StatusOK, nil, "POST", "/v1/responses",
		kit.Object{"model": "bot", "input": "wrong", "stream": true})) {
		fits("event", []byte(data))
	}
}

// Texts before and after a tool call stay separate: as items in a response, by an empty line in a completion.
func TestW23_TextsAroundACallStayApart(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, openAIScript, newAgentTool())
	chat := kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "begin"}},
		"tools": []kit.Object{weather}}
	const want = "Let me look.\n\nI have looked."
	var whole struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if h.Want(http.StatusOK, &whole, "POST", "/v1/chat/completions", chat); whole.Choices[0].Message.Content != want {
		t.Errorf("%+v", whole)
	}
	chat["stream"] = true
	said := ""
	for _, data := range listEventData(h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", chat)) {
		var c struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if json.Unmarshal([]byte(data), &c) == nil && len(c.Choices) > 0 {
			said += c.Choices[0].Delta.Content
		}
	}
	if said != want {
		t.Errorf("streamed: %q", said)
	}
	for _, stream := range []bool{false, true} {
		r := h.Want(http.StatusOK, nil, "POST", "/v1/responses",
			kit.Object{"model": "bot", "input": "begin", "tools": []kit.Object{offeredFunction}, "stream": stream})
		body := string(r.Body)
		if stream {
			events := listEventData(r)
			body = events[len(events)-1]
		}
		kinds := ""
		var got struct {
			Response struct{ Output []struct{ Type string } }
		}
		if stream {
			_ = json.Unmarshal([]byte(body), &got)
		} else {
			_ = json.Unmarshal([]byte(body), &got.Response)
		}
		for _, item := range got.Response.Output {
			kinds += item.Type + " "
		}
		if kinds != "message message function_call function_call " {
			t.Errorf("stream %v: %s: %s", stream, kinds, body)
		}
	}
}

// runWithModelServer runs a host whose model is a server that records its last request.
func runWithModelServer(t *testing.T, answer string) (*reevetest.Host, func() string) {
	t.Helper()
	var mu sync.Mutex
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = string(b)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Servers, cfg.Models.Default = map[string]model.Endpoint{"acme": {URL: s.URL}}, "acme/x"
	h := reevetest.Run(t, cfg)
	h.Agent("bot")
	return h, func() string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

// Parameters that change the answer reach the model: tool_choice, stop, top_p and parallel_tool_calls.
func TestW23_ParametersReachTheModel(t *testing.T) {
	t.Parallel()
	call := func(at int, id string) string {
		return `{"index":` + string(rune('0'+at)) + `,"id":"` + id +
			`","type":"function","function":{"name":"get_weather","arguments":"{}"}}`
	}
	h, asked := runWithModelServer(t, `data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[`+call(0, "c1")+`,`+call(1,
		"c2")+`]}}]}

data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`)
	ask := kit.Object{"model": "bot", "tools": []kit.Object{offeredFunction, otherFunction}, "input": "hi",
		"parallel_tool_calls": false, "top_p": 0.25,
		"tool_choice": kit.Object{"type": "function", "name": "get_weather"}, "reasoning": kit.Object{"effort": "high"}}
	r := h.Want(http.StatusOK, nil, "POST", "/v1/responses", ask)
	if n := strings.Count(string(r.Body), `"call_id"`); n != 1 {
		t.Errorf("%d calls at once: %s", n, r.Body)
	}
	for _, want := range []string{`"tool_choice":{"type":"function","function":{"name":"get_weather"}}`,
		`"parallel_tool_calls":false`, `"top_p":0.25`, `"reasoning_effort":"high"`} {
		if !strings.Contains(asked(), want) {
			t.Errorf("no %s in %s", want, asked())
		}
	}
	for _, want := range []string{`"tool_choice":{"name":"get_weather","type":"function"}`,
		`"parallel_tool_calls":false`, `"top_p":0.25`} {
		if !strings.Contains(string(r.Body), want) {
			t.Errorf("the response does not say %s: %s", want, r.Body)
		}
	}
	time := kit.Object{"type": "function", "function": kit.Object{"name": "get_time"}}
	chat := kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "hi"}},
		"tools":       []kit.Object{weather, time},
		"tool_choice": time, "stop": []string{"\n", "END"}}
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", chat)
	for _, want := range []string{`"function":{"name":"get_time"}`, `"stop":["\n","END"]`} {
		if !strings.Contains(asked(), want) {
			t.Errorf("no %s in %s", want, asked())
		}
	}
	if strings.Contains(asked(), "parallel_tool_calls") {
		t.Errorf("nobody asked for %s", asked())
	}
}

// The rehearsal model follows the same parameters.
func TestW23_TheRehearsalModelHeedsParameters(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, openAIScript, newAgentTool())
	chat := func(more kit.Object) string {
		ask := kit.Object{"model": "bot", "messages": []kit.Object{{"role": "user", "content": "count"}},
			"tools": []kit.Object{weather, {"type": "function", "function": kit.Object{"name": "get_time"}}}}
		for k, v := range more {
			ask[k] = v
		}
		return string(h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions", ask).Body)
	}
	if body := chat(kit.Object{"stop": "three"}); !strings.Contains(body, `"content":"one two "`) {
		t.Error(body)
	}
	named := kit.Object{"messages": []kit.Object{{"role": "user", "content": "good day"}},
		"tool_choice": kit.Object{"type": "function", "function": kit.Object{"name": "get_time"}}}
	if body := chat(named); strings.Count(body, `"get_time"`) != 1 || strings.Contains(body, `"get_weather"`) {
		t.Error(body)
	}
	body := chat(kit.Object{"messages": []kit.Object{{"role": "user", "content": "begin"}},
		"parallel_tool_calls": false})
	if strings.Count(body, `"name":"get_weather"`) != 1 {
		t.Error(body)
	}
}

// Errors under /v1 have OpenAI's form, wherever they arise.
func TestW23_ErrorsHaveOpenAIsForm(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, openAIScript, newAgentTool())
	fits := openAISchema(t)
	hi := []kit.Object{{"role": "user", "content": "hi"}}
	refused := func(status int, code, param, method, path string, body any, headers ...string) reevetest.Reply {
		t.Helper()
		r := h.Do(method, path, body, headers...)
		fits("error", r.Body)
		var got struct {
			Error struct {
				Code  string
				Param *string
			}
		}
		r.Decode(t, &got)
		if r.Status != status || code != "" && got.Error.Code != code ||
			r.Header.Get("Content-Type") != "application/json" ||
			param != "" && (got.Error.Param == nil || *got.Error.Param != param) {
			t.Errorf("%s %s: %d %s %s, want %d %s", method, path, r.Status, r.Header.Get("Content-Type"), r.Body,
				status, code)
		}
		return r
	}
	refused(404, "", "", "GET", "/v1", nil)
	refused(404, "", "", "POST", "/v1/embeddings", kit.Object{})
	refused(404, "", "", "GET", "/v1//models", nil)
	refused(404, "", "", "GET", "/v1/responses/resp_none", nil)
	refused(404, "model_not_found", "model", "GET", "/v1/models/none", nil)
	refused(404, "model_not_found", "model", "POST", "/v1/responses", kit.Object{"model": "none", "input": "hi"})
	if r := refused(405, "method_not_allowed", "", "DELETE", "/v1/models", nil); r.Header.Get("Allow") != "GET" {
		t.Errorf("it takes %s", r.Header.Get("Allow"))
	}
	refused(405, "method_not_allowed", "", "GET", "/v1/chat/completions", nil)
	refused(401, "invalid_api_key", "", "GET", "/v1/models", nil, "Authorization", "")
	refused(401, "invalid_api_key", "", "POST", "/v1/responses", kit.Object{}, "Authorization", "Bearer reeve_x_y")
	refused(403, "", "", "GET", "/v1/models", nil, "X-Workspace-Id", "elsewhere")
	refused(403, "", "", "GET", "/v1/models", nil, "Origin", "https://evil.example")
	for _, text := range []string{"", "{", "[]", `"x"`, `{"model":1}`, `{"model":"bot","model":"bot"}`,
		"{\"model\":\"\xff\"}"} {
		refused(400, "", "", "POST", "/v1/chat/completions", text)
		refused(400, "", "", "POST", "/v1/responses", text)
	}
	refused(413, "", "", "POST", "/v1/responses", `{"model":"bot","input":"`+strings.Repeat("x", 33<<20)+`"}`)
	for name, value := range map[string]any{"seed": 7, "logit_bias": kit.Object{"50256": -100}, "logprobs": true,
		"top_logprobs": 2, "frequency_penalty": 0.5, "presence_penalty": -1,
		"n": 2, "verbosity": "low", "modalities": []string{"text", "audio"}, "functions": []kit.Object{{"name": "f"}}, "function_call": "auto",
		"web_search_options": kit.Object{"x": 1},
		"reasoning_effort":   "extreme", "tool_choice": kit.Object{"type": "allowed_tools"}} {
		refused(400, "unsupported_parameter", name, "POST", "/v1/chat/completions",
			kit.Object{"model": "bot", "messages": hi, name: value})
	}
	for name, value := range map[string]any{"background": true, "conversation": "conv_1",
		"prompt":         kit.Object{"id": "p"},
		"max_tool_calls": 3, "top_logprobs": 1} {
		refused(400, "unsupported_parameter", name, "POST", "/v1/responses",
			kit.Object{"model": "bot", "input": "hi", name: value})
	}
	refused(400, "unknown_parameter", "top_k", "POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": hi, "top_k": 5})
	refused(400, "unknown_parameter", "stop", "POST", "/v1/responses",
		kit.Object{"model": "bot", "input": "hi", "stop": "x"})
	refused(400, "", "tool_choice", "POST", "/v1/responses",
		kit.Object{"model": "bot", "input": "hi", "tool_choice": kit.Object{"type": "function", "name": "none"}})
	refused(400, "", "stop", "POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": hi, "stop": []string{"1", "2", "3", "4", "5"}})
	refused(400, "", "top_p", "POST", "/v1/chat/completions", kit.Object{"model": "bot", "messages": hi, "top_p": 1.5})
	refused(400, "", "metadata", "POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": hi, "metadata": kit.Object{"a": 1}})
	refused(400, "", "tools[0]", "POST", "/v1/responses", kit.Object{"model": "bot", "input": "hi",
		"tools": []kit.Object{{"type": "function", "name": "f", "parameters": kit.Object{"$ref": "city.json"}}}})
	h.Want(http.StatusOK, nil, "POST", "/v1/chat/completions",
		kit.Object{"model": "bot", "messages": hi, "seed": nil, "logit_bias": kit.Object{}, "logprobs": false, "n": 1,
			"user":  "u",
			"store": true, "frequency_penalty": 0.0, "service_tier": "auto", "safety_identifier": "s",
			"prompt_cache_key": "k", "verbosity": "medium", "metadata": kit.Object{"a": "b"}})
}

// A provider's rate limit that remains after all attempts reaches the client with the time to wait, and so does our
// own.
func TestW23_LimitsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, openAIScript, newAgentTool())
	fits := openAISchema(t)
	for path, body := range map[string]kit.Object{"/v1/responses": {"model": "bot", "input": "busy"},
		"/v1/chat/completions": {"model": "bot", "messages": []kit.Object{{"role": "user", "content": "busy"}}}} {
		r := h.Do("POST", path, body)
		fits("error", r.Body)
		if r.Status != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "2" {
			t.Errorf("%s: %d, Retry-After %q: %s", path, r.Status, r.Header.Get("Retry-After"), r.Body)
		}
	}
	limited := reevetest.Run(t, host.Config{Dir: t.TempDir(), Rate: 0.001, Burst: 3})
	for range 4 {
		r := limited.Do("GET", "/v1/models", nil)
		if r.Status == http.StatusTooManyRequests {
			if fits("error", r.Body); r.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
	}
	t.Error("nothing was limited")
}
