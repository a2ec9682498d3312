package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	seq "slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// talker runs a Reeve whose model follows a script, with an agent bot that has these tools.
func talker(t *testing.T, script string, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	h := talkerIn(t, t.TempDir(), script, tools...)
	var ids []string
	for _, tool := range tools {
		ids = append(ids, tool.ID)
	}
	h.Agent("bot", ids...)
	return h
}

func talkerIn(t *testing.T, dir, script string, tools ...reeve.Tool) *reevetest.Host {
	t.Helper()
	cfg := host.Config{Dir: dir}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, script)
	return reevetest.Run(t, cfg, tools...)
}

// scriptFile writes the answers of a model down.
func scriptFile(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("answers:\n"+script), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func turns(h *reevetest.Host, conversation string) []reeve.Turn {
	h.T.Helper()
	var l api.TurnList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+conversation+"/turns", nil)
	return l.Turns
}

func detail(h *reevetest.Host, turn string) (d api.TurnDetail) {
	h.T.Helper()
	h.Want(http.StatusOK, &d, "GET", "/api/turns/"+turn, nil)
	return d
}

// answers gives what the agent said in a turn, from the store.
func answers(t *testing.T, d api.TurnDetail) (list []string) {
	t.Helper()
	for _, m := range d.Messages {
		var info reeve.MessageInfo
		if json.Unmarshal(m.Metadata, &info) == nil && (info.Type == "answer" || info.Type == "final") {
			list = append(list, m.Content)
		}
	}
	return list
}

// kinds lists the types of frames, those that follow each other told once.
func kinds(list []reeve.Frame) string {
	var out []string
	for _, f := range list {
		if n := len(out); n == 0 || out[n-1] != string(f.Type) {
			out = append(out, string(f.Type))
		}
	}
	return strings.Join(out, " ")
}

func TestW01_ATurnInWords(t *testing.T) {
	t.Parallel()
	h := talker(t, `- {text: "Good morning. What can I do for you today?", pace: 1ms}`)
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("hello")
	end := s.ReadTurns(1)
	if end.State != reeve.RunCompleted {
		t.Fatalf("%+v", end)
	}
	if got := kinds(s.Frames); got != "turn_started token message_complete turn_complete" {
		t.Errorf("frames: %s", got)
	}
	d := detail(h, end.TurnID)
	said := answers(t, d)
	whole := s.Frames[len(s.Frames)-2]
	if len(said) != 1 || said[0] != s.TurnText(end.TurnID) || said[0] != whole.Text || d.Output != said[0] ||
		!strings.HasPrefix(said[0], "Good morning") {
		t.Errorf("stored %q, streamed %q, told %q, output %q", said, s.TurnText(end.TurnID), whole.Text, d.Output)
	}
	people := seq.DeleteFunc(seq.Clone(d.Messages), func(m reeve.Message) bool { return m.Kind != reeve.UserMessage })
	if len(people) != 1 || people[0].Content != "hello" || d.State != reeve.RunCompleted {
		t.Errorf("%d user messages, turn %s", len(people), d.State)
	}
}

func TestW05_ParallelTurns(t *testing.T) {
	t.Parallel()
	const n = 5
	var script strings.Builder
	for i := range n {
		fmt.Fprintf(&script, "- {when: 'ask %d', text: '%s', pace: 3ms}\n", i,
			strings.Repeat(fmt.Sprintf("this is %d and ", i), 12))
	}
	h := talker(t, script.String())
	c := h.StartConversation("bot")
	one, two := h.Connect(c.ID, -1), h.Connect(c.ID, -1)
	for i := range n {
		one.SendMessage(fmt.Sprint("ask ", i))
	}
	one.ReadTurns(n)
	two.ReadTurns(n)
	for _, s := range []*reevetest.Socket{one, two} {
		mixed, last := 0, ""
		for _, f := range s.Frames {
			if f.TurnID == "" || f.ConversationID != c.ID {
				t.Fatalf("a frame of no turn: %+v", f)
			}
			if f.Type == reeve.FrameToken && f.TurnID != last {
				mixed, last = mixed+1, f.TurnID
			}
		}
		if mixed <= n {
			t.Errorf("the turns did not run together: %d changes of turn", mixed)
		}
		for _, turn := range turns(h, c.ID) {
			i := strings.TrimPrefix(turn.Input, "ask ")
			text := s.TurnText(turn.ID)
			if turn.Output != text || strings.Count(text, "this is "+i+" and") != 12 ||
				strings.Count(text, "this is") != 12 {
				t.Errorf("%s: streamed %q, stored %q", turn.Input, text, turn.Output)
			}
		}
	}
}

