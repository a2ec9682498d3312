package chat_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// longAnswer is a model script with an answer that streams for twenty seconds.
var longAnswer = "- {when: slow, text: '" + strings.Repeat("word ", 2000) + "', pace: 10ms}\n"

// tokenHolder is a user whose token may expire.
type tokenHolder struct {
	h       *reevetest.Host
	token   api.NewToken
	headers http.Header
}

func newTokenHolder(h *reevetest.Host, name string, expires time.Time) tokenHolder {
	h.T.Helper()
	g := tokenHolder{h: h}
	body := kit.Object{"name": name, "user": name, "role": "member"}
	if !expires.IsZero() {
		body["expires_at"] = expires
	}
	h.Want(http.StatusCreated, &g.token, "POST", "/api/tokens", body)
	g.headers = http.Header{"Authorization": {"Bearer " + g.token.Token}, "X-Workspace-Id": {"default"},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	return g
}

// openStream is a stream that has begun.
type openStream struct {
	name  string
	words int // number of words received; read it only after ended
	ended chan time.Time
}

// listen opens a stream by server-sent events or, without a method, by a WebSocket, and reads it until it ends.
func (g tokenHolder) listen(ctx context.Context, method, path, body string) *openStream {
	g.h.T.Helper()
	l := &openStream{name: method + " " + path, ended: make(chan time.Time, 1)}
	var next func() (string, bool)
	if method == "" {
		conn, _, err := websocket.Dial(ctx, g.h.URL+path, &websocket.DialOptions{HTTPHeader: g.headers})
		if err != nil {
			g.h.T.Fatal(err)
		}
		next = func() (string, bool) {
			_, b, err := conn.Read(ctx)
			if code := websocket.CloseStatus(err); err != nil && code != websocket.StatusPolicyViolation {
				g.h.T.Errorf("%s ended with %v", l.name, err)
			}
			return string(b), err == nil
		}
	} else {
		req, err := http.NewRequestWithContext(ctx, method, g.h.URL+path, strings.NewReader(body))
		if err != nil {
			g.h.T.Fatal(err)
		}
		req.Header = g.headers
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode >= 300 {
			g.h.T.Fatalf("%s: %v, %v", l.name, res, err)
		}
		g.h.T.Cleanup(func() { _ = res.Body.Close() })
		lines := bufio.NewScanner(res.Body)
		next = func() (string, bool) { ok := lines.Scan(); return lines.Text(), ok }
	}
	if text, ok := next(); !ok {
		g.h.T.Fatalf("%s: nothing was heard: %s", l.name, text)
	}
	go func() {
		for {
			text, ok := next()
			if !ok {
				l.ended <- time.Now()
				return
			}
			l.words += strings.Count(text, "word")
		}
	}()
	return l
}

// mustEndSoon checks that the stream ends soon after a moment, before all of it was sent.
func (l *openStream) mustEndSoon(t *testing.T, after time.Time) {
	t.Helper()
	if at := <-l.ended; at.Before(after) || at.Sub(after) > kit.StopTimeout || l.words == 0 {
		t.Errorf("%s ended %v after it should, having heard %d words", l.name, at.Sub(after), l.words)
	}
}

// A token that expires ends its streams, however much there is to send.
func TestW12_ExpiredTokenEndsAStream(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, longAnswer)
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	end := reeve.Now().Add(3 * time.Second)
	g := newTokenHolder(h, "bob", end)
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot"}, "Authorization",
		"Bearer "+g.token.Token)
	at := "/api/conversations/" + c.ID
	for _, l := range []*openStream{g.listen(ctx, "GET", at+"/events", ""), g.listen(ctx, "", "/conversations/"+c.ID, ""),
		g.listen(ctx, "POST", at+"/turns", `{"content":"slow"}`),
		g.listen(ctx, "POST", "/v1/chat/completions",
			`{"model":"bot","stream":true,"messages":[{"role":"user","content":"slow"}]}`)} {
		l.mustEndSoon(t, end)
	}
}

// A right that is revoked at one server ends streams at another, however much there is to send.
func TestW12_RightRevokedOnAnotherServerEndsAStream(t *testing.T) {
	t.Parallel()
	var servers [2]*reevetest.Host
	url := storetest.PostgresURL(t)
	for i := range servers {
		cfg := host.Config{Dir: t.TempDir(), Database: url, SecretKey: strings.Repeat("ab", 32),
			Heartbeat: 50 * time.Millisecond}
		cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, longAnswer)
		servers[i] = reevetest.Run(t, cfg)
	}
	there, here := servers[0], servers[1]
	here.Agent("bot")
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	for name, take := range map[string]func(g tokenHolder, conversation string){
		"revoked": func(g tokenHolder, _ string) {
			there.Want(http.StatusNoContent, nil, "DELETE", "/api/tokens/"+g.token.ID, nil)
		},
		"removed": func(g tokenHolder, c string) {
			there.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c+"/participants/"+g.token.User+
				"?kind=user", nil)
		},
	} {
		g := newTokenHolder(here, name, time.Time{})
		c := here.StartConversation("bot")
		here.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
			kit.Object{"kind": "user", "id": name})
		all := []*openStream{g.listen(ctx, "GET", "/api/conversations/"+c.ID+"/events", ""),
			g.listen(ctx, "", "/conversations/"+c.ID, "")}
		mine := here.Connect(c.ID, -1)
		kit.StartTurn(here, c.ID, "slow")
		for range 20 { // so that the other streams have received tokens too
			mine.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
		}
		taken := time.Now()
		take(g, c.ID)
		for _, l := range all {
			l.mustEndSoon(t, taken)
		}
	}
}

func TestW12_ALostRightEndsAConnection(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: hello, text: hi}\n")
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	h.Want(http.StatusCreated, &made, "POST", "/api/tokens", kit.Object{"name": "bob", "user": "bob", "role": "member"})
	c := h.StartConversation("bot")
	h.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
		kit.Object{"kind": "user", "id": "bob"})
	s, _ := h.Dial(h.URL+"/conversations/"+c.ID, "Authorization", "Bearer "+made.Token, "X-Workspace-Id", "default")
	if f := s.ReadFrame(); f.Type != reeve.FrameConnected {
		t.Fatalf("%+v", f)
	}
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c.ID+"/participants/bob?kind=user", nil)
	if code := s.ReadUntilClosed(); code != 1008 {
		t.Errorf("the connection ended with %d", code)
	}
}

func TestL01_DestroyingAnAgentEndsItsTurns(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/bot", kit.Object{"lifecycle": "destroyed"})
	end := s.ReadTurns(1)
	if end.State != reeve.RunCancelled {
		t.Errorf("%+v", end)
	}
	for _, f := range s.Frames {
		if f.Type == reeve.FrameMessage {
			t.Error("a turn that was over said something")
		}
	}
}

func TestG23_TheKillSwitchStopsATurnInMidStream(t *testing.T) {
	t.Parallel()
	h := kit.RunScripted(t, "- {when: slow, text: '"+strings.Repeat("word ", 200)+"', pace: 50ms}\n")
	c := h.StartConversation("bot")
	s := h.Connect(c.ID, -1)
	s.SendMessage("slow")
	s.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
	h.Want(http.StatusNoContent, nil, "POST", "/api/stop", kit.Object{})
	if end := s.ReadTurns(1); end.State != reeve.RunCancelled || end.Code != reeve.Stopped {
		t.Errorf("%+v", end)
	}
	if d := kit.ListTurns(h, c.ID)[0]; d.Spent.Tokens == 0 && d.ModelRequests != 0 {
		t.Errorf("%+v", d)
	}
}
