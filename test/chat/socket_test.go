package chat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	seq "slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestW12_WhatClientsMaySend(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: hi}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.Send(kit.Object{"type": "ping"})
	if f := s.ReadFrame(); f.Type != reeve.FramePong {
		t.Errorf("%+v", f)
	}
	for frame, code := range map[string]reeve.Code{
		`{"type":`:                          reeve.Validation,
		`[]`:                                reeve.Validation,
		`{}`:                                reeve.Validation,
		`{"type":"shout"}`:                  reeve.Validation,
		`{"type":"message"}`:                reeve.Validation,
		`{"type":"message","content":"  "}`: reeve.Validation,
		`{"type":"message","content":7}`:    reeve.Validation,
		`{"type":"message","content":"x","contnet":"y"}`:                                            reeve.Validation,
		`{"type":"message","content":"a\u0000b"}`:                                                   reeve.Validation,
		`{"type":"message","content":"x","attachments":[{"media_type":"image/png","data":"R0lG"}]}`: reeve.Validation,
		`{"type":"cancel"}`:                                  reeve.Validation,
		`{"type":"cancel","turn_id":"run_none"}`:             reeve.NotFound,
		`{"type":"approve","approval_id":"apr_none"}`:        reeve.NotFound,
		`{"type":"message","type":"ping","content":"hello"}`: reeve.Validation,
	} {
		s.Send(frame)
		if f := s.ReadFrame(); f.Type != reeve.FrameError || f.Code != code || f.Message == "" || f.Hint == "" ||
			f.Seq != 0 {
			t.Errorf("%s: %+v", frame, f)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	if err := s.Write(ctx, 2, []byte{1, 2}); err != nil { // a binary frame
		t.Fatal(err)
	}
	if f := s.ReadFrame(); f.Type != reeve.FrameError || f.Code != reeve.Validation {
		t.Errorf("%+v", f)
	}
	s.SendMessage("hello") // the connection is still good
	if s.ReadTurns(1); len(kit.ListTurns(h, c.ID)) != 1 {
		t.Errorf("%d turns", len(kit.ListTurns(h, c.ID)))
	}
	s.Send(kit.Object{"type": "message", "content": "hello", "id": "once"})
	s.ReadTurns(1)
	s.Send(kit.Object{"type": "message", "content": "hello", "id": "once"}) // a client that is not sure sends it again
	s.Send(kit.Object{"type": "ping"})
	if f := s.ReadFrame(); f.Type != reeve.FramePong || len(kit.ListTurns(h, c.ID)) != 2 {
		t.Errorf("%+v, %d turns", f, len(kit.ListTurns(h, c.ID)))
	}
	large, err := json.Marshal(kit.Object{"type": "message", "content": strings.Repeat("x", 33<<20)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(ctx, 1, large); err != nil && !strings.Contains(err.Error(), "reset") &&
		!strings.Contains(err.Error(), "close") {
		t.Logf("the server hung up before it was sent: %v", err)
	}
	told := false
	for {
		_, b, err := s.Read(ctx)
		if err != nil {
			if !strings.Contains(err.Error(), "1009") && !strings.Contains(err.Error(), "StatusMessageTooBig") {
				t.Errorf("closed with %v", err)
			}
			break
		}
		told = told || strings.Contains(string(b), string(reeve.TooLarge))
	}
	if !told {
		t.Error("nobody said that it was too large")
	}
}

func TestW12_WhoMayConnect(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {text: hi}\n")
	c := h.StartConversation("bot")
	at := h.URL + "/conversations/" + c.ID
	owner := []string{"Authorization", "Bearer " + h.Token, "X-Workspace-Id", "default"}
	if s, res := h.Dial(at+"?workspace=default", "Sec-WebSocket-Protocol", "reeve", "Sec-WebSocket-Protocol",
		"bearer."+h.Token); s == nil || s.Subprotocol() != "reeve" {
		t.Errorf("a browser's way in: %s", res.Status)
	}
	var other api.NewToken
	h.Want(http.StatusCreated, &other, "POST", "/api/tokens", kit.Object{"name": "bob", "user": "bob",
		"role": "member"})
	for name, c := range map[string]struct {
		url     string
		headers []string
		status  int
	}{
		"no token":         {at, []string{"X-Workspace-Id", "default"}, 401},
		"a wrong token":    {at, []string{"X-Workspace-Id", "default", "Authorization", "Bearer x"}, 401},
		"no workspace":     {at, owner[:2], 400},
		"another's":        {at, []string{"X-Workspace-Id", "elsewhere", "Authorization", "Bearer " + h.Token}, 403},
		"not there":        {h.URL + "/conversations/conv_none", owner, 404},
		"no part in it":    {at, []string{"X-Workspace-Id", "default", "Authorization", "Bearer " + other.Token}, 404},
		"a foreign origin": {at, append(seq.Clone(owner), "Origin", "https://evil.example"), 403},
	} {
		if s, res := h.Dial(c.url, c.headers...); s != nil || res.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", name, res.Status, c.status)
		}
	}
	if r := h.Do("GET", "/conversations/"+c.ID, nil); r.Status != http.StatusBadRequest {
		t.Errorf("without an upgrade: %d", r.Status)
	}
	// the library would refuse these handshakes with a plain-text error
	for header, value := range map[string]string{"Sec-WebSocket-Version": "12", "Sec-WebSocket-Key": "short",
		"Connection": "close"} {
		headers := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", header: value}
		var list []string
		for k, v := range headers {
			list = append(list, k, v)
		}
		var p api.Problem
		h.Want(http.StatusBadRequest, &p, "GET", "/conversations/"+c.ID, nil, list...)
		if p.Code != reeve.Validation || len(p.Errors) != 1 || p.Errors[0].Path != "header/"+header {
			t.Errorf("%s: %+v", header, p)
		}
	}
	old, err := net.Dial("tcp", strings.TrimPrefix(h.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	fmt.Fprintf(old, "GET /conversations/%s HTTP/1.0\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: "+
		"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: "+
		"Bearer %s\r\nX-Workspace-Id: default\r\n\r\n",
		c.ID, strings.TrimPrefix(h.URL, "http://"), h.Token)
	if said, err := io.ReadAll(old); err != nil || !strings.Contains(string(said), "400 Bad Request") ||
		!strings.Contains(string(said), "application/problem+json") || !strings.Contains(string(said), "HTTP/1.0") {
		t.Errorf("over HTTP/1.0: %s, %v", said, err)
	}
	// an invalid after is refused on every route
	for _, after := range []string{"-1", "-99", "x", "", "%2B5", "-0", "007", "%200", "1e3", "99999999999999999999",
		"0&after=x", "0&after=0"} {
		for _, path := range []string{"/api/conversations/" + c.ID + "/events?follow=false&after=",
			"/api/conversations/" + c.ID + "/frames?after="} {
			var p api.Problem
			if h.Want(http.StatusBadRequest, &p, "GET", path+after, nil); len(p.Errors) != 1 ||
				p.Errors[0].Path != "query/after" {
				t.Errorf("%s%s: %+v", path, after, p)
			}
		}
		if s, res := h.Dial(at+"?after="+after, owner...); s != nil || res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", after, res.Status)
		}
	}
	if r := h.Do("GET", "/api/conversations/"+c.ID+"/events?follow=false", nil); r.Status != http.StatusOK {
		t.Errorf("from now on: %d %s", r.Status, r.Body)
	}
	var viewer api.NewToken
	h.Want(http.StatusCreated, &viewer, "POST", "/api/tokens", kit.Object{"name": "looks on", "user": "bob",
		"role": "viewer"})
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		kit.Object{"kind": "user", "id": "bob"})
	s, res := h.Dial(at, "Authorization", "Bearer "+viewer.Token, "X-Workspace-Id", "default")
	if s == nil {
		t.Fatal(res.Status)
	}
	s.ReadFrame()
	s.SendMessage("hello")
	if f := s.ReadFrame(); f.Code != reeve.Forbidden {
		t.Errorf("%+v", f)
	}
}

// A client that reads nothing does not affect others.
func TestW12_SlowClientAffectsNoOther(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: '"+strings.Repeat("many words ", 400)+"'}\n")
	c := h.StartConversation("bot")
	slow, fast := h.Connect(c.ID, -1), h.Connect(c.ID, -1)
	for range 20 {
		fast.SendMessage("hello")
		fast.ReadTurns(1)
	}
	done := 0
	slow.ReadUntil(func(f reeve.Frame) bool { // it reads at last: every kept frame is there, in order
		if f.Type == reeve.FrameComplete {
			done++
		}
		return done == 20
	})
	for _, turn := range kit.ListTurns(h, c.ID) {
		if !strings.HasPrefix(turn.Output, slow.TurnText(turn.ID)) || turn.Output != fast.TurnText(turn.ID) {
			t.Errorf("turn %s: the slow one has %d bytes, the fast one %d of %d", turn.ID, len(slow.TurnText(turn.ID)),
				len(fast.TurnText(turn.ID)), len(turn.Output))
		}
	}
}

// A server that stops tells its clients, and they reconnect.
func TestW12_AServerThatStopsSaysSo(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {text: hi}\n")
	s := h.Connect(h.StartConversation("bot").ID, -1)
	gone := make(chan error, 1)
	go func() { _, _, err := s.Read(context.Background()); gone <- err }()
	h.Stop()
	if err := <-gone; !strings.Contains(err.Error(), "StatusGoingAway") {
		t.Errorf("closed with %v", err)
	}
}

func TestW14_EverythingCanBeAskedWhileItRuns(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}), make(chan struct{})
	h := kit.RunScripted(t, "- {when: begin, text: 'Let me look.', calls: [{id: c1, name: wait, args: {}}]}\n- {when: "+
		"{tool: "+
		"wait}, text: 'Done.'}\n",
		kit.Tool("wait", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) {
			close(entered)
			<-finish
			return "looked", nil
		}))
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("begin")
	<-entered
	list := kit.ListTurns(h, c.ID)
	if len(list) != 1 || list[0].State != reeve.RunRunning {
		t.Fatalf("%+v", list)
	}
	if d := kit.GetTurn(h, list[0].ID); len(listAnswers(t, d)) != 1 || d.Messages[0].Kind != reeve.UserMessage {
		t.Errorf("while it runs: %+v", d.Messages)
	}
	close(finish)
	s.ReadTurns(1)
	d := kit.GetTurn(h, list[0].ID)
	var kind []string
	for _, m := range d.Messages {
		kind = append(kind, string(m.Kind))
		if m.RunID != d.ID || m.ThreadID != c.ThreadID() {
			t.Errorf("a message of another turn: %+v", m)
		}
	}
	if got := strings.Join(kind, " "); !strings.Contains(got, "action tool_result") || d.State != reeve.RunCompleted ||
		d.ModelRequests != 2 || d.Output != "Done." {
		t.Errorf("after: %s, %+v", got, d.Turn)
	}
	var history api.MessageList
	h.Want(http.StatusOK, &history, "GET", "/api/conversations/"+c.ID+"/messages?limit=2", nil)
	n := len(history.Messages)
	for history.Next != "" {
		next := history.Next
		history = api.MessageList{}
		h.Want(http.StatusOK, &history, "GET", "/api/conversations/"+c.ID+"/messages?limit=2&cursor="+next, nil)
		n += len(history.Messages)
	}
	if n != len(d.Messages) {
		t.Errorf("%d messages in the history, %d in the turn", n, len(d.Messages))
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+d.ID+"/feedback",
		kit.Object{"score": 1, "comment": "well done"})
	if d := kit.GetTurn(h, d.ID); len(d.Feedback) != 1 || d.Feedback[0].Comment != "well done" {
		t.Errorf("%+v", d.Feedback)
	}
}