func TestW12_WhatClientsMaySend(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hello, text: hi}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.Send(object{"type": "ping"})
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
	if s.ReadTurns(1); len(turns(h, c.ID)) != 1 {
		t.Errorf("%d turns", len(turns(h, c.ID)))
	}
	s.Send(object{"type": "message", "content": "hello", "id": "once"})
	s.ReadTurns(1)
	s.Send(object{"type": "message", "content": "hello", "id": "once"}) // a client that is not sure sends it again
	s.Send(object{"type": "ping"})
	if f := s.ReadFrame(); f.Type != reeve.FramePong || len(turns(h, c.ID)) != 2 {
		t.Errorf("%+v, %d turns", f, len(turns(h, c.ID)))
	}
	large, err := json.Marshal(object{"type": "message", "content": strings.Repeat("x", 33<<20)})
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
	h := talker(t, "- {text: hi}\n")
	c := h.StartConversation("bot")
	at := h.URL + "/conversations/" + c.ID
	owner := []string{"Authorization", "Bearer " + h.Token, "X-Workspace-Id", "default"}
	if s, res := h.Dial(at+"?workspace=default", "Sec-WebSocket-Protocol", "reeve", "Sec-WebSocket-Protocol",
		"bearer."+h.Token); s == nil || s.Subprotocol() != "reeve" {
		t.Errorf("a browser's way in: %s", res.Status)
	}
	var other api.NewToken
	h.Want(http.StatusCreated, &other, "POST", "/api/tokens", object{"name": "bob", "user": "bob", "role": "member"})
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
	// what the library itself would refuse in plain text
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
	// one rule, however a client asks
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
	h.Want(http.StatusCreated, &viewer, "POST", "/api/tokens", object{"name": "looks on", "user": "bob",
		"role": "viewer"})
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		object{"kind": "user", "id": "bob"})
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

// Clients that break off anywhere and come back miss nothing and see nothing twice, also when the server was restarted
// between.
func TestW12_ResumeIsExact(t *testing.T) {
	t.Parallel()
	dir, script := t.TempDir(), "- {when: hello, text: 'one two three four five six', pace: 1ms}\n"
	h := talkerIn(t, dir, script)
	h.Agent("bot")
	c := h.StartConversation("bot")
	all := h.Connect(c.ID, -1)
	for range 3 {
		all.SendMessage("hello")
		all.ReadTurns(1)
	}
	kept := func(list []reeve.Frame, after int64) (seqs []int64) {
		for _, f := range list {
			if f.Seq > after && f.Type != reeve.FrameToken {
				seqs = append(seqs, f.Seq)
			}
		}
		return seqs
	}
	last := all.LastSeq
	check := func(h *reevetest.Host) {
		t.Helper()
		for _, f := range all.Frames[:len(all.Frames)-1] {
			s := h.Connect(c.ID, f.Seq)
			s.ReadUntil(func(f reeve.Frame) bool { return f.Seq == last })
			if got, want := kept(s.Frames, 0), kept(all.Frames, f.Seq); !seq.Equal(got, want) {
				t.Errorf("after %d: %v, want %v", f.Seq, got, want)
			}
			_ = s.CloseNow()
		}
	}
	check(h)
	h.Stop()
	h = talkerIn(t, dir, script)
	check(h)
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", "/api/conversations/"+c.ID+"/frames", nil)
	if !seq.Equal(kept(l.Frames, 0), kept(all.Frames, 0)) || l.Last != last {
		t.Errorf("kept frames: %v", kept(l.Frames, 0))
	}
	s := h.Connect(c.ID, last) // and it goes on
	s.SendMessage("hello")
	if f := s.ReadTurns(1); f.State != reeve.RunCompleted {
		t.Errorf("%+v", f)
	}
}

// A client that reads nothing harms nobody.
func TestW12_ASlowClientHarmsNobody(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hello, text: '"+strings.Repeat("many words ", 400)+"'}\n")
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
	for _, turn := range turns(h, c.ID) {
		if !strings.HasPrefix(turn.Output, slow.TurnText(turn.ID)) || turn.Output != fast.TurnText(turn.ID) {
			t.Errorf("turn %s: the slow one has %d bytes, the fast one %d of %d", turn.ID, len(slow.TurnText(turn.ID)),
				len(fast.TurnText(turn.ID)), len(turn.Output))
		}
	}
}

