package host_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
)

// provider runs a Reeve whose agent bot asks a server that speaks as OpenAI does; answer gives the body of its answers.
func provider(t *testing.T, cfg host.Config, answer func(w io.Writer)) *reevetest.Host {
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

// chunk writes an event of such an answer.
func chunk(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, "data: "+format+"\n\n", args...)
}

// Whatever a model says that it cost, and if it says nothing at all, a budget of tokens ends what goes over it.
func TestG17_NoCountSwitchesABudgetOff(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg host.Config) {
		counts := ""
		h := provider(t, cfg, func(w io.Writer) {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}`, strings.Repeat("x", 10_000))
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]%s}`, counts)
		})
		for i, c := range []string{"", `,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1}`, `,"usage":{"prompt_tokens":-50,"completion_tokens":0}`} {
			counts = c
			name := fmt.Sprint("bot", i)
			a := h.Agent(name)
			budget(h, "agent:"+name, map[string]any{"limit": map[string]any{"tokens": 12_000}})
			c := h.Talk(name)
			done := 0
			for range 6 {
				d := over(h, speak(h, c.ID, "hello").ID)
				b := budgetOf(h, "agent:"+a.ID)
				if d.State == reeve.RunCompleted {
					done++
				} else if d.Code != reeve.BudgetExceeded {
					t.Errorf("%s: %s %s", counts, d.Code, d.Message)
				}
				if b.Used.Tokens < int64(done)*2500 || b.Used.Tokens > 12_000 || !b.Reserved.IsZero() {
					t.Errorf("%q, after %d answers: %+v", counts, done, b)
				}
			}
			if done < 2 || done > 4 {
				t.Errorf("%q: %d answers within the budget", counts, done)
			}
		}
	})
}

// panics is a model that panics.
type panics struct{}

func (panics) Answer(context.Context, model.Request, func(model.Delta)) (model.Answer, error) {
	panic("counter cannot decrease in value")
}

// A brain that panics takes what was reserved for it to no grave.
func TestG17_APanicKeepsNothingReserved(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg host.Config) {
		cfg.Mind = panics{}
		h := reevetest.Run(t, cfg)
		a := h.Agent("bot")
		budget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 50_000}})
		if d := over(h, speak(h, h.Talk("bot").ID, "hello").ID); d.State != reeve.RunFailed || d.Code != reeve.Internal {
			t.Errorf("%+v", d)
		}
		if b := budgetOf(h, "agent:"+a.ID); !b.Reserved.IsZero() {
			t.Errorf("%+v", b)
		}
	})
}
