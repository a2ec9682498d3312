package chat_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/client"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A turn can be followed as server-sent events, and a conversation from any event on.
func TestW12_ServerSentEvents(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: 'one two three'}\n")
	c := h.StartConversation("bot")
	at := "/api/conversations/" + c.ID
	// it ends by itself
	ids, names := readEvents(h, "POST", at+"/turns", `{"content":"hello"}`, "never", "Idempotency-Key", "k")
	if got := strings.Join(names, " "); got != "turn_started token message_complete turn_complete" {
		t.Errorf("events: %s", got)
	}
	if again, _ := readEvents(h, "POST", at+"/turns", `{"content":"hello"}`, "turn_complete", "Idempotency-Key", "k"); fmt.Sprint(again) != fmt.Sprint(ids) {
		t.Errorf("the same key gave %v, want %v", again, ids)
	}
	if n := len(kit.ListTurns(h, c.ID)); n != 1 {
		t.Errorf("%d turns", n)
	}
	for i := range ids[:len(ids)-1] {
		rest, _ := readEvents(h, "GET", at+"/events", "", "turn_complete", "Last-Event-ID", ids[i])
		same, _ := readEvents(h, "GET", at+"/events?after="+ids[i], "", "turn_complete")
		if fmt.Sprint(rest) != fmt.Sprint(ids[i+1:]) || fmt.Sprint(same) != fmt.Sprint(rest) {
			t.Errorf("after %s: %v and %v, want %v", ids[i], rest, same, ids[i+1:])
		}
	}
	if all, _ := readEvents(h, "GET", at+"/events?after=0&follow=false", "", "never"); fmt.Sprint(all) != fmt.Sprint(ids) {
		t.Errorf("all of it: %v", all)
	}
	if r := h.Do("GET", at+"/events", nil, "Last-Event-ID", "x"); r.Status != http.StatusBadRequest {
		t.Errorf("a bad id: %d", r.Status)
	}
	if r := h.Do("POST", at+"/turns", kit.Object{"content": "other"}, "Idempotency-Key", "k"); r.Status != http.StatusConflict {
		t.Errorf("another turn under the key: %d", r.Status)
	}
}

// proxy passes connections on until they are broken.
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

// The client reconnects whenever the network breaks, and misses no stored frame.
func TestW12_ClientReconnects(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: 'one two three four five six', pace: 2ms}\n")
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
