package model_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/model"
)

var update = flag.Bool("update", false, "write the requests that were sent into the recordings")

const secret = "SECRET-key-0123456789"

// adapters are tested against recordings in the provider's wire format, each in a folder of the adapter's name.
var adapters = map[string]struct {
	open  func(model.Server) model.Model
	model string
}{
	"anthropic":        {model.Anthropic, "claude-sonnet-4-5"},
	"openai_chat":      {model.OpenAIChat, "gpt-5.4"},
	"openai_responses": {model.OpenAIResponses, "gpt-5.4"},
	"gemini":           {model.Gemini, "gemini-3.5-flash"},
	"ollama":           {model.Ollama, "qwen3:8b"},
}

// redirect sends all requests to a test server.
type redirect struct{ to *url.URL }

func (r redirect) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = r.to.Scheme, r.to.Host
	return http.DefaultTransport.RoundTrip(req)
}

// replayed returns an adapter in front of an HTTP server that plays back a recording.
func replayed(t *testing.T, provider, scenario string, s model.Server) model.Model {
	t.Helper()
	file := filepath.Join("testdata", provider, scenario+".txtar")
	replay, err := model.OpenReplay(file)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(replay)
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Close()
		if *update {
			if err := os.WriteFile(file, model.FormatExchanges(replay.ReceivedExchanges()), 0o644); err != nil {
				t.Error(err)
			}
			return
		}
		if err := replay.Err(); err != nil {
			t.Error(err)
		}
	})
	s.Key, s.Client = secret, &http.Client{Transport: redirect{to}}
	return adapters[provider].open(s)
}