func TestI18_LoopsAndDisconnects(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: loop, calls: [{name: again, args: {}}]}\n- {when: {tool: again, offers: again}, "+
		"calls: "+
		"[{name: again, args: {}}]}\n- {when: story, text: '"+
		strings.Repeat("and so on ", 3000)+"', pace: 5ms}\n- {when: hello, text: 'Hello.'}\n",
		kit.Tool("again", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "again", nil }))
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"config": kit.Object{"max_model_requests": 4}})
	said := kit.Object{"message": "loop", "agentId": "bot"}
	calls, recoverable, conversation := 0, false, ""
	postPlayground(h, "s", said, func(p playgroundEvent) bool {
		switch p.Type {
		case "tool-call":
			calls++
		case "recoverable-error":
			recoverable = p.Code == reeve.StepLimit
		case "session-info":
			conversation = p.ConversationID
		}
		return false
	})
	if calls == 0 || calls > 5 || !recoverable {
		t.Errorf("%d calls, recoverable %v", calls, recoverable)
	}
	text := ""
	hello := func() {
		text = ""
		postPlayground(h, "s", kit.Object{"message": "hello", "agentId": "bot"},
			func(p playgroundEvent) bool { text += p.Text; return false })
		if text != "Hello." {
			t.Errorf("the session is not usable: %q", text)
		}
	}
	hello()
	// and hangs up
	postPlayground(h, "s", kit.Object{"message": "a story", "agentId": "bot"},
		func(p playgroundEvent) bool { return p.Type == "text-delta" })
	for deadline := time.Now().Add(reevetest.Timeout); ; {
		if list := kit.ListTurns(h, conversation); len(list) == 3 && list[0].State == reeve.RunCancelled {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the turn goes on: %+v", kit.ListTurns(h, conversation)[0])
		}
	}
	hello()
}