// A server that stops says so, and clients come back.
func TestW12_AServerThatStopsSaysSo(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {text: hi}\n")
	s := h.Connect(h.StartConversation("bot").ID, -1)
	gone := make(chan error, 1)
	go func() { _, _, err := s.Read(context.Background()); gone <- err }()
	h.Stop()
	if err := <-gone; !strings.Contains(err.Error(), "StatusGoingAway") {
		t.Errorf("closed with %v", err)
	}
}

func TestW13_AsyncResultsComeAsWholeFrames(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	slow := tool("slow", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return "the long-awaited outcome", nil
	})
	slow.Async = true
	h := talker(t, "- {when: begin, calls: [{name: slow, args: {}}]}\n- {when: {result: awaited}, text: 'It "+
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
			kinds(s.Frames))
	}
	for _, turn := range turns(h, c.ID) {
		if turn.State != reeve.RunCompleted {
			t.Errorf("%+v", turn)
		}
	}
}

func TestW14_EverythingCanBeAskedWhileItRuns(t *testing.T) {
	t.Parallel()
	entered, finish := make(chan struct{}), make(chan struct{})
	h := talker(t, "- {when: begin, text: 'Let me look.', calls: [{id: c1, name: wait, args: {}}]}\n- {when: {tool: "+
		"wait}, text: 'Done.'}\n",
		tool("wait", reeve.Read, func(context.Context, *reeve.Invocation) (any,
			error) {
			close(entered)
			<-finish
			return "looked", nil
		}))
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("begin")
	<-entered
	list := turns(h, c.ID)
	if len(list) != 1 || list[0].State != reeve.RunRunning {
		t.Fatalf("%+v", list)
	}
	if d := detail(h, list[0].ID); len(answers(t, d)) != 1 || d.Messages[0].Kind != reeve.UserMessage {
		t.Errorf("while it runs: %+v", d.Messages)
	}
	close(finish)
	s.ReadTurns(1)
	d := detail(h, list[0].ID)
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
	h.Want(http.StatusCreated, nil, "POST", "/api/turns/"+d.ID+"/feedback", object{"score": 1, "comment": "well done"})
	if d := detail(h, d.ID); len(d.Feedback) != 1 || d.Feedback[0].Comment != "well done" {
		t.Errorf("%+v", d.Feedback)
	}
}

func TestW21_CancelStopsATurnWithinASecond(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{}, 10)
	h := talker(t, "- {when: story, text: '"+strings.Repeat("and so on ", 3000)+
		"', pace: 5ms}\n- {when: work, calls: [{id: a, name: hang, args: {}}, {id: b, name: hang, args: {}}]}\n- "+
		"{when: hello, text: 'Still here.'}\n",
		tool("hang", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}))
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	cancel := func(turn string) {
		t.Helper()
		began := time.Now()
		s.Send(object{"type": "cancel", "turn_id": turn})
		f := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameComplete })
		if f.State != reeve.RunCancelled || time.Since(began) > soon {
			t.Errorf("after %s: %+v", time.Since(began), f)
		}
	}
	s.SendMessage("a story")
	cancel(s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken }).TurnID)
	s.SendMessage("work")
	turn := s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameTool }).TurnID
	<-entered
	cancel(turn)
	for range 2 { // the history can be sent on, and every call has its result
		s.SendMessage("hello")
		if f := s.ReadTurns(1); f.State != reeve.RunCompleted {
			t.Fatalf("%+v", f)
		}
	}
	deadline := time.Now().Add(reevetest.Timeout)
	for {
		results, actions := 0, 0
		for _, m := range detail(h, turn).Messages {
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
	h.Want(http.StatusCreated, &after, "POST", "/api/conversations/"+c.ID+"/turns", object{"content": "a story"})
	h.Want(http.StatusOK, &after, "POST", "/api/turns/"+after.ID+"/cancel", nil)
	if after.State != reeve.RunCancelled {
		t.Errorf("%+v", after)
	}
}

// play is an event of the playground.
type play struct {
	Type, Text, ToolCallID, ToolName, Result, SessionID, ConversationID, TurnID string
	Args                                                                        json.RawMessage
	Code                                                                        reeve.Code
	State                                                                       reeve.RunState
}

// playground says something in a session and gives the events, as they come, to f; when f says so it hangs up.
func playground(h *reevetest.Host, session string, body object, f func(play) bool) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), reevetest.Timeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		h.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/api/playground/sessions/"+session+"/chat",
		strings.NewReader(string(b)))
	if err != nil {
		h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("X-Workspace-Id", "default")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		h.T.Fatalf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return
		}
		var p play
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			h.T.Fatalf("%s: %v", data, err)
		}
		if f(p) {
			return
		}
	}
	h.T.Errorf("the stream ended without [DONE]: %v", lines.Err())
}

