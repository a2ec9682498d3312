package model_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// TestCountsThatCannotBe checks that implausible and missing token counts are replaced by an estimate, for every
// provider.
func TestCountsThatCannotBe(t *testing.T) {
	const most = "9223372036854775807"
	for provider, adapter := range adapters {
		for _, c := range []struct {
			in, out     string
			input, said int64
			estimated   bool
			logged      bool
		}{
			{"19", "12", 19, 12, false, false},
			{"1000000000000", "1", 1e12, 1, false, false},
			{"", "", 250, 500, true, false},
			{"0", "0", 250, 500, true, false},
			{"0", "12", 250, 12, true, false},
			{"19", "0", 19, 500, true, false},
			{most, "1", 250, 500, true, true},
			{most, most, 250, 500, true, true},
			{"1000000000001", "1", 250, 500, true, true},
			{"-50", "0", 250, 500, true, true},
			{"-5", "-3", 250, 500, true, true},
			{"19", "-3", 250, 500, true, true},
			{"12.0", "3e0", 12, 3, false, false},
			{"null", "null", 250, 500, true, false},
			{"1e30", "3", 250, 500, true, true},
			{"1.5", "3", 250, 500, true, true},
			{`"12"`, `"3"`, 250, 500, true, true},
			{"[1]", "{}", 250, 500, true, true},
		} {
			var log bytes.Buffer
			m := model.CountUsage(speaks(provider,
				wire(provider, []string{`"` + strings.Repeat("x", 1000) + `"`, `"` + strings.Repeat("y", 1000) + `"`},
					"stop", c.in, c.out)), slog.New(slog.NewTextHandler(&log, nil)))
			a, err := m.Answer(t.Context(),
				model.Request{Model: adapter.model, Messages: ask(strings.Repeat("z", 1000))}, nil)
			if err != nil || len(a.Text()) != 2000 {
				t.Fatalf("%s: %v, %d bytes", provider, err, len(a.Text()))
			}
			if u := a.Usage; u.Input != c.input || u.Output != c.said || u.Estimated != c.estimated ||
				strings.Contains(log.String(), "implausible") != c.logged {
				t.Errorf("%s, %s and %s: %+v, log %s", provider, c.in, c.out, u, &log)
			}
		}
	}
}

// TestSumsOfCounts checks that a sum with an implausible count is implausible too.
func TestSumsOfCounts(t *testing.T) {
	for provider, body := range map[string]string{
		"anthropic": `data: {"type":"message_start","message":{"id":"a1","usage":{"input_tokens":9223372036854775807,"cache_read_input_tokens":9223372036854775807,"cache_creation_input_tokens":12}}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}
`,
		"gemini": `data: {"candidates":[{"index":0,"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":-50,"toolUsePromptTokenCount":60,"candidatesTokenCount":5}}
`,
	} {
		m := model.CountUsage(speaks(provider, []byte(body)), slog.New(slog.DiscardHandler))
		a, err := m.Answer(t.Context(), model.Request{Model: adapters[provider].model, Messages: ask("12345678")}, nil)
		if err != nil || !a.Usage.Estimated || a.Usage.Input != 2 || a.Usage.Output != 2 {
			t.Errorf("%s: %+v, %v", provider, a.Usage, err)
		}
	}
}

// TestCountsOfAnotherShape checks that usage of an unexpected JSON type does not fail the answer.
func TestCountsOfAnotherShape(t *testing.T) {
	for provider, body := range map[string]string{
		"anthropic": `data: {"type":"message_start","message":{"id":"a1","usage":[1]}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":"5"}` + "\n\n" +
			`data: {"type":"message_stop"}`,
		"openai_chat": `data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}],"usage":[1]}` + "\n\ndata: [DONE]",
		"openai_responses": `data: {"type":"response.output_text.delta","output_index":0,"delta":"Hello"}` + "\n\n" +
			`data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":5,"input_tokens_details":[]}}}`,
		"gemini": `data: {"candidates":[{"index":0,"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":7}`,
	} {
		m := model.CountUsage(speaks(provider, []byte(body+"\n\n")), slog.New(slog.DiscardHandler))
		a, err := m.Answer(t.Context(), model.Request{Model: adapters[provider].model, Messages: ask("12345678")}, nil)
		if err != nil || a.Text() != "Hello" || !a.Usage.Estimated || a.Usage.Input != 2 || a.Usage.Output != 2 {
			t.Errorf("%s: %q, %+v, %v", provider, a.Text(), a.Usage, err)
		}
	}
}

