package chat_test

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
	"reeve/test/kit"
)

// runTwoServers runs two servers on one PostgreSQL database with an agent bot. The second never polls for commits of
// the first.
func runTwoServers(t *testing.T, script string) (first, behind *reevetest.Host) {
	t.Helper()
	url, file := storetest.PostgresURL(t), kit.WriteScript(t, script)
	config := func() host.Config {
		cfg := kit.FastConfig(t)
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

// listFrameNumbers returns the numbers of the stored frames of a conversation after one, in the form that server-sent
// events have.
func listFrameNumbers(h *reevetest.Host, conversation string, after int64) (list []string) {
	h.T.Helper()
	var l api.FrameList
	h.Want(http.StatusOK, &l, "GET", fmt.Sprintf("/api/conversations/%s/frames?after=%d", conversation, after), nil)
	for _, f := range l.Frames {
		list = append(list, fmt.Sprint(f.Seq))
	}
	return list
}

// completeTurn runs a turn to its end and returns the number of its last frame.
func completeTurn(h *reevetest.Host, conversation string) int64 {
	h.T.Helper()
	s := h.Connect(conversation, -1)
	s.SendMessage("hello")
	last := s.ReadTurns(1).Seq
	_ = s.CloseNow()
	return last
}

// A client continues at another server, which does not know all frames yet. It gets exactly the frames that it lacks.
func TestW12_ResumingAtAServerThatIsBehind(t *testing.T) {
	t.Parallel()
	first, behind := runTwoServers(t, "- {when: hello, text: 'one two three'}\n")
	c := first.StartConversation("bot")
	early := behind.Connect(c.ID, -1) // makes the second server cache the position of the conversation
	for round := range 2 {            // in the second round, s is the only client of that server
		last := completeTurn(first, c.ID)
		s := behind.Connect(c.ID, last)
		s.SendMessage("hello") // the first frame is that of the new turn; the second server runs no turns
		f := s.ReadFrame()
		if want := listFrameNumbers(first, c.ID, last); f.Type != reeve.FrameStarted || fmt.Sprint(f.Seq) != want[0] {
			t.Errorf("round %d: after %d comes %+v, want %v", round, last, f, want)
		}
		behind.Want(http.StatusOK, nil, "POST", "/api/turns/"+f.TurnID+"/cancel", nil)
		s.ReadTurns(1)
		_ = s.CloseNow()
		_ = early.CloseNow()
	}
	for _, way := range []string{"Last-Event-ID", "after"} {
		last := completeTurn(first, c.ID)
		completeTurn(first, c.ID)
		path, headers := "/api/conversations/"+c.ID+"/events", []string{way, fmt.Sprint(last)}
		if way == "after" {
			path, headers = path+fmt.Sprint("?after=", last), nil
		}
		ids, _ := readEvents(behind, "GET", path, "", "turn_complete", headers...)
		if want := listFrameNumbers(first, c.ID, last); !seq.Equal(ids, want) {
			t.Errorf("%s: %v, want %v", way, ids, want)
		}
	}
	completeTurn(first, c.ID)
	if now, there := behind.Connect(c.ID, -1), first.Connect(c.ID, -1); now.LastSeq != there.LastSeq {
		t.Errorf("from now on is after %d, at the first after %d", now.LastSeq, there.LastSeq)
	}
}

// A server that was not notified of all frames still sends every stored frame.
func TestW12_ServerThatIsBehindSendsAllStoredFrames(t *testing.T) {
	t.Parallel()
	first, behind := runTwoServers(t, "- {when: hello, text: 'one two three'}\n")
	c := first.StartConversation("bot")
	_ = behind.Connect(c.ID, -1).CloseNow()
	last := completeTurn(first, c.ID)
	for _, after := range []int64{0, last} {
		ids, _ := readEvents(behind, "GET", fmt.Sprintf("/api/conversations/%s/events?after=%d&follow=false", c.ID, after),
			"", "never")
		if want := listFrameNumbers(first, c.ID, after); !seq.Equal(ids, want) {
			t.Errorf("after %d: %v, want %v", after, ids, want)
		}
	}
}

// A position that the conversation has not reached, as after a restore, is refused in every form in which a client can
// send it.
func TestW12_PositionBeyondTheEndIsRefused(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: 'one two three'}\n")
	c := h.StartConversation("bot")
	last := completeTurn(h, c.ID)
	at := "/api/conversations/" + c.ID
	far := fmt.Sprint(last + 999_000_000)
	silent := h.StartConversation("bot").ID // a conversation without frames
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

func TestW12_AnswerRestartsAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "- {when: slow, text: 'w01 w02 w03 w04 w05 w06 w07 w08 w09 w10', pace: 60ms}\n"
	h := kit.RunScriptedIn(t, dir, script)
	h.Agent("bot")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	last := reeve.Frame{}
	for range 4 {
		last = s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	}
	h.Stop()
	h = kit.RunScriptedIn(t, dir, script)
	s = h.Connect(c.ID, last.Seq)
	s.ReadTurns(1)
	text, discarded, seq := "", false, last.Seq
	for _, f := range s.Frames {
		if f.Seq <= seq {
			t.Errorf("frame %d comes after %d", f.Seq, seq)
		}
		seq = f.Seq
		if f.Type != reeve.FrameToken {
			continue
		}
		if f.Discard {
			text, discarded = "", true
			continue
		}
		text += f.Text
	}
	if !discarded || strings.TrimSpace(text) != "w01 w02 w03 w04 w05 w06 w07 w08 w09 w10" {
		t.Errorf("discarded %v, heard %q", discarded, text)
	}
}

// Clients that disconnect anywhere and reconnect miss nothing and see nothing twice, also across a restart of the
// server.
func TestW12_ResumeIsExact(t *testing.T) {
	t.Parallel()
	dir, script := t.TempDir(), "- {when: hello, text: 'one two three four five six', pace: 1ms}\n"
	h := kit.RunScriptedIn(t, dir, script)
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
	h = kit.RunScriptedIn(t, dir, script)
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
