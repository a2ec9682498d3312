package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"reeve"
)

func TestI10_BuildsRequestsFromSpec(t *testing.T) {
	base, got := serve(t, reply(200, "application/json", `{}`))
	for _, c := range []struct {
		effect              reeve.Effect
		spec, args          string
		line, typ, body, op string
	}{
		{reeve.Read, `{"method":"GET","url":"%s/u/{id}?n={n}","query":{"tag":"tags","a b":"id"}}`,
			`{"id":"x/y","tags":["p","q&r"]}`,
			"GET /u/x%2Fy?a%20b=x%2Fy&tag=p&tag=q%26r", "", "", ""},
		{reeve.Keyed, `{"method":"POST","url":"%s/u/{id}","query":{"n":"n"}}`,
			`{"id":"x","n":1,"tags":["<&>"],"o":{"k":null}}`,
			"POST /u/x?n=1", "application/json", `{"o":{"k":null},"tags":["<&>"]}`, "op_1"},
		{reeve.Keyed, `{"method":"PATCH","url":"%s/",
			"body":{"/user/name":"id","/user/a~1b":"n","ref":"operation_id","gone":"o"}}`,
			`{"id":"x","n":12345678901234567890,"tags":[]}`,
			"PATCH /", "application/json", `{"ref":"op_1","user":{"a/b":12345678901234567890,"name":"x"}}`, "op_1"},
		{reeve.Unsafe, `{"method":"POST","url":"%s/","body_type":"form"}`, `{"id":"a b&c=d","n":1,"tags":["x","y"]}`,
			"POST /", "application/x-www-form-urlencoded", "id=a%20b%26c%3Dd&n=1&tags=x&tags=y", "op_1"},
		{reeve.Unsafe, `{"method":"POST","url":"%s/","body_type":"none"}`, `{"id":"x"}`, "POST /", "", "", "op_1"},
		{reeve.Unsafe, `{"method":"DELETE","url":"%s/{id}"}`, `{"id":"x","n":1}`, "DELETE /x", "", "", "op_1"},
		{reeve.Unsafe, `{"method":"DELETE","url":"%s/","body":{"id":"id"}}`, `{"id":"x","operation_id":"forged"}`,
			"DELETE /", "application/json", `{"id":"x"}`, "op_1"},
		{reeve.Unsafe, `{"method":"GET","url":"%s/{operation_id}"}`, `{}`, "GET /op_1", "", "", "op_1"},
		{reeve.Read, `{"method":"POST","read":true,"url":"%s/",
			"headers":{"content-type":"application/x+json","Accept":"x/y"}}`,
			`{}`, "POST /", "application/x+json", `{}`, "op_1"},
	} {
		if _, err := run(t, c.effect, fmt.Sprintf(c.spec, base), c.args); err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		n := got.count() - 1
		r := got.list[n]
		if line := r.Method + " " + r.RequestURI; line != c.line || r.Header.Get("Content-Type") != c.typ ||
			got.body[n] != c.body ||
			r.Header.Get("Idempotency-Key") != c.op || r.UserAgent() != "reeve" {
			t.Errorf("%s: got %s %v %s", c.spec, line, r.Header, got.body[n])
		}
	}
	if got.list[got.count()-1].Header.Get("Accept") != "x/y" {
		t.Error("a header of the spec was not sent")
	}
}

func TestI10_ReturnsResponses(t *testing.T) {
	for _, c := range []struct {
		status         int
		typ, body      string
		result, expect string
	}{
		{200, "application/json", "{ \"a\" : 12345678901234567890, \"b\":[1.0] }", "",
			`{"a":12345678901234567890,"b":[1.0]}`},
		{200, "application/vnd.x+json; charset=utf-8", "\ufeff[1]", "", `[1]`},
		{201, "application/json", `"text"`, "", "text"},
		{200, "application/json", `not json`, "", "not json"},
		{200, "text/html", `<p>é</p>`, "", "<p>é</p>"},
		{200, "text/plain", `{"a":1}`, "/a", "1"},
		{200, "application/json", `{"data":[{"id":"x/y","a/b":{"c":null}}]}`, "/data/0/id", "x/y"},
		{200, "application/json", `{"data":[{"a/b":{"c":null}}]}`, "/data/0/a~1b/c", "null"},
		{204, "", "", "", `{"status":204}`},
		{200, "image/png", "\x89PNG\xff", "", `{"status":200,"content_type":"image/png","bytes":5,"sha256":"` +
			reeve.Hash([]byte("\x89PNG\xff")) + `"}`},
		{200, "text/plain", "a\x00b", "", `{"status":200,"content_type":"text/plain","bytes":3,"sha256":"` +
			reeve.Hash([]byte("a\x00b")) + `"}`},
	} {
		base, _ := serve(t, reply(c.status, c.typ, c.body))
		for _, effect := range []reeve.Effect{reeve.Read, reeve.Unsafe} {
			v, err := run(t, effect, fmt.Sprintf(`{"method":"GET","url":"%s","result":%q}`, base, c.result), `{}`)
			s, ok := v.(string)
			if !ok {
				b, _ := json.Marshal(v)
				s = string(b)
			}
			if err != nil || s != c.expect {
				t.Errorf("%q: got %s, %v", c.body, s, err)
			}
		}
	}
}