var weather = model.Tool{Name: "weather.get", Description: "The weather of a city", Parameters: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema",
	"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}

func ask(text string) []model.Message { return []model.Message{model.NewTextMessage(model.User, text)} }

func call(id, city string) model.Part {
	return model.Part{Type: model.ToolCall, ID: id, Name: "weather.get",
		Args: json.RawMessage(`{"city":"` + city + `"}`)}
}

func result(id, text string) model.Part {
	return model.Part{Type: model.Result, ID: id, Name: "weather.get", Text: text}
}

func temperature(f float64) *float64 { return &f }

// scene is a request and the answer that every provider must produce, independent of its wire format.
type scene struct {
	request model.Request
	text    string
	calls   string // cities of the calls, in order
	stop    model.Stop
	usage   *model.Usage
	deltas  int // minimum number of deltas
	code    reeve.Code
	after   time.Duration
	says    string // substring of the error
	not     string // providers without this scenario
}

var scenes = map[string]scene{
	"plain": {request: model.Request{Messages: ask("hi")}, text: "Hello!", stop: model.StopEnd,
		usage: &model.Usage{Input: 19, Output: 12}},
	"stream": {request: model.Request{Messages: ask("hi"), System: "Be kind.", MaxTokens: 500,
		Temperature: temperature(0.5)}, text: "Hello there, friend.", stop: model.StopEnd, deltas: 3,
		usage: &model.Usage{Input: 125, Output: 12, CacheRead: 100}},
	"tool": {request: model.Request{Messages: ask("weather in Paris?"), System: "Be kind.",
		Tools: []model.Tool{weather}}, text: "I'll look.", calls: "Paris", stop: model.StopTools,
		usage: &model.Usage{Input: 25, Output: 40}},
	"parallel": {request: model.Request{Messages: ask("weather in two cities?"), Tools: []model.Tool{weather},
		Choice: model.MustCall}, calls: "Paris,Rome", stop: model.StopTools},
	"result": {request: model.Request{Tools: []model.Tool{weather}, Choice: model.NoCall, Messages: []model.Message{
		model.NewTextMessage(model.User, "weather in two cities?"),
		{Role: model.Assistant, Parts: []model.Part{{Type: model.Text, Text: "I'll look."}, call("call_1", "Paris"),
			call("call_2", "Rome")}},
		{Role: model.User, Parts: []model.Part{result("call_1", "21"),
			{Type: model.Result, ID: "call_2", Name: "weather.get", Text: "no such city", IsError: true}}},
	}}, text: "Paris 21, Rome 24.", stop: model.StopEnd},
	"image": {request: model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{
		{Type: model.Text, Text: "What is this?"}, {Type: model.Media, MediaType: "image/png", Data: []byte("\x89PNG"),
			Name: "dot.png"},
		{Type: model.Media, MediaType: "text/plain", Data: []byte("some notes"), Name: "notes.txt"},
	}}}}, text: "A red dot.", stop: model.StopEnd},
	"format": {request: model.Request{Messages: ask("which city?"), Format: &model.Format{Name: "place", Strict: true,
		Schema: json.RawMessage(
			`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}},
		text: `{"city":"Paris"}`, stop: model.StopEnd},
	"limit":  {request: model.Request{Messages: ask("hi")}, code: reeve.RateLimited, after: 7 * time.Second},
	"broken": {request: model.Request{Messages: ask("hi")}, code: reeve.Unavailable, says: "HTTP 500"},
	"overloaded": {request: model.Request{Messages: ask("hi")}, code: reeve.Unavailable, says: "overloaded",
		not: "ollama anthropic"},
	"key":       {request: model.Request{Messages: ask("hi")}, code: reeve.ModelFailed, says: "rejected the key"},
	"refused":   {request: model.Request{Messages: ask("hi")}, code: reeve.ModelFailed, says: "rejected the request"},
	"cut":       {request: model.Request{Messages: ask("hi")}, code: reeve.Unavailable, deltas: 1},
	"torn":      {request: model.Request{Messages: ask("hi")}, code: reeve.Unavailable, deltas: 1},
	"midstream": {request: model.Request{Messages: ask("hi")}, code: reeve.Unavailable, deltas: 1},
	"garbage":   {request: model.Request{Messages: ask("hi")}, code: reeve.ModelFailed, says: "invalid answer"},
	"empty":     {request: model.Request{Messages: ask("hi")}, code: reeve.ModelFailed, says: "empty"},
	"length": {request: model.Request{Messages: ask("tell me a story"), MaxTokens: 3}, text: "Once upon a",
		stop: model.StopLength},
	"declined": {request: model.Request{Messages: ask("something bad")}, stop: model.StopRefused, not: "ollama"},
	"badargs": {request: model.Request{Messages: ask("weather in Paris?"), Tools: []model.Tool{weather}}, calls: "?",
		stop: model.StopTools, not: "gemini ollama"},
	"ids": {request: model.Request{Messages: ask("weather in three cities?"), Tools: []model.Tool{weather}},
		calls: "Paris,Rome,Oslo", stop: model.StopTools},
}

// TestAdapters checks that all providers' answers and errors (W08) map to the same values.
func TestAdapters(t *testing.T) {
	for provider, adapter := range adapters {
		for name, s := range scenes {
			if strings.Contains(s.not, provider) {
				continue
			}
			t.Run(provider+"/"+name, func(t *testing.T) {
				s.request.Model = adapter.model
				if provider == "ollama" && s.request.Choice == model.MustCall {
					s.request.Choice = model.MayCall // Ollama cannot force a call
				}
				m := replayed(t, provider, name, model.Server{})
				var deltas []model.Delta
				a, err := m.Answer(t.Context(), s.request, func(d model.Delta) { deltas = append(deltas, d) })
				if len(deltas) < s.deltas {
					t.Errorf("%d deltas, want at least %d: %v", len(deltas), s.deltas, deltas)
				}
				if s.code != "" {
					checkError(t, s, err)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				checkAnswer(t, s, a)
				checkDeltas(t, a, deltas)
			})
		}
	}
}

func checkError(t *testing.T, s scene, err error) {
	t.Helper()
	var e *reeve.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a typed error", err)
	}
	if e.Code != s.code || e.RetryAfter != s.after || !strings.Contains(e.Message, s.says) {
		t.Errorf("got %s, again after %v: %s\nwant %s, after %v, with %q", e.Code, e.RetryAfter, e.Message, s.code,
			s.after, s.says)
	}
	for _, text := range []string{e.Error(), e.Message, e.Hint} {
		if strings.Contains(text, secret) || strings.Contains(text, "org-AbC") {
			t.Errorf("the key is in %q", text)
		}
	}
}

func checkAnswer(t *testing.T, s scene, a model.Answer) {
	t.Helper()
	var cities []string
	ids := map[string]bool{}
	for _, c := range a.Calls() {
		var args struct{ City string }
		if json.Unmarshal(c.Args, &args) != nil {
			args.City = "?"
		}
		cities = append(cities, args.City)
		if c.Name != "weather.get" || c.ID == "" || ids[c.ID] {
			t.Errorf("call %q of %q: want an id of its own and the tool's own name", c.ID, c.Name)
		}
		ids[c.ID] = true
	}
	if text := a.Text(); text != s.text && s.stop != model.StopRefused || strings.Join(cities, ",") != s.calls ||
		a.Stop != s.stop {
		t.Errorf("got %q, calls %v, stop %s\nwant %q, calls %s, stop %s", a.Text(), cities, a.Stop, s.text, s.calls,
			s.stop)
	}
	if a.Provider == "" || a.Model == "" {
		t.Errorf("provider %q, model %q", a.Provider, a.Model)
	}
	if s.usage != nil && !sameUsage(a, *s.usage) {
		t.Errorf("usage %+v, want %+v", a.Usage, *s.usage)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatalf("the answer cannot be stored: %v", err)
	}
	var back model.Answer
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
}

// sameUsage compares usage. Ollama has no cache, and only Anthropic's recordings report cache writes.
func sameUsage(a model.Answer, want model.Usage) bool {
	switch got := a.Usage; a.Provider {
	case "ollama":
		return got.Input == want.Input && got.Output == want.Output
	case "anthropic":
		return got.Input-got.CacheWrite >= want.CacheRead && got.CacheRead == want.CacheRead &&
			got.Output == want.Output
	default:
		return got == want
	}
}

// checkDeltas checks that the joined deltas equal the answer.
func checkDeltas(t *testing.T, a model.Answer, deltas []model.Delta) {
	t.Helper()
	var text, thought strings.Builder
	type callSeen struct {
		id, name string
		args     strings.Builder
	}
	var calls []*callSeen
	for _, d := range deltas {
		switch d.Type {
		case model.TextDelta:
			text.WriteString(d.Text)
		case model.ReasoningDelta:
			thought.WriteString(d.Text)
		case model.CallDelta:
			if d.Index == len(calls) {
				calls = append(calls, &callSeen{id: d.ID, name: d.Name})
			}
			calls[d.Index].args.WriteString(d.Text)
		case model.Discard:
			t.Error("a discard without a retry")
		}
	}
	if text.String() != a.Text() {
		t.Errorf("streamed %q, answered %q", text.String(), a.Text())
	}
	for _, p := range a.Parts {
		if p.Type == model.Reasoning && !strings.Contains(thought.String(), p.Text) {
			t.Errorf("the thought %q was not streamed", p.Text)
		}
	}
	for i, c := range a.Calls() {
		args := string(c.Args)
		var raw string
		if json.Unmarshal(c.Args, &raw) == nil {
			args = raw
		}
		if i >= len(calls) || calls[i].id != c.ID || calls[i].name != c.Name || calls[i].args.String() != args {
			t.Errorf("call %d was not streamed as it is: %+v", i, c)
		}
	}
}

// TestReasoningGoesBack checks that reasoning is stored as JSON and sent back unchanged with the results.
func TestReasoningGoesBack(t *testing.T) {
	want := map[string]string{"anthropic": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=",
		"openai_responses": "gAAAAABorzAwXkW8sXkZmGn1Hh8rWmUHc2Vq", "openai_chat": "",
		"gemini": "EjQKMgEMOdbHO0Gd+c9Mxk4ELwPGbpCEYp2mFfYYLix2UVtkEqwqFMHBjMBlpQkhKzTb", "ollama": ""}
	for provider, adapter := range adapters {
		t.Run(provider, func(t *testing.T) {
			s := model.Server{}
			if provider == "openai_chat" { // only compatible servers stream reasoning in the Chat API
				s = model.Server{Name: "deepseek", URL: "https://api.deepseek.com/v1"}
			}
			m := replayed(t, provider, "reasoning", s)
			r := model.Request{Model: adapter.model, Messages: ask("weather in Paris?"), Tools: []model.Tool{weather},
				Effort: "low"}
			a, err := m.Answer(t.Context(), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if p := a.Parts[0]; p.Type != model.Reasoning || p.Text != "The user wants the weather." {
				t.Errorf("it thought %+v", p)
			}
			if a.Usage.Reasoning != 30 && provider != "ollama" {
				t.Errorf("usage %+v, want 30 tokens of reasoning", a.Usage)
			}
			stored, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(stored), want[provider]) {
				t.Errorf("%s is not kept in %s", want[provider], stored)
			}
			var back model.Answer
			if err := json.Unmarshal(stored, &back); err != nil {
				t.Fatal(err)
			}
			r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Parts: back.Parts},
				model.Message{Role: model.User, Parts: []model.Part{result(back.Calls()[0].ID, "21")}})
			if a, err = m.Answer(t.Context(), r, nil); err != nil || a.Text() != "It is 21 degrees." {
				t.Errorf("got %q, %v", a.Text(), err)
			}
		})
	}
}

// TestAdapterOddities checks behaviour that only one provider has.
func TestAdapterOddities(t *testing.T) {
	hi := model.Request{Messages: ask("hi"), Tools: []model.Tool{weather}}
	for _, c := range []struct {
		provider, scenario string
		code               reeve.Code
		calls              int
	}{
		{"anthropic", "overloaded", reeve.Unavailable, 0},        // status 529
		{"ollama", "overloaded", reeve.Unavailable, 0},           // the message says that the server is busy
		{"ollama", "missing", reeve.ModelFailed, 0},              // the model is not installed
		{"openai_chat", "quota", reeve.ModelFailed, 0},           // a 429 that retries cannot fix
		{"openai_chat", "sameplace", "", 2},                      // parallel calls that all have index 0
		{"openai_responses", "errorevent", reeve.RateLimited, 0}, // an error event instead of response.failed
		{"gemini", "malformed", reeve.ModelFailed, 0},            // finishReason MALFORMED_FUNCTION_CALL
	} {
		t.Run(c.provider+"/"+c.scenario, func(t *testing.T) {
			m := replayed(t, c.provider, c.scenario, model.Server{})
			hi.Model = adapters[c.provider].model
			a, err := m.Answer(t.Context(), hi, nil)
			if reeve.CodeOf(err) != c.code || len(a.Calls()) != c.calls {
				t.Errorf("got %d calls, %v; want %d, %s", len(a.Calls()), err, c.calls, c.code)
			}
		})
	}
}

// TestCallsThatAreCutOff checks that a call that the token limit cut off before its arguments is marked as truncated,
// in the answer and in the deltas. Earlier calls and calls of a complete answer may have no arguments.
func TestCallsThatAreCutOff(t *testing.T) {
	wires := map[string]struct{ call, end, cut, whole string }{ // of an answer with the calls 0 and 1
		"anthropic": {`data: {"type":"content_block_start","index":N,"content_block":{"type":"tool_use","id":"cN","name":"t","input":{}}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":N,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`data: {"type":"message_delta","delta":{"stop_reason":"STOP"}}` + "\n\n" + `data: {"type":"message_stop"}`,
			"max_tokens", "tool_use"},
		"openai_chat": {`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":N,"id":"cN","function":{"name":"t","arguments":""}}]}}]}`,
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"STOP"}]}`, "length", "tool_calls"},
		"openai_responses": {`data: {"type":"response.output_item.added","output_index":N,"item":{"type":"function_call","call_id":"cN","name":"t","arguments":""}}` + "\n\n" +
			`data: {"type":"response.output_item.done","output_index":N,"item":{"type":"function_call","call_id":"cN","name":"t","arguments":""}}`,
			`data: {"type":"response.completed","response":{"status":"STOP"}}`, "incomplete", "completed"},
		"ollama": {`{"message":{"tool_calls":[{"id":"cN","function":{"name":"t"}}]}}`,
			`{"done":true,"done_reason":"STOP"}`, "length", "stop"},
	}
	for provider, w := range wires {
		for stop, want := range map[string]struct{ args, streamed string }{w.cut: {`"{"`, "{"}, w.whole: {`{}`, ""}} {
			body := strings.Join([]string{strings.ReplaceAll(w.call, "N", "0"), strings.ReplaceAll(w.call, "N", "1"),
				strings.Replace(w.end, "STOP", stop, 1), ""}, "\n\n")
			var streamed string
			a, err := speaks(provider, []byte(body)).
				Answer(t.Context(), model.Request{Model: adapters[provider].model, Messages: ask("hi")},
					func(d model.Delta) { streamed += d.Text })
			if calls := a.Calls(); err != nil || len(calls) != 2 || string(calls[0].Args) != `{}` ||
				string(calls[1].Args) != want.args || streamed != want.streamed {
				t.Errorf("%s, %s: %+v, streamed %q, %v", provider, stop, a, streamed, err)
			}
		}
	}
}

// TestCallsInOnePlace checks parallel calls that all have index 0: a fragment belongs to the call with its id, or
// without an id to the latest call.
func TestCallsInOnePlace(t *testing.T) {
	var body string
	for _, c := range []string{`"id":"a","function":{"name":"one","arguments":""}`,
		`"function":{"arguments":"{\"x\":"}`, `"id":"b","function":{"name":"two","arguments":""}`,
		`"function":{"arguments":"{\"y\":"}`, `"function":{"arguments":"2}"}`, `"id":"a","function":{"arguments":"1"}`,
		`"function":{"arguments":"}"}`} {
		body += `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,` + c + `}]}}]}` + "\n\n"
	}
	var deltas []model.Delta
	a, err := speaks("openai_chat",
		[]byte(body+`data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\n")).
		Answer(t.Context(), model.Request{Model: "x", Messages: ask("hi")},
			func(d model.Delta) { deltas = append(deltas, d) })
	if calls := a.Calls(); err != nil || len(calls) != 2 || string(calls[0].Args) != `{"x":1}` ||
		string(calls[1].Args) != `{"y":2}` {
		t.Errorf("%+v, %v", a, err)
	}
	checkDeltas(t, a, deltas)
}
