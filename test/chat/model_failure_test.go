package chat_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/test/kit"
)

// An endless answer fails its turn and costs what arrived. The next turn is not affected.
func TestW08_EndlessAnswerFailsItsTurn(t *testing.T) {
	t.Parallel()
	ends := false
	h := kit.RunWithProvider(t, kit.FastConfig(t), func(w io.Writer) {
		for range 10_000 {
			kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"content":"%s"}}]}`, strings.Repeat("x", 4000))
			if ends {
				break
			}
		}
		kit.WriteChunk(w, `{"id":"a","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a\u0000b","function":{"name":"no\u0000thing","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
	})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"config": kit.Object{"max_model_requests": 1}})
	kit.SetBudget(h, "agent:bot", map[string]any{"limit": map[string]any{"tokens": 10_000_000}})
	c := h.StartConversation("bot")
	d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID)
	if b := kit.GetBudget(h, "agent:"+d.AgentID); d.Code != reeve.ModelFailed ||
		!strings.Contains(d.Message, "longer than 8 MB") || b.Used.Tokens < 2_000_000 || b.Used.Tokens > 2_200_000 ||
		!b.Reserved.IsZero() {
		t.Errorf("%s %s, %+v", d.Code, d.Message, b)
	} else if d.Spent.Tokens != b.Used.Tokens {
		t.Errorf("the turn says that it cost %+v, and %+v were charged", d.Spent, b.Used)
	}
	ends = true
	// the tool does not exist
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID); d.Code != reeve.StepLimit || d.ModelRequests != 2 ||
		d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d.Turn)
	}
}

func TestW08_ARetryTellsClientsToDiscard(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: {said: hello, every: 2}, text: 'one two three four', fail: {cut: true, after: "+
		"2}}\n- "+
		"{when: hello, text: 'five six'}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("hello")
	end := s.ReadTurns(1)
	discarded := false
	for _, f := range s.Frames {
		discarded = discarded || f.Type == reeve.FrameToken && f.Discard
	}
	d := kit.GetTurn(h, end.TurnID)
	if !discarded || d.State != reeve.RunCompleted || d.Output != "five six" || d.ModelRequests != 1 {
		t.Errorf("discarded %v, %+v", discarded, d.Turn)
	}
	kit.CheckTurn(t, h, d)
}

func TestW08_AModelThatStaysDownFailsTheTurnOnly(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: down, fail: {status: 500, message: broken}}\n- {when: nonsense, fail: {nonsense: "+
		"true}}\n- {when: hello, text: 'I am here.'}\n")
	c := h.StartConversation("bot")
	for text, code := range map[string]reeve.Code{"down": reeve.Unavailable, "nonsense": reeve.ModelFailed} {
		d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, text).ID)
		if d.State != reeve.RunFailed || d.Code != code {
			t.Errorf("%s: %+v", text, d.Turn)
		}
		kit.CheckTurn(t, h, d)
	}
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "hello").ID); d.State != reeve.RunCompleted ||
		d.Output != "I am here." {
		t.Errorf("the conversation goes on: %+v", d.Turn)
	}
}

func TestW10_AHungToolTimesOutAndTheModelIsTold(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	defer close(end)
	hang := kit.Tool("hang", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
		<-end
		return "too late", nil
	})
	hang.TimeoutMS = 50
	h := kit.RunScripted(t, "- {when: begin, calls: [{name: hang, args: {}}]}\n- {when: {result: TIMEOUT}, text: 'It "+
		"hangs.'}\n",
		hang)
	d := kit.WaitForTurn(h, kit.StartTurn(h, h.StartConversation("bot").ID, "begin").ID)
	if d.State != reeve.RunCompleted || d.Output != "It hangs." || d.Issues.ToolFailures != 1 {
		t.Errorf("%+v", d.Turn)
	}
	kit.CheckTurn(t, h, d)
}