func TestG12_ConnectFailureIsUnavailable(t *testing.T) {
	const closed = "http://127.0.0.1:1" // no server listens on this port
	untrusted := httptest.NewUnstartedServer(reply(200, "text/plain", "x"))
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	plainOnly, _ := serve(t, reply(200, "text/plain", "x"))
	b := localBuilder()
	b.Guard.resolver = newResolver(t, func(string) []string { return nil })
	for name, u := range map[string]string{
		"refused": closed, "no such name": "http://gone.test", "untrusted": untrusted.URL, "not TLS": "https" +
			plainOnly[4:],
		"broken handshake": "https" + listen(t, func(c net.Conn) { _ = c.Close() })[4:],
	} {
		for _, effect := range []reeve.Effect{reeve.Read, reeve.Unsafe} {
			tool := mustBuild(t, b, effect, fmt.Sprintf(`{"method":"GET","url":"%s"}`, u))
			_, err := tool.Handler(t.Context(), call(`{}`))
			if reeve.CodeOf(err) != reeve.Unavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestG12_RefusedByPolicyIsDenied(t *testing.T) {
	base, got := serve(t, reply(200, "text/plain", "x"))
	tool := mustBuild(t, &Builder{}, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base))
	_, err := tool.Handler(t.Context(), call(`{}`))
	wantCode(t, err, reeve.Denied)
	if got.count() != 0 {
		t.Fatal("the request was sent")
	}
}

// reset ends a connection with RST instead of FIN.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func readRequest(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

func TestG12_LostResponseIsUnknownOutcome(t *testing.T) {
	for name, f := range map[string]func(net.Conn){
		"reset":       func(c net.Conn) { readRequest(c); reset(c) },
		"closed":      func(c net.Conn) { readRequest(c); _ = c.Close() },
		"half a head": func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "HTTP/1.1 200 O"); _ = c.Close() },
		"not HTTP": func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "hello "+theSecret+"\r\n\r\n")
			_ = c.Close()
		},
		"reset half read": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); reset(c) },
	} {
		var n atomic.Int32
		base := listen(t, func(c net.Conn) { n.Add(1); f(c) })
		_, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s/x?key=${secret:KEY}"}`, base),
			`{"id":"x"}`)
		e := wantCode(t, err, reeve.UnknownOutcome)
		noSecret(t, e)
		if n.Load() != 1 {
			t.Errorf("%s: sent %d times", name, n.Load())
		}
		_, err = run(t, reeve.Read, fmt.Sprintf(`{"method":"GET","url":"%s/x?key=${secret:KEY}"}`, base), `{}`)
		noSecret(t, wantCode(t, err, reeve.Unavailable))
	}
}

func TestG12_TimeoutAfterSendingIsTimeout(t *testing.T) {
	base := listen(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the client closes the connection
		_ = c.Close()
	})
	tool := mustBuild(t, localBuilder(), reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base))
	_, err := tool.Handler(shortContext(t), call(`{}`))
	wantCode(t, err, reeve.Timeout)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the cause is not kept")
	}
}

func TestG12_CanceledBeforeAndAfterSending(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	base := listen(t, func(c net.Conn) {
		readRequest(c)
		cancel()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	})
	tool := mustBuild(t, localBuilder(), reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base))
	_, err := tool.Handler(ctx, call(`{}`))
	wantCode(t, err, reeve.UnknownOutcome)
	_, err = tool.Handler(ctx, call(`{}`)) // canceled before sending
	wantCode(t, err, reeve.Canceled)
}

// TestG11_TransportNeverResends checks that the transport does not send a request again after a reused connection
// breaks. By default net/http does that for requests with an Idempotency-Key.
func TestG11_TransportNeverResends(t *testing.T) {
	var posts atomic.Int32
	base := listen(t, func(c net.Conn) {
		defer c.Close()
		in := bufio.NewReader(c)
		for first := true; ; first = false { // keeps the connection open once, then breaks it on the next request
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			posts.Add(1)
			if !first {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	tool := mustBuild(t, localBuilder(), reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base))
	for i := range 3 {
		if _, err := tool.Handler(t.Context(), call(`{}`)); err != nil {
			t.Fatal(err)
		}
		if posts.Load() != int32(i+1) {
			t.Fatalf("%d calls, %d requests", i+1, posts.Load())
		}
	}
}

func TestG09_RetryUsesSameKey(t *testing.T) {
	var mu sync.Mutex
	effects := map[string]int{}
	base, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := r.Header.Get("Idempotency-Key")
		if effects[key] == 0 {
			effects[key]++
			panic(http.ErrAbortHandler) // the effect happened, but the response is lost
		}
		_, _ = io.WriteString(w, "done before")
	})
	tool := mustBuild(t, localBuilder(), reeve.Keyed, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base))
	_, err := tool.Handler(t.Context(), call(`{"id":"x"}`))
	wantCode(t, err, reeve.UnknownOutcome)
	inv := call(`{"id":"x"}`)
	inv.Attempt = 2
	v, err := tool.Handler(t.Context(), inv)
	mu.Lock()
	defer mu.Unlock()
	if err != nil || v != "done before" || len(effects) != 1 || effects["op_1"] != 1 {
		t.Fatal(v, err, effects)
	}
	inv = call(`{}`)
	inv.Operation = ""
	_, err = tool.Handler(t.Context(), inv)
	wantCode(t, err, reeve.Internal) // a keyed call requires an operation id
}
