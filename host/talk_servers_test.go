package host_test

import (
	"fmt"
	"io"
	"net/http"
	seq "slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// talkers are two servers on one PostgreSQL with an agent bot. The second never looks by itself whether the first has
// committed something: it is as far behind as a server can be.
func talkers(t *testing.T, script string) (first, behind *reevetest.Host) {
	t.Helper()
	url, file := storetest.PostgresURL(t), scriptFile(t, script)
	config := func() host.Config {
		cfg := quick(t)
		cfg.Database, cfg.SecretKey = url, strings.Repeat("ab", 32)
		cfg.Models.Default, cfg.Models.Script = "rehearsal", file
		return cfg
	}
	first = reevetest.Run(t, config())
	behind = reevetest.StartWith(t, config())
	behind.Token = first.Token
	first.Agent("bot")
	return first, behind
}

// keptSeqs are the numbers of the kept frames of a conversation after one, as servers send them in server-sent events.
func keptSeqs(h *reevetest.Host, conversation string, after int64) (list []string) {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", fmt.Sprintf("/api/conversations/%s/frames?after=%d", conversation, after), nil)
	for _, f := range l.Frames {
		list = append(list, fmt.Sprint(f.Seq))
	}
	return list
}

// turnAt has a turn from its beginning to its end, and gives the number of its last frame.
func turnAt(h *reevetest.Host, conversation string) int64 {
	h.T.Helper()
	s := h.Connect(conversation, -1)
	s.SendMessage("hello")
	last := s.ReadTurns(1).Seq
	_ = s.CloseNow()
	return last
}

// A client that goes on at another server, which has not heard of what the client saw at the first, is told only what
// it lacks, and all of that.
func TestW12_ResumingAtAServerThatIsBehind(t *testing.T) {
	t.Parallel()
	first, behind := talkers(t, "- {when: hello, text: 'one two three'}\n")
	c := first.StartConversation("bot")
	early := behind.Connect(c.ID, -1) // makes it remember where the conversation stands
	for round := range 2 {            // in the second nobody else listens there
		last := turnAt(first, c.ID)
		s := behind.Connect(c.ID, last)
		s.SendMessage("hello") // it is told at once, and nobody runs it there; Next refuses what the client has
		f := s.ReadFrame()
		if want := keptSeqs(first, c.ID, last); f.Type != reeve.FrameStarted || fmt.Sprint(f.Seq) != want[0] {
			t.Errorf("round %d: after %d comes %+v, want %v", round, last, f, want)
		}
		behind.Want(http.StatusOK, nil, "POST", "/api/turns/"+f.TurnID+"/cancel", nil)
		s.ReadTurns(1)
		_ = s.CloseNow()
		_ = early.CloseNow()
	}
	for _, way := range []string{"Last-Event-ID", "after"} {
		last := turnAt(first, c.ID)
		turnAt(first, c.ID)
		path, headers := "/api/conversations/"+c.ID+"/events", []string{way, fmt.Sprint(last)}
		if way == "after" {
			path, headers = path+fmt.Sprint("?after=", last), nil
		}
		ids, _ := events(behind, "GET", path, "", "turn_complete", headers...)
		if want := keptSeqs(first, c.ID, last); !seq.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", way, ids, want)
		}
	}
	turnAt(first, c.ID)
	if now, there := behind.Connect(c.ID, -1), first.Connect(c.ID, -1); now.LastSeq != there.LastSeq {
		t.Errorf("from now on is after %d, at the first after %d", now.LastSeq, there.LastSeq)
	}
}

// What is there is given to the last frame by a server that has not heard of all of it.
func TestW12_AServerThatIsBehindGivesWhatIsThere(t *testing.T) {
	t.Parallel()
	first, behind := talkers(t, "- {when: hello, text: 'one two three'}\n")
	c := first.StartConversation("bot")
	_ = behind.Connect(c.ID, -1).CloseNow()
	last := turnAt(first, c.ID)
	for _, after := range []int64{0, last} {
		ids, _ := events(behind, "GET", fmt.Sprintf("/api/conversations/%s/events?after=%d&follow=false", c.ID, after),
			"", "never")
		if want := keptSeqs(first, c.ID, after); !seq.Equal(ids, want) {
			t.Errorf("after %d: %v, want %v", after, ids, want)
		}
	}
}

// A place to which the conversation has not come, as after a backup was restored, is refused in every way in which a
// client can name it.
func TestW12_APlaceBeyondTheEndIsRefused(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hello, text: 'one two three'}\n")
	c := h.StartConversation("bot")
	last := turnAt(h, c.ID)
	at := "/api/conversations/" + c.ID
	far := fmt.Sprint(last + 999_000_000)
	silent := h.StartConversation("bot").ID // where nothing was ever told
	for _, path := range []string{at + "/events?follow=false&after=" + far, at + "/frames?after=" + far,
		"/conversations/" + c.ID + "?after=" + far,
		"/api/conversations/" + silent + "/events?follow=false&after=5000", "/api/conversations/" + silent +
			"/frames?after=5000", "/conversations/" + silent + "?after=5000"} {
		var body []byte
		var status int
		if strings.HasPrefix(path, "/api/") {
			r := h.Do("GET", path, nil)
			status, body = r.Status, r.Body
		} else {
			refused, res := h.Dial(h.URL+path, "Authorization", "Bearer "+h.Token, "X-Workspace-Id", "default")
			if refused != nil {
				t.Fatalf("%s: connected", path)
			}
			status = res.StatusCode
			body, _ = io.ReadAll(res.Body)
		}
		if status != http.StatusConflict || !strings.Contains(string(body), string(reeve.Stale)) ||
			!strings.Contains(string(body), "after=0") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if r := h.Do("GET", at+"/events?follow=false", nil, "Last-Event-ID", far); r.Status != http.StatusConflict {
		t.Errorf("Last-Event-ID: %d %s", r.Status, r.Body)
	}
	for id, end := range map[string]int64{c.ID: last, silent: 0} {
		if s := h.Connect(id, end); s.LastSeq != end {
			t.Errorf("the end itself: %d", s.LastSeq)
		}
	}
}
