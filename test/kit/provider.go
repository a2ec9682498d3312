package kit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// RunWithProvider runs a host with an agent bot whose model is a server with OpenAI's API. answer writes the body of
// each answer.
func RunWithProvider(t *testing.T, cfg host.Config, answer func(w io.Writer)) *reevetest.Host {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		answer(w)
	}))
	t.Cleanup(s.Close)
	cfg.Models.Servers, cfg.Models.Default = map[string]model.Endpoint{"acme": {URL: s.URL}}, "acme/x"
	h := reevetest.Run(t, cfg)
	h.Agent("bot")
	return h
}

// WriteChunk writes one event of a streamed answer.
func WriteChunk(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "data: "+format+"\n\n", args...)
}

// RunWithPricedProvider runs a host whose model is a server with OpenAI's API and known prices: 100 tokens in and 50
// out cost 2000 micros. answer gets the body of the request and writes the body of the answer.
func RunWithPricedProvider(t *testing.T, cfg host.Config, answer func(w io.Writer, body string),
	tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		answer(w, string(body))
	}))
	t.Cleanup(s.Close)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte("acme/x: {input: 10, output: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.Models.Servers, cfg.Models.Default = map[string]model.Endpoint{"acme": {URL: s.URL}}, "acme/x"
	cfg.Models.Prices = prices
	return reevetest.Run(t, cfg, tools...)
}

// WriteToolCall writes the event of a streamed answer that calls a tool.
func WriteToolCall(w io.Writer, name, args string) {
	WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",`+
		`"function":{"name":%q,"arguments":%q}}]}}]}`, name, args)
}

// WriteLastChunk writes the last event of a streamed answer: a text, and 100 tokens in and 50 out.
func WriteLastChunk(w io.Writer, text string) {
	WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":100,"completion_tokens":50}}`, text)
}
