package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/client"
	"reeve/reevetest"
)

// events reads a stream of server-sent events and gives the ids and names, until a name.
func events(h *reevetest.Host, method, path, body, until string, headers ...string) (ids, names []string) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), reevetest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	for _, p := range [][2]string{{"Authorization", "Bearer " + h.Token}, {"X-Workspace-Id", "default"},
		{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}} {
		req.Header.Set(p[0], p[1])
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		h.T.Fatalf("%s %s: %s", res.Status, kind, b)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			if n := len(names); n == 0 || names[n-1] != name {
				names = append(names, name)
			}
			if name == until {
				break
			}
		}
	}
	return ids, names
}

// A turn can be followed as server-sent events, and a conversation from any event on.
func TestW12_ServerSentEvents(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hello, text: 'one two three'}\n")
	c := h.StartConversation("bot")
	at := "/api/conversations/" + c.ID
	// it ends by itself
	ids, names := events(h, "POST", at+"/turns", `{"content":"hello"}`, "never", "Idempotency-Key", "k")
	if got := strings.Join(names, " "); got != "turn_started token message_complete turn_complete" {
		t.Errorf("events: %s", got)
	}
	if again, _ := events(h, "POST", at+"/turns", `{"content":"hello"}`, "turn_complete", "Idempotency-Key",
		"k"); fmt.Sprint(again) != fmt.Sprint(ids) {
		t.Errorf("the same key gave %v, want %v", again, ids)
	}
	if n := len(turns(h, c.ID)); n != 1 {
		t.Errorf("%d turns", n)
	}
	for i := range ids[:len(ids)-1] {
		rest, _ := events(h, "GET", at+"/events", "", "turn_complete", "Last-Event-ID", ids[i])
		same, _ := events(h, "GET", at+"/events?after="+ids[i], "", "turn_complete")
		if fmt.Sprint(rest) != fmt.Sprint(ids[i+1:]) || fmt.Sprint(same) != fmt.Sprint(rest) {
			t.Errorf("after %s: %v and %v, want %v", ids[i], rest, same, ids[i+1:])
		}
	}
	if all, _ := events(h, "GET", at+"/events?after=0&follow=false", "", "never"); fmt.Sprint(all) != fmt.Sprint(ids) {
		t.Errorf("all of it: %v", all)
	}
	if r := h.Do("GET", at+"/events", nil, "Last-Event-ID", "x"); r.Status != http.StatusBadRequest {
		t.Errorf("a bad id: %d", r.Status)
	}
	if r := h.Do("POST", at+"/turns", object{"content": "other"}, "Idempotency-Key",
		"k"); r.Status != http.StatusConflict {
		t.Errorf("another turn under the key: %d", r.Status)
	}
}

// proxy passes connections on, and breaks them all when it is told to.
type proxy struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	t.Cleanup(func() { _ = l.Close(); p.breakAll() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.open = append(p.open, in, out)
			p.mu.Unlock()
			for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
				go func() { _, _ = io.Copy(pair[0], pair[1]); _ = pair[0].Close(); _ = pair[1].Close() }()
			}
		}
	}()
	return p
}

func (p *proxy) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// The client comes back when the network breaks, again and again, and misses nothing that is kept.
func TestW12_TheClientComesBack(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: hello, text: 'one two three four five six', pace: 2ms}\n")
	p := newProxy(t, strings.TrimPrefix(h.URL, "http://"))
	c, err := client.New(client.Config{URL: "http://" + p.Addr().String(), Token: h.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	talk := h.StartConversation("bot")
	const n = 5
	s := h.Connect(talk.ID, -1)
	go func() {
		for range n {
			s.SendMessage("hello")
		}
	}()
	done, last := 0, int64(0)
	whole := map[string]string{}
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	err = c.Conversations().Follow(ctx, talk.ID, 0, func(f reeve.Frame) error {
		if f.Seq <= last {
			t.Errorf("frame %d after %d", f.Seq, last)
		}
		last = f.Seq
		if f.Type == reeve.FrameMessage {
			whole[f.TurnID] += f.Text
		}
		if f.Type != reeve.FrameToken {
			p.breakAll()
		}
		if f.Type == reeve.FrameComplete {
			done++
		}
		if done == n {
			return client.ErrStop
		}
		return nil
	})
	if err != nil || len(whole) != n {
		t.Fatalf("%d messages: %v", len(whole), err)
	}
	for turn, text := range whole {
		if text != "one two three four five six" {
			t.Errorf("%s: %q", turn, text)
		}
	}
	if err := c.Conversations().Follow(ctx, "conv_none", 0, nil); reeve.CodeOf(err) != reeve.NotFound {
		t.Errorf("a conversation that is not there: %v", err)
	}
}

// An outcome that comes from outside reaches the turn that waits for it.
func TestW04_AnOutcomeFromOutside(t *testing.T) {
	t.Parallel()
	h := talker(t, "- {when: shipped, text: 'It is on its way.'}\n- {when: {result: shipped}, text: 'It is on its "+
		"way.'}\n- {when: please, calls: [{name: order, args: {}}]}\n- {when: {tool: order}, text: 'Ordered.'}\n",
		func() reeve.Tool {
			v := tool("order", reeve.Keyed, func(context.Context, *reeve.Invocation) (any, error) {
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
			if r := h.Do("POST", at, object{"content": "shipped"}); r.Status == http.StatusConflict {
				continue // it has not been sent yet
			} else if r.Status != http.StatusOK {
				t.Fatalf("%d %s", r.Status, r.Body)
			}
			h.Want(http.StatusConflict, nil, "POST", at, object{"content": "twice"})
			break
		}
	}
	if f := s.ReadTurns(1); f.State != reeve.RunCompleted || detail(h, f.TurnID).Output != "It is on its way." {
		t.Errorf("%+v", f)
	}
}
