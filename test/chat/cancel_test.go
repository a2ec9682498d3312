package chat_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestW21_CancelStopsATurnWithinASecond(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 10)
	h := kit.RunScripted(t, "- {when: story, text: '"+strings.Repeat("and so on ", 3000)+
		"', pace: 5ms}\n- {when: work, calls: [{id: a, name: hang, args: {}}, {id: b, name: hang, args: {}}]}\n- "+
		"{when: hello, text: 'Still here.'}\n",
		kit.Tool("hang", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	cancel := func(turn string) {
		t.Helper()
		began := time.Now()
		s.Send(kit.Object{"type": "cancel", "turn_id": turn})
		f := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameComplete })
		if f.State != reeve.RunCancelled || time.Since(began) > kit.StopTimeout {
			t.Errorf("after %s: %+v", time.Since(began), f)
		}
	}
	s.SendMessage("a story")
	cancel(s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken }).TurnID)
	s.SendMessage("work")
	turn := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameTool }).TurnID
	<-entered
	cancel(turn)
	for range 2 { // later turns work, because every call in the history has a result
		s.SendMessage("hello")
		if f := s.ReadTurns(1); f.State != reeve.RunCompleted {
			t.Fatalf("%+v", f)
		}
	}
	deadline := time.Now().Add(reevetest.Timeout)
	for {
		results, actions := 0, 0
		for _, m := range kit.GetTurn(h, turn).Messages {
			switch m.Kind {
			case reeve.Action:
				actions++
			case reeve.ToolResult:
				results++
			default:
			}
		}
		if actions == results {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d actions, %d results", actions, results)
		}
	}
	var after reeve.Turn
	h.Want(http.StatusConflict, nil, "POST", "/api/turns/"+turn+"/cancel", nil)
	h.Want(http.StatusCreated, &after, "POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": "a story"})
	h.Want(http.StatusOK, &after, "POST", "/api/turns/"+after.ID+"/cancel", nil)
	if after.State != reeve.RunCancelled {
		t.Errorf("%+v", after)
	}
}

// The person has read the text, so it is in the history and the next turn knows it.
func TestW21_TextBeforeACancelIsKept(t *testing.T) {
	t.Parallel()
	heard := &kit.RecordingModel{Model: kit.ScriptedModel(t,
		"answers:\n- {when: {said: tell}, text: 'Once upon a time there was a reeve who', fail: {hang: true, after: "+
			"4}}\n- {when: {said: /./}, text: fine}\n")}
	h := reevetest.Run(t, host.Config{Dir: t.TempDir(), Model: heard})
	h.Agent("bot")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, 0)
	turn := kit.StartTurn(h, c.ID, "tell")
	said := ""
	for said != "Once upon a time " {
		if f := s.ReadFrame(); f.Type == reeve.FrameToken {
			said += f.Text
		}
	}
	h.Want(http.StatusOK, nil, "POST", "/api/turns/"+turn.ID+"/cancel", nil)
	d := kit.WaitForTurnWhere(h, turn.ID, func(d api.TurnDetail) bool { return len(d.Messages) > 1 })
	if m := d.Messages[1]; d.State != reeve.RunCancelled || m.Kind != reeve.Thought || m.Content != "Once upon a time" {
		t.Errorf("%+v", d)
	}
	kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "go on").ID)
	if got := heard.LastPrompt(""); got != "user: tell | assistant: Once upon a time\n[This turn was cancelled.] | user: "+
		"go on" {
		t.Errorf("the model was told %s", got)
	}
}
