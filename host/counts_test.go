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
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		counts := ""
		h := provider(t, cfg, func(w io.Writer) {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}`, strings.Repeat("x", 10_000))
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]%s}`, counts)
		})
		for i, c := range []string{"", `,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1}`,
			`,"usage":{"prompt_tokens":-50,"completion_tokens":0}`} {
			counts = c
			name := fmt.Sprint("bot", i)
			a := h.Agent(name)
			budget(h, "agent:"+name, map[string]any{"limit": map[string]any{"tokens": 12_000}})
			c := h.StartConversation(name)
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
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = panics{}
		h := reevetest.Run(t, cfg)
		a := h.Agent("bot")
		budget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 50_000}})
		if d := over(h, speak(h, h.StartConversation("bot").ID, "hello").ID); d.State != reeve.RunFailed ||
			d.Code != reeve.Internal {
			t.Errorf("%+v", d)
		}
		if b := budgetOf(h, "agent:"+a.ID); !b.Reserved.IsZero() {
			t.Errorf("%+v", b)
		}
	})
}

// A turn whose answer was cut off is complete, and says so: to who reads it, and to who listens.
func TestW01_AnAnswerThatWasCutOff(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, cfg host.Config) {
		reason := ""
		h := provider(t, cfg, func(w io.Writer) {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"Once upon a"}}]}`)
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}`, reason)
		})
		c := h.StartConversation("bot")
		s := h.Connect(c.ID, 0)
		for i, want := range []struct {
			reason string
			cut    reeve.CutReason
		}{{"stop", ""}, {"length", reeve.CutLength}, {"content_filter", reeve.CutRefused}} {
			reason = want.reason
			turn := speak(h, c.ID, "tell")
			s.ReadTurns(1)
			d := detail(h, turn.ID)
			var told reeve.Frame
			for _, f := range s.Frames {
				if f.Type == reeve.FrameMessage && f.TurnID == turn.ID {
					told = f
				}
			}
			if d.State != reeve.RunCompleted || d.Code != "" || d.Output != "Once upon a" ||
				d.Issues != (reeve.TurnIssues{AnswerCut: want.cut}) || told.Cut != want.cut || told.Text != d.Output {
				t.Errorf("%d, %s: %+v, told %+v", i, want.reason, d, told)
			}
		}
	})
}

// One that was cut off before it said anything completes its turn too. What its provider's filter ended is not done.
func TestW01_AnAnswerThatWasCutOffAtOnce(t *testing.T) {
	t.Parallel()
	reason := ""
	h := provider(t, quick(t), func(w io.Writer) {
		if reason == "content_filter" {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"list_files","arguments":"{\"path\":\"/\"}"}}]}}]}`)
		}
		chunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"%s"}]}`, reason)
	})
	for finish, want := range map[string]struct {
		cut reeve.CutReason
		why string
	}{"length": {reeve.CutLength, "max_output_tokens"}, "content_filter": {reeve.CutRefused, "content_filter"}} {
		reason = finish
		d := over(h, speak(h, h.StartConversation("bot").ID, "tell").ID)
		if d.State != reeve.RunCompleted || d.Code != "" || d.Output != "" ||
			d.Issues != (reeve.TurnIssues{AnswerCut: want.cut}) || len(d.Messages) != 2 {
			t.Errorf("%s: %+v", finish, d)
		}
		var r struct {
			Status  string
			Details struct{ Reason string } `json:"incomplete_details"`
		}
		if h.Want(http.StatusOK, &r, "POST", "/v1/responses",
			object{"model": "bot", "input": "tell"}); r.Status != "incomplete" || r.Details.Reason != want.why {
			t.Errorf("%s: %+v", finish, r)
		}
		if stream := string(h.Do("POST", "/v1/responses", object{"model": "bot", "input": "tell", "stream": true}).
			Body); !strings.Contains(stream, "event: response.incomplete\n") {
			t.Errorf("%s: %s", finish, stream)
		}
		var c struct {
			Choices []struct {
				Finish string `json:"finish_reason"`
			}
		}
		if h.Want(http.StatusOK, &c, "POST", "/v1/chat/completions",
			object{"model": "bot", "messages": []object{{"role": "user",
				"content": "tell"}}}); c.Choices[0].Finish != finish {
			t.Errorf("%s: %+v", finish, c)
		}
	}
}

