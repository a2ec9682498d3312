package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// served returns a server that answers with a stream, and the body of its last request.
func served(t *testing.T, stream string) (model.Server, *string) {
	t.Helper()
	asked := new(string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*asked = string(b)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}))
	t.Cleanup(s.Close)
	return model.Server{URL: s.URL, Key: secret}, asked
}

// TestParametersOfAChoice checks the parameters that each provider gets for tool choice, parallel calls, stop sequences
// and top_p (W23). A parameter that a provider does not support fails before a request is sent.
func TestParametersOfAChoice(t *testing.T) {
	full := model.Request{Model: "m", Messages: ask("hi"), Tools: []model.Tool{weather}, Choice: model.MustCall,
		ChoiceTool: "weather.get", OneCall: true,
		StopAt: []string{"END"}, TopP: temperature(0.5)}
	free := full
	free.Choice, free.ChoiceTool = model.MayCall, ""
	unstopped := full
	unstopped.StopAt = nil
	for name, c := range map[string]struct {
		open    func(model.Server) model.Model
		request model.Request
		want    []string // substrings of the body
		refused string
	}{
		"anthropic": {open: model.Anthropic, request: full,
			want: []string{`"tool_choice":{"type":"tool","name":"weather_get","disable_parallel_tool_use":true}`,
				`"stop_sequences":["END"]`, `"top_p":0.5`}},
		"anthropic, free": {open: model.Anthropic, request: free,
			want: []string{`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`}},
		"chat": {open: model.OpenAIChat, request: full,
			want: []string{`"tool_choice":{"type":"function","function":{"name":"weather_get"}}`,
				`"parallel_tool_calls":false`, `"stop":["END"]`, `"top_p":0.5`}},
		"chat, free": {open: model.OpenAIChat, request: free, want: []string{`"parallel_tool_calls":false`}},
		"responses": {open: model.OpenAIResponses, request: unstopped,
			want: []string{`"tool_choice":{"type":"function","name":"weather_get"}`, `"parallel_tool_calls":false`,
				`"top_p":0.5`}},
		"responses, stop": {open: model.OpenAIResponses, request: full, refused: "stop"},
		"gemini": {open: model.Gemini, request: full,
			want: []string{`"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["weather_get"]}`,
				`"stopSequences":["END"]`, `"topP":0.5`}},
		"ollama":           {open: model.Ollama, request: free, want: []string{`"top_p":0.5`, `"stop":["END"]`}},
		"ollama, required": {open: model.Ollama, request: full, refused: "tool_choice"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := served(t, "")
			_, err := c.open(s).Answer(t.Context(), c.request, nil)
			if c.refused != "" {
				if reeve.CodeOf(err) != reeve.Unsupported || !strings.Contains(err.Error(), c.refused) || *asked != "" {
					t.Errorf("%v, asked %s", err, *asked)
				}
				return
			}
			for _, want := range c.want {
				if !strings.Contains(*asked, want) {
					t.Errorf("no %s in %s", want, *asked)
				}
			}
		})
	}
}

// TestTextsAroundACall checks that texts before and after a call are separated, in deltas too, even if the provider has
// one key for all text (W23).
func TestTextsAroundACall(t *testing.T) {
	const want = "Before.\n\nAfter."
	for name, c := range map[string]struct {
		open   func(model.Server) model.Model
		stream string
	}{
		"chat": {model.OpenAIChat, `data: {"id":"a","choices":[{"index":0,"delta":{"content":"Before."}}]}

data: {"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather_get","arguments":"{}"}}]}}]}

data: {"id":"a","choices":[{"index":0,"delta":{"content":"Af"}}]}

data: {"id":"a","choices":[{"index":0,"delta":{"content":"ter."},"finish_reason":"tool_calls"}]}

data: [DONE]

`},
		"gemini": {model.Gemini, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Before."},{"functionCall":{"name":"weather_get","args":{}}},{"text":"After."}]},"finishReason":"STOP"}]}

`},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := served(t, c.stream)
			told := ""
			a, err := c.open(s).Answer(t.Context(),
				model.Request{Model: "m", Messages: ask("hi"), Tools: []model.Tool{weather}}, func(d model.Delta) {
					if d.Type == model.TextDelta {
						told += d.Text
					}
				})
			if err != nil || a.Text() != want || told != want {
				t.Errorf("%v: %q, streamed %q", err, a.Text(), told)
			}
		})
	}
}
