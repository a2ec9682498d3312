package tools_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/test/kit"
)

func TestSendMedia_SentMediaReachesTheConversationThatAsked(t *testing.T) {
	t.Parallel()
	h := kit.RunMediaAgent(t)
	c, other := h.StartConversation("bot"), h.StartConversation("bot")
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "the picture please").ID); d.State != reeve.RunCompleted ||
		d.Issues.ToolFailures > 0 {
		t.Fatalf("%+v", d)
	}
	list := kit.ListMediaFrames(h, c.ID)
	if len(list) != 1 || list[0].Text != "The chart" || len(list[0].Attachments) != 1 ||
		len(kit.ListMediaFrames(h, other.ID)) != 0 {
		t.Fatalf("the conversation was sent %+v", list)
	}
	a := list[0].Attachments[0]
	if a.Name != "chart.png" || a.MediaType != "image/png" || a.Size != 16 {
		t.Errorf("it is %+v", a)
	}
	resp := h.Want(http.StatusOK, nil, "GET", "/api/conversations/"+c.ID+"/media/"+a.Hash, nil)
	if string(resp.Body) != "\x89PNG\r\n\x1a\n<script>" {
		t.Errorf("its bytes are %q", resp.Body)
	}
	for name, want := range map[string]string{"Content-Type": "image/png",
		"Content-Disposition": `attachment; filename=chart.png`, "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "sandbox; default-src 'none'"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	for _, at := range []string{other.ID + "/media/" + a.Hash, c.ID + "/media/" + strings.Repeat("0", 64),
		"conv_none/media/" + a.Hash} {
		h.Want(http.StatusNotFound, nil, "GET", "/api/conversations/"+at, nil)
	}
	h.Want(http.StatusBadRequest, nil, "GET", "/api/conversations/"+c.ID+"/media/nonsense", nil)
}

func TestSendMedia_WhatCannotBeSent(t *testing.T) {
	t.Parallel()
	h := kit.RunMediaAgent(t)
	c := h.StartConversation("bot")
	for _, text := range []string{"the secret please", "the absent one please"} {
		d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, text).ID)
		if d.State != reeve.RunCompleted || d.Issues.ToolFailures != 1 {
			t.Errorf("%s: %+v", text, d.Turn)
		}
	}
	if list := kit.ListMediaFrames(h, c.ID); len(list) != 0 {
		t.Errorf("the conversation was sent %+v", list)
	}
	var got reeve.Result
	h.Want(http.StatusOK, &got, "POST", "/api/agents/bot/calls",
		kit.Object{"tool": "send_media", "args": json.RawMessage(`{"path":"/shared/chart.png"}`)})
	if !got.IsError || got.Code != reeve.ToolFailed ||
		!strings.Contains(got.Message, "does not belong to a conversation") {
		t.Errorf("outside any conversation it came to %+v", got)
	}
}

func TestSendMedia_AScheduleSendsToTheConversationItWasMadeIn(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	h := kit.RunMediaAgent(t, "- {when: {tool: schedule_create}, text: Planned.}\n",
		"- {when: {said: later}, calls: [{name: schedule_create, args: {goal: send the picture, cadence_type: once, "+
			"cadence_value: '"+soon+"'}}]}\n")
	c := h.StartConversation("bot")
	if d := kit.WaitForTurn(h, kit.StartTurn(h, c.ID, "later please").ID); d.Issues.ToolFailures > 0 {
		t.Fatalf("%+v", d)
	}
	kit.Eventually(t, "the report with the picture", func() bool {
		frames := kit.ListFrames(h, c.ID)
		last := frames[len(frames)-1]
		return last.Type == reeve.FrameReport && len(last.Attachments) == 1
	})
	if n := len(kit.ListTurns(h, c.ID)); n != 1 {
		t.Errorf("the conversation has %d turns", n)
	}
}
