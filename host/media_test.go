package host_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// sent gives the frames of a conversation that send something.
func sent(h *reevetest.Host, conversation string) (list []reeve.Frame) {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/frames", nil)
	for _, f := range l.Frames {
		if f.Type == reeve.FrameMedia {
			list = append(list, f)
		}
	}
	return list
}

// painter runs a Reeve whose agent bot sends what it is told to, and has a picture.
func painter(t *testing.T, more ...string) *reevetest.Host {
	t.Helper()
	dir := t.TempDir()
	h := talkerIn(t, dir, `- {when: {tool: send_media}, text: Done.}
- {when: {said: picture}, calls: [{name: send_media, args: {path: /shared/chart.png, caption: The chart}}]}
- {when: {said: secret}, calls: [{name: send_media, args: {path: /shared/../../../secret.key}}]}
- {when: {said: absent}, calls: [{name: send_media, args: {path: /shared/absent.png}}]}
`+strings.Join(more, ""))
	h.Agent("bot", "send_media", "schedule_create")
	if err := os.MkdirAll(filepath.Join(dir, "workspaces", "default", "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "workspaces", "default", "shared", "chart.png"),
		[]byte("\x89PNG\r\n\x1a\n<script>"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestSendMedia_SentMediaReachesTheConversationThatAsked(t *testing.T) {
	t.Parallel()
	h := painter(t)
	c, other := h.StartConversation("bot"), h.StartConversation("bot")
	if d := over(h, speak(h, c.ID, "the picture please").ID); d.State != reeve.RunCompleted ||
		d.Issues.ToolFailures > 0 {
		t.Fatalf("%+v", d)
	}
	list := sent(h, c.ID)
	if len(list) != 1 || list[0].Text != "The chart" || len(list[0].Attachments) != 1 || len(sent(h, other.ID)) != 0 {
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
	h := painter(t)
	c := h.StartConversation("bot")
	for _, text := range []string{"the secret please", "the absent one please"} {
		d := over(h, speak(h, c.ID, text).ID)
		if d.State != reeve.RunCompleted || d.Issues.ToolFailures != 1 {
			t.Errorf("%s: %+v", text, d.Turn)
		}
	}
	if list := sent(h, c.ID); len(list) != 0 {
		t.Errorf("the conversation was sent %+v", list)
	}
	var got reeve.Result
	h.Want(http.StatusOK, &got, "POST", "/api/agents/bot/calls",
		object{"tool": "send_media", "args": json.RawMessage(`{"path":"/shared/chart.png"}`)})
	if !got.IsError || got.Code != reeve.ToolFailed || !strings.Contains(got.Message, "does not belong to a conversation") {
		t.Errorf("outside any conversation it came to %+v", got)
	}
}

func TestSendMedia_AScheduleSendsToTheConversationItWasMadeIn(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(5 * time.Second).UTC().Format(time.RFC3339)
	h := painter(t, "- {when: {tool: schedule_create}, text: Planned.}\n",
		"- {when: {said: later}, calls: [{name: schedule_create, args: {goal: send the picture, cadence_type: once, "+
			"cadence_value: '"+soon+"'}}]}\n")
	c := h.StartConversation("bot")
	if d := over(h, speak(h, c.ID, "later please").ID); d.Issues.ToolFailures > 0 {
		t.Fatalf("%+v", d)
	}
	eventually(t, "the picture in the conversation", func() bool { return len(sent(h, c.ID)) == 1 })
	if n := len(turns(h, c.ID)); n != 1 {
		t.Errorf("the conversation has %d turns", n)
	}
}
