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

// An outcome that a client reports reaches the turn that waits for it.
func TestW04_ReportedOutcomeReachesItsTurn(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: shipped, text: 'It is on its way.'}\n- {when: {result: shipped}, text: 'It is "+
		"on its "+
		"way.'}\n- {when: please, calls: [{name: order, args: {}}]}\n- {when: {tool: order}, text: 'Ordered.'}\n",
		func() reeve.Tool {
			v := kit.Tool("order", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
				return nil, reeve.Errorf(reeve.InProgress, "the shop will say")
			})
			v.Async, v.TimeoutMS = true, 60_000
			return v
		}())
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("please")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameMessage })
	for {
		var l api.OperationList
		h.Want(http.StatusOK, &l, "GET", "/api/operations?state=dispatched", nil)
		if len(l.Operations) == 1 {
			at := "/api/operations/" + l.Operations[0].ID + "/result"
			if r := h.Do("POST", at, kit.Object{"content": "shipped"}); r.Status == http.StatusConflict {
				continue // it has not been sent yet
			} else if r.Status != http.StatusOK {
				t.Fatalf("%d %s", r.Status, r.Body)
			}
			h.Want(http.StatusConflict, nil, "POST", at, kit.Object{"content": "twice"})
			break
		}
	}
	if f := s.ReadTurns(1); f.State != reeve.RunCompleted || kit.GetTurn(h, f.TurnID).Output != "It is on its way." {
		t.Errorf("%+v", f)
	}
}

func TestW13_AsyncResultsComeAsWholeFrames(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	slow := kit.Tool("slow", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return "the long-awaited outcome", nil
	})
	slow.Async = true
	h := kit.RunScripted(t, "- {when: begin, calls: [{name: slow, args: {}}]}\n- {when: {result: awaited}, text: 'It "+
		"came.'}\n- {when: {tool: slow}, text: 'I will tell you later.'}\n- {when: story, text: '"+
		strings.Repeat("once upon a time ", 20)+"', pace: 10ms}\n", slow)
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("begin")
	first := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameMessage })
	s.SendMessage("a story")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken && f.TurnID != first.TurnID })
	close(finish)
	s.ReadTurns(2)
	var story, result, end int
	for i, f := range s.Frames {
		switch {
		case f.Type == reeve.FrameToken && f.TurnID != first.TurnID && story == 0:
			story = i
		case f.Type == reeve.FrameResult && strings.Contains(f.Content, "the long-awaited outcome"):
			result = i
			if f.TurnID != first.TurnID {
				t.Errorf("the result is of another turn: %+v", f)
			}
		case f.Type == reeve.FrameMessage && f.TurnID != first.TurnID:
			end = i
		}
	}
	if !(story < result && result < end) {
		t.Errorf("the story began at %d and ended at %d; the result came at %d: %s", story, end, result,
			kit.FrameTypes(s.Frames))
	}
	for _, turn := range kit.ListTurns(h, c.ID) {
		if turn.State != reeve.RunCompleted {
			t.Errorf("%+v", turn)
		}
	}
}

// Clients of a conversation learn that a call became unknown, also long after its turn was parked.
func TestW12_UnknownOutcomeReachesClients(t *testing.T) {
	t.Parallel()
	lost := kit.Tool("lost", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
		return nil, reeve.Errorf(reeve.UnknownOutcome, "the line went dead")
	})
	cfg := host.Config{Dir: t.TempDir(), RetryFirst: host.Duration(50 * time.Millisecond), RetryAttempts: 3}
	cfg.Models.Default, cfg.Models.Script = "rehearsal",
		kit.WriteScript(t, "- {when: go, calls: [{name: lost, args: {}}]}\n- {when: {tool: lost}, text: 'So be it.'}\n")
	h := reevetest.Run(t, cfg, lost)
	h.Agent("bot", "lost")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	turn := kit.StartTurn(h, c.ID, "go")
	f := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameApproval })
	if f.TurnID != turn.ID || f.Code != reeve.UnknownOutcome || f.OperationID == "" || f.Tool != "lost" ||
		f.ToolCallID == "" {
		t.Fatalf("%+v", f)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+f.OperationID+"/resolve",
		kit.Object{"resolution": "happened"})
	if d := kit.WaitForTurn(h, turn.ID); d.Output != "So be it." {
		t.Errorf("%+v", d.Turn)
	}
	n := 0
	for _, f := range s.Frames {
		if f.Type == reeve.FrameApproval {
			n++
		}
	}
	if n != 1 {
		t.Errorf("it was told %d times", n)
	}
}
