package host_test

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
)

// chatter is a bot that talks for twenty seconds without a pause.
var chatter = "- {when: slow, text: '" + strings.Repeat("word ", 2000) + "', pace: 10ms}\n"

// guest is one who may listen for as long as the token is good.
type guest struct {
	h       *reevetest.Host
	token   api.NewToken
	headers http.Header
}

func newGuest(h *reevetest.Host, name string, expires time.Time) guest {
	h.T.Helper()
	g := guest{h: h}
	body := object{"name": name, "user": name, "role": "member"}
	if !expires.IsZero() {
		body["expires_at"] = expires
	}
	h.Want(http.StatusCreated, &g.token, "POST", "/api/tokens", body)
	g.headers = http.Header{"Authorization": {"Bearer " + g.token.Token}, "X-Workspace-Id": {"default"},
		"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	return g
}

// listening is a stream that has begun.
type listening struct {
	name  string
	words int // that were heard; read it when it has ended
	ended chan time.Time
}

// hear listens, by server-sent events or, without a method, by a WebSocket, until it is cut off.
func (g guest) hear(ctx context.Context, method, path, body string) *listening {
	g.h.T.Helper()
	l := &listening{name: method + " " + path, ended: make(chan time.Time, 1)}
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

// cut checks that it ends soon after a moment, in the middle of what there is to hear.
func (l *listening) cut(t *testing.T, after time.Time) {
	t.Helper()
	if at := <-l.ended; at.Before(after) || at.Sub(after) > soon || l.words == 0 {
		t.Errorf("%s ended %v after it should, having heard %d words", l.name, at.Sub(after), l.words)
	}
}

// A token that expires ends what is listened to with it, however much there is to hear.
func TestW12_AnExpiredTokenEndsWhatIsHeard(t *testing.T) {
	t.Parallel()
	h := talker(t, chatter)
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	end := reeve.Now().Add(3 * time.Second)
	g := newGuest(h, "bob", end)
	var c reeve.Conversation
	h.Want(http.StatusCreated, &c, "POST", "/api/conversations", object{"agent": "bot"}, "Authorization",
		"Bearer "+g.token.Token)
	at := "/api/conversations/" + c.ID
	for _, l := range []*listening{g.hear(ctx, "GET", at+"/events", ""), g.hear(ctx, "", "/conversations/"+c.ID, ""),
		g.hear(ctx, "POST", at+"/turns", `{"content":"slow"}`),
		g.hear(ctx, "POST", "/v1/chat/completions",
			`{"model":"bot","stream":true,"messages":[{"role":"user","content":"slow"}]}`)} {
		l.cut(t, end)
	}
}

// A right that is taken at one server ends what is listened to at another, however much there is to hear.
func TestW12_ARightTakenElsewhereEndsWhatIsHeard(t *testing.T) {
	t.Parallel()
	var servers [2]*reevetest.Host
	url := storetest.PostgresURL(t)
	for i := range servers {
		cfg := host.Config{Dir: t.TempDir(), Database: url, SecretKey: strings.Repeat("ab", 32),
			Heartbeat: 50 * time.Millisecond}
		cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, chatter)
		servers[i] = reevetest.Run(t, cfg)
	}
	there, here := servers[0], servers[1]
	here.Agent("bot")
	ctx, cancel := context.WithTimeout(t.Context(), reevetest.Timeout)
	defer cancel()
	for name, take := range map[string]func(g guest, conversation string){
		"revoked": func(g guest, _ string) {
			there.Want(http.StatusNoContent, nil, "DELETE", "/api/tokens/"+g.token.ID, nil)
		},
		"removed": func(g guest, c string) {
			there.Want(http.StatusNoContent, nil, "DELETE", "/api/conversations/"+c+"/participants/"+g.token.User+
				"?kind=user", nil)
		},
	} {
		g := newGuest(here, name, time.Time{})
		c := here.StartConversation("bot")
		here.Want(http.StatusCreated, nil, "POST", "/api/conversations/"+c.ID+"/participants",
			object{"kind": "user", "id": name})
		all := []*listening{g.hear(ctx, "GET", "/api/conversations/"+c.ID+"/events", ""),
			g.hear(ctx, "", "/conversations/"+c.ID, "")}
		mine := here.Connect(c.ID, -1)
		speak(here, c.ID, "slow")
		for range 20 { // so that the others have heard of it too
			mine.ReadUntil(func(f reeve.Frame) bool { return f.Type == reeve.FrameToken })
		}
		taken := time.Now()
		take(g, c.ID)
		for _, l := range all {
			l.cut(t, taken)
		}
	}
}
