package gate_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A token budget ends what exceeds it, whatever usage a model reports, and if it reports none.
func TestG17_ReportedUsageDoesNotDisableABudget(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		counts := ""
		h := kit.RunWithProvider(t, cfg, func(w io.Writer) {
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}`,
				strings.Repeat("x", 10_000))
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]%s}`, counts)
		})
		for i, c := range []string{"", `,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1}`,
			`,"usage":{"prompt_tokens":-50,"completion_tokens":0}`} {
			counts = c
			name := fmt.Sprint("bot", i)
			a := h.Agent(name)
			kit.SetBudget(h, "agent:"+name, map[string]any{"limit": map[string]any{"tokens": 12_000}})
			c := h.StartConversation(name)
			done := 0
			for range 6 {
				d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID)
				b := kit.GetBudget(h, "agent:"+a.ID)
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

// panickingModel is a model that panics.
type panickingModel struct{}

func (panickingModel) Answer(context.Context, model.Request, func(model.Delta)) (model.Answer, error) {
	panic("counter cannot decrease in value")
}

// A brain that panics leaves no reservation.
func TestG17_PanicReleasesReservations(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = panickingModel{}
		h := reevetest.Run(t, cfg)
		a := h.Agent("bot")
		kit.SetBudget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 50_000}})
		if d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID); d.State != reeve.RunFailed ||
			d.Code != reeve.Internal {
			t.Errorf("%+v", d)
		}
		if b := kit.GetBudget(h, "agent:"+a.ID); !b.Reserved.IsZero() {
			t.Errorf("%+v", b)
		}
	})
}

// An empty answer costs what its provider counts, and fails its turn.
func TestG17_AnEmptyAnswerIsCharged(t *testing.T) {
	t.Parallel()
	h := kit.RunWithProvider(t, kit.FastConfig(t), func(w io.Writer) {
		kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":6000,"completion_tokens":4000}}`)
	})
	kit.SetBudget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 100_000}})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID)
	if b := kit.GetBudget(h, "agent:"+d.AgentID); d.Code != reeve.ModelFailed ||
		!strings.Contains(d.Message, "empty") ||
		b.Used.Tokens != 10_000 || !b.Reserved.IsZero() {
		t.Errorf("%s %s, %+v", d.Code, d.Message, b)
	}
}

