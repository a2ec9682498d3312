package model_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/model"
)

// endless is a response that repeats one fragment without end.
type endless struct {
	begin, again string
	sent         int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.begin)
	e.begin = e.begin[n:]
	for n < len(b) && e.sent < 400<<20 {
		at := e.sent % len(e.again)
		m := copy(b[n:], e.again[at:])
		n, e.sent = n+m, e.sent+m
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(e), Request: r}, nil
}

// TestAnswersWithoutEnd checks that an answer without end is aborted at the size limit, for every kind of part, and
// that the received part is charged.
func TestAnswersWithoutEnd(t *testing.T) {
	long := strings.Repeat("x", 4000)
	kinds := map[string]struct{ provider, begin, again string }{
		"thoughts": {"anthropic",
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"` + long +
				`"}}` + "\n\n"},
		"signatures": {"anthropic",
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + long +
				`"}}` + "\n\n"},
		"arguments": {"openai_chat",
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"weather_get"}}]}}]}` + "\n\n", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + long + `"}}]}}]}` + "\n\n"},
		"kept forms": {"openai_responses", "", strings.Join(func() (list []string) {
			for i := range 3000 {
				list = append(list, fmt.Sprintf(
					`data: {"type":"response.output_item.done","output_index":%d,"item":{"type":"reasoning","encrypted_content":"%s"}}`, i, long))
			}
			return list
		}(), "\n\n") + "\n\n"},
		"calls": {"ollama", "", `{"message":{"tool_calls":[{"function":{"name":"a","arguments":{}}}]},"done":false}` +
			"\n"},
		"calls, all in one place": {"openai_chat", "", strings.Join(func() (list []string) {
			for i := range 3000 {
				list = append(list, fmt.Sprintf(
					`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_%d","function":{"name":"%s"}}]}}]}`, i, long))
			}
			return list
		}(), "\n\n") + "\n\n"},
	}
	for provider := range adapters {
		body := string(wire(provider, []string{`"` + long + `"`}, "stop", "", ""))
		lines := strings.SplitAfter(body, "\n\n")
		at := len(lines) - 2 // the last but one line ends the answer
		for !strings.Contains(lines[at], long) {
			at--
		}
		kinds["words of "+provider] = struct{ provider, begin, again string }{provider, strings.Join(lines[:at], ""),
			lines[at]}
		kinds["a line of "+provider] = struct{ provider, begin, again string }{provider, strings.Join(lines[:at], "") +
			"data: ", "x"}
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			source := &endless{begin: k.begin, again: k.again}
			m := model.CountUsage(model.WithRetry(adapters[k.provider].open(model.Server{Key: secret,
				Client: &http.Client{Transport: source}})), slog.New(slog.DiscardHandler))
			heard := 0
			a, err := m.Answer(t.Context(), model.Request{Model: adapters[k.provider].model, Messages: ask("hi")},
				func(d model.Delta) { heard += len(d.Text) })
			if reeve.CodeOf(err) != reeve.ModelFailed || !strings.Contains(err.Error(), "longer than") {
				t.Fatalf("%v", err)
			}
			if heard > 8<<20 || source.sent > 100<<20 || heard > 0 && a.Usage.Output != int64(heard/4) {
				t.Errorf("heard %d bytes of %d, charged %+v", heard, source.sent, a.Usage)
			}
		})
	}
}

// TestLongAnswers checks that the longest realistic answer is returned completely, even as one fragment.
func TestLongAnswers(t *testing.T) {
	for provider, adapter := range adapters {
		for _, n := range []int{1, 1000} {
			pieces := make([]string, n)
			for i := range pieces {
				pieces[i] = `"` + strings.Repeat("x", 5_000_000/n) + `"`
			}
			a, err := speaks(provider, wire(provider, pieces, "stop", "5", "5")).
				Answer(t.Context(), model.Request{Model: adapter.model, Messages: ask("hi")}, nil)
			if err != nil || len(a.Text()) != 5_000_000 {
				t.Errorf("%s in %d: %d bytes, %v", provider, n, len(a.Text()), err)
			}
		}
	}
}