func TestI17_ThePlayground(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: both, calls: [{id: c1, name: echo, args: {n: 1}}, {id: c2, name: echo, args: {n: "+
		"2}}]}\n- {when: {tool: echo}, text: 'Both are there.'}\n- {when: {system: 'I am {{x}} $1 %s'}, text: 'I "+
		"know who you are.'}\n"+
		"- {when: write, calls: [{name: write_file, args: {path: /notes.txt, content: remembered}}]}\n- {when: read, "+
		"calls: [{name: read_file, args: {path: /notes.txt}}]}\n",
		tool("echo", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
			return "echo of " +
				string(inv.Args), nil
		}))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": "write_file"})
	h.Want(http.StatusCreated, nil, "POST", "/api/agents/bot/tools", object{"tool_id": "read_file"})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"config": object{"instructions": "I am {{who}}"}})

	var types []string
	var text, conversation string
	args, results := map[string]string{}, map[string]string{}
	playground(h, "sess_1", object{"message": "both, please", "agentId": "bot"}, func(p play) bool {
		if n := len(types); n == 0 || types[n-1] != p.Type {
			types = append(types, p.Type)
		}
		switch p.Type {
		case "text-delta":
			text += p.Text
		case "tool-call-args":
			args[p.ToolCallID] = string(p.Args)
		case "tool-result":
			results[p.ToolCallID] = p.Result
		case "session-info":
			conversation = p.ConversationID
		}
		return false
	})
	if got := strings.Join(types,
		" "); got != "message-start tool-call tool-call-args tool-call-end tool-call tool-call-args tool-call-end "+
		"tool-result text-delta finish session-info" {
		t.Errorf("events: %s", got)
	}
	if text != "Both are there." || len(args) != 2 || len(results) != 2 || conversation == "" {
		t.Errorf("text %q, args %v, results %v", text, args, results)
	}
	for id, a := range args {
		if !strings.Contains(results[id], a) {
			t.Errorf("%s: %s came to %s", id, a, results[id])
		}
	}

	say := func(body object) (text string) { // the session goes on, with its history and its files
		body["agentId"] = "bot"
		playground(h, "sess_1", body, func(p play) bool {
			text += p.Text + p.Result
			if p.Type == "session-info" && p.ConversationID != conversation {
				t.Errorf("the session is now %s", p.ConversationID)
			}
			return false
		})
		return text
	}
	say(object{"message": "write"})
	if got := say(object{"message": "read"}); !strings.Contains(got, "remembered") {
		t.Errorf("the file says %q", got)
	}
	if got := say(object{"message": "who?", "variables": object{"who": "{{x}} $1 %s"}}); got != "I know who you are." {
		t.Errorf("a variable was not inserted literally: %q", got)
	}
	if n := len(turns(h, conversation)); n != 4 {
		t.Errorf("%d turns", n)
	}
}

func TestI18_LoopsAndDisconnects(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: loop, calls: [{name: again, args: {}}]}\n- {when: {tool: again, offers: again}, calls: "+
		"[{name: again, args: {}}]}\n- {when: story, text: '"+
		strings.Repeat("and so on ", 3000)+"', pace: 5ms}\n- {when: hello, text: 'Hello.'}\n",
		tool("again", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "again", nil }))
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", object{"config": object{"max_model_requests": 4}})
	said := object{"message": "loop", "agentId": "bot"}
	calls, recoverable, conversation := 0, false, ""
	playground(h, "s", said, func(p play) bool {
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
		playground(h, "s", object{"message": "hello", "agentId": "bot"},
			func(p play) bool { text += p.Text; return false })
		if text != "Hello." {
			t.Errorf("the session is not usable: %q", text)
		}
	}
	hello()
	// and hangs up
	playground(h, "s", object{"message": "a story", "agentId": "bot"},
		func(p play) bool { return p.Type == "text-delta" })
	for deadline := time.Now().Add(reevetest.Timeout); ; {
		if list := turns(h, conversation); len(list) == 3 && list[0].State == reeve.RunCancelled {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the turn goes on: %+v", turns(h, conversation)[0])
		}
	}
	hello()
}