// TestAbortedAnswersCost checks that an aborted answer is charged by an estimate, including its price. An answer
// without any delta costs nothing.
func TestAbortedAnswersCost(t *testing.T) {
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("acme/*: {input: 1, output: 10}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, said := range []int{0, 1000} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if said > 0 {
				_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"`+strings.Repeat("x", said)+
					`"}}]}`+"\n\n")
			}
			_, _ = io.WriteString(w, "data: {nonsense\n\n")
		}))
		p, err := model.Open(model.Config{Env: env(), Servers: map[string]model.Endpoint{"acme": {URL: server.URL}},
			Log: slog.New(slog.DiscardHandler), Prices: prices})
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Answer(t.Context(), model.Request{Model: "acme/x", Messages: ask(strings.Repeat("z", 400))}, nil)
		server.Close()
		want := model.Usage{}
		if said > 0 {
			want = model.Usage{Input: 100, Output: 250, Micros: 2600, Estimated: true}
		}
		if reeve.CodeOf(err) != reeve.ModelFailed || a.Usage != want || len(a.Parts) > 0 {
			t.Errorf("%d bytes: %+v, %v", said, a, err)
		}
	}
}

// TestInvalidAnswersCost checks that an answer that the provider ends as invalid costs what the provider counted.
func TestInvalidAnswersCost(t *testing.T) {
	want := model.Usage{Input: 50_000, Output: 9_000, Reasoning: 9_000}
	for _, c := range []struct{ provider, body string }{
		{"gemini", `{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}],"usageMetadata":{"promptTokenCount":50000,"thoughtsTokenCount":9000}}`},
		{"gemini", `{"candidates":[{"content":{},"finishReason":"OTHER"}],"usageMetadata":{"promptTokenCount":50000,"thoughtsTokenCount":9000}}`},
		{"openai_responses", `{"type":"response.failed","response":{"error":{"code":"invalid_prompt","message":"no"},"usage":{"input_tokens":50000,"output_tokens":9000,"output_tokens_details":{"reasoning_tokens":9000}}}}`},
	} {
		m := model.CountUsage(model.WithRetry(speaks(c.provider, []byte("data: "+c.body+"\n\n"))),
			slog.New(slog.DiscardHandler))
		a, err := m.Answer(t.Context(), model.Request{Model: adapters[c.provider].model, Messages: ask("hi")}, nil)
		if reeve.CodeOf(err) != reeve.ModelFailed || a.Usage != want || len(a.Parts) > 0 {
			t.Errorf("%s: %+v, %v", c.body, a, err)
		}
	}
}

// numbers is a model that reports the given usage.
type numbers model.Usage

func (n numbers) Answer(context.Context, model.Request, func(model.Delta)) (model.Answer, error) {
	return model.Answer{Parts: []model.Part{{Type: model.Text, Text: "fine"}}, Stop: model.StopEnd,
		Usage: model.Usage(n)}, nil
}

// TestAbsurdMoney checks that no reported usage and no price makes the cost negative.
func TestAbsurdMoney(t *testing.T) {
	a, err := model.CountUsage(numbers{Input: 5, Output: 5, Micros: -7}, slog.New(slog.DiscardHandler)).
		Answer(t.Context(), model.Request{Messages: ask("hi")}, nil)
	if err != nil || a.Usage.Micros != 0 {
		t.Errorf("%+v, %v", a.Usage, err)
	}
	if n := (model.Price{Input: math.MaxFloat64}).Micros(model.Usage{Input: 1e12}); n <= 0 {
		t.Errorf("%d millionths", n)
	}
	if n := (model.Usage{Input: math.MaxInt64, Output: 1}).Cost(0).Tokens; n != math.MaxInt64 {
		t.Errorf("%d tokens", n)
	}
}