// A call that was cut off before its arguments is not made with none: the model is told, and goes on.
func TestW01_ACallThatWasCutOff(t *testing.T) {
	t.Parallel()
	asked := 0
	h := provider(t, quick(t), func(w io.Writer) {
		if asked++; asked == 1 {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"list_files","arguments":""}}]},"finish_reason":"length"}]}`)
			return
		}
		chunk(w, `{"id":"b","choices":[{"index":0,"delta":{"content":"I was cut off."},"finish_reason":"stop"}]}`)
	})
	d := over(h, speak(h, h.StartConversation("bot").ID, "look").ID)
	if d.State != reeve.RunCompleted || d.Output != "I was cut off." || d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d)
	}
}

// An answer that says nothing costs what its provider counts, and fails its turn.
func TestG17_AnEmptyAnswerIsCharged(t *testing.T) {
	t.Parallel()
	h := provider(t, quick(t), func(w io.Writer) {
		chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":6000,"completion_tokens":4000}}`)
	})
	budget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 100_000}})
	d := over(h, speak(h, h.StartConversation("bot").ID, "hello").ID)
	if b := budgetOf(h, "agent:"+d.AgentID); d.Code != reeve.ModelFailed || !strings.Contains(d.Message, "empty") ||
		b.Used.Tokens != 10_000 || !b.Reserved.IsZero() {
		t.Errorf("%s %s, %+v", d.Code, d.Message, b)
	}
}

// An answer without end fails its turn and costs what came of it; the next turn is as if nothing had been.
func TestW08_AnAnswerWithoutEnd(t *testing.T) {
	t.Parallel()
	ends := false
	h := provider(t, quick(t), func(w io.Writer) {
		for range 10_000 {
			chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}`, strings.Repeat("x", 4000))
			if ends {
				break
			}
		}
		chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a\u0000b","function":{"name":"no\u0000thing","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"config": object{"max_model_requests": 1}})
	budget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 10_000_000}})
	c := h.StartConversation("bot")
	d := over(h, speak(h, c.ID, "hello").ID)
	if b := budgetOf(h, "agent:"+d.AgentID); d.Code != reeve.ModelFailed ||
		!strings.Contains(d.Message, "longer than 8 MB") || b.Used.Tokens < 2_000_000 || b.Used.Tokens > 2_200_000 ||
		!b.Reserved.IsZero() {
		t.Errorf("%s %s, %+v", d.Code, d.Message, b)
	} else if d.Spent.Tokens != b.Used.Tokens {
		t.Errorf("the turn says that it cost %+v, and %+v were charged", d.Spent, b.Used)
	}
	ends = true
	// the tool does not exist
	if d := over(h, speak(h, c.ID, "hello").ID); d.Code != reeve.StepLimit || d.ModelRequests != 2 ||
		d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d.Turn)
	}
}

// A budget holds however long an answer may be: a number that is too large to be added counts as the most there is.
func TestG17_AnAnswerOfAnyLengthIsWithinTheBudget(t *testing.T) {
	t.Parallel()
	asked := 0
	h := provider(t, quick(t), func(w io.Writer) {
		asked++
		chunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`)
	})
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:bot", object{"limit": object{"tokens": 1}})
	said := []object{{"role": "user", "content": strings.Repeat("tell ", 1000)}}
	for _, most := range []int64{100, 9007199254740991, 9223372036854775000} {
		if r := h.Do("POST", "/v1/chat/completions", object{"model": "bot", "max_tokens": most,
			"messages": said}); r.Status != http.StatusPaymentRequired || asked > 0 {
			t.Errorf("at most %d tokens: asked %d times, %d %s", most, asked, r.Status, r.Body)
		}
	}
}