// A budget holds for any answer length. A token count that would overflow counts as the maximum.
func TestG17_AnAnswerOfAnyLengthIsWithinTheBudget(t *testing.T) {
	t.Parallel()
	asked := 0
	h := kit.RunWithProvider(t, kit.FastConfig(t), func(w io.Writer) {
		asked++
		kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}`)
	})
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:bot", kit.Object{"limit": kit.Object{"tokens": 1}})
	said := []kit.Object{{"role": "user", "content": strings.Repeat("tell ", 1000)}}
	for _, most := range []int64{100, 9007199254740991, 9223372036854775000} {
		if r := h.Do("POST", "/v1/chat/completions", kit.Object{"model": "bot", "max_tokens": most, "messages": said}); r.Status != http.StatusPaymentRequired || asked > 0 {
			t.Errorf("at most %d tokens: asked %d times, %d %s", most, asked, r.Status, r.Body)
		}
	}
}

func TestG17_CancelledAnswerIsCharged(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace",
		kit.Object{"on_exceed": "end", "limit": kit.Object{"tokens": 1_000_000}})
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	token := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+token.TurnID+"/cancel", nil)
	s.ReadTurns(1)
	h.Stop() // which waits for what is under way
	h = kit.RunScriptedIn(t, h.Config.Dir, "- {text: x}\n")
	var list struct {
		Budgets []reeve.Budget `json:"budgets"`
	}
	h.Want(http.StatusOK, &list, "GET", "/api/budgets", nil)
	if len(list.Budgets) != 1 || list.Budgets[0].Used.Tokens == 0 {
		t.Errorf("%+v", list.Budgets)
	}
	if spent := kit.GetTurn(h, token.TurnID).Spent; spent.Tokens != list.Budgets[0].Used.Tokens {
		t.Errorf("the turn spent %+v, of %+v", spent, list.Budgets)
	}
}

// A budget that is set while an agent answers applies from its next turn.
func TestG17_NewBudgetAppliesFromTheNextTurn(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {text: x}\n")
	s := h.Connect(h.StartConversation("bot").ID, -1)
	s.SendMessage("one")
	s.ReadTurns(1)
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/agent:bot",
		kit.Object{"on_exceed": "end", "limit": kit.Object{"tokens": 1}})
	s.SendMessage("two")
	kit.Eventually(t, "its end", func() bool { return len(kit.ListRuns(h, "state=failed")) == 1 })
	if failed := kit.ListRuns(h, "state=failed")[0]; failed.Code != reeve.BudgetExceeded || failed.Input != "two" {
		t.Errorf("%+v", failed)
	}
}

// waitingModel answers after release is closed. It reports each cap of an answer that it gets, and uses all of it.
type waitingModel struct {
	release chan struct{}
	caps    chan int
}

func (m waitingModel) Answer(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Answer, error) {
	m.caps <- r.MaxTokens
	select {
	case <-m.release:
	case <-ctx.Done():
		return model.Answer{}, ctx.Err()
	}
	input := model.EstimateCost(m, r).Input
	return model.Answer{Parts: []model.Part{{Type: model.Text, Text: "yes"}}, Stop: model.StopEnd,
		Usage: model.Usage{Input: input, Output: int64(r.MaxTokens)}}, nil
}

// A request reserves its input and the cap of its answer. When a budget leaves less, the cap is lowered, also for
// concurrent requests, which together stay within the budget. When not even the least cap fits, the error says how much
// was wanted and how much is left.
func TestG17_OutputIsLimitedToTheBudget(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		m := waitingModel{make(chan struct{}), make(chan int, 10)}
		cfg.Model = m
		h := reevetest.Run(t, cfg)
		a := h.Agent("bot")
		const limit = 6000
		kit.SetBudget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": limit}})
		c := h.StartConversation("bot")
		first := kit.StartTurn(h, c.ID, "one")
		if most := <-m.caps; most != 4096 {
			t.Errorf("the first request may use %d tokens", most)
		}
		second := kit.StartTurn(h, h.StartConversation("bot").ID, "two")
		if most := <-m.caps; most < 256 || most >= 2000 {
			t.Errorf("the second request may use %d tokens", most)
		}
		if b := kit.GetBudget(h, "agent:"+a.ID); b.Reserved.Tokens != limit {
			t.Errorf("reserved while both run: %+v", b)
		}
		refused := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "three").ID)
		if refused.Code != reeve.BudgetExceeded || !strings.Contains(refused.Message, "tokens left (") ||
			!strings.Contains(refused.Message, "wanted, 0 left)") {
			t.Errorf("%s %s", refused.Code, refused.Message)
		}
		close(m.release)
		for _, turn := range []reeve.Turn{first, second} {
			if d := kit.WaitForTurn(h, turn.ID); d.State != reeve.RunCompleted {
				t.Errorf("%+v", d.Turn)
			}
		}
		if b := kit.GetBudget(h, "agent:"+a.ID); b.Used.Tokens > limit || !b.Reserved.IsZero() {
			t.Errorf("afterwards: %+v", b)
		}
	})
}

// Money is reserved too, at the price of the model.
func TestG17_MoneyIsReservedForAnAnswer(t *testing.T) {
	t.Parallel()
	h := kit.RunWithPricedProvider(t, kit.FastConfig(t), func(w io.Writer, body string) {
		kit.WriteLastChunk(w, "yes")
	})
	h.Agent("bot")
	kit.SetBudget(h, "agent:bot", map[string]any{"limit": map[string]any{"micros": 2000}})
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "hello").ID)
	if d.Code != reeve.BudgetExceeded || !strings.Contains(d.Message, "money left (0.00") ||
		!strings.Contains(d.Message, "0.002000 left)") {
		t.Errorf("%s %s", d.Code, d.Message)
	}
}
