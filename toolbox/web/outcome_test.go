package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/backoff"
)

func TestG19_StatusDecides(t *testing.T) {
	const ok = reeve.Code("")
	for _, c := range []struct {
		status          int
		read, otherwise reeve.Code
	}{
		{200, ok, ok}, {202, ok, ok}, {204, ok, ok}, {299, ok, ok},
		{300, reeve.ToolFailed, reeve.UnknownOutcome}, {303, reeve.ToolFailed, reeve.UnknownOutcome},
		{302, reeve.ToolFailed, reeve.UnknownOutcome},
		{307, reeve.ToolFailed, reeve.ToolFailed}, {308, reeve.ToolFailed, reeve.ToolFailed},
		{400, reeve.ToolFailed, reeve.ToolFailed}, {401, reeve.Unauthenticated, reeve.Unauthenticated},
		{403, reeve.Forbidden, reeve.Forbidden}, {404, reeve.ToolFailed, reeve.ToolFailed},
		{408, reeve.Unavailable, reeve.Unavailable}, {409, reeve.ToolFailed, reeve.ToolFailed},
		{425, reeve.Unavailable, reeve.Unavailable},
		{429, reeve.Unavailable, reeve.Unavailable}, {499, reeve.ToolFailed, reeve.ToolFailed},
		{500, reeve.Unavailable, reeve.UnknownOutcome}, {501, reeve.ToolFailed, reeve.ToolFailed},
		{502, reeve.Unavailable, reeve.UnknownOutcome},
		{503, reeve.Unavailable, reeve.UnknownOutcome}, {504, reeve.Unavailable, reeve.UnknownOutcome},
		{505, reeve.ToolFailed, reeve.ToolFailed},
		{599, reeve.Unavailable, reeve.UnknownOutcome}, {600, reeve.Unavailable, reeve.UnknownOutcome},
	} {
		base, got := serve(t, reply(c.status, "text/plain", "timeout, please retry"))
		_, err := run(t, reeve.Read, fmt.Sprintf(`{"method":"POST","read":true,"url":"%s"}`, base), `{}`)
		if reeve.CodeOf(err) != c.read {
			t.Errorf("%d of a read: %v", c.status, err)
		}
		for _, method := range []string{"POST", "GET"} {
			_, err = run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"%s","url":"%s"}`, method, base), `{}`)
			if reeve.CodeOf(err) != c.otherwise {
				t.Errorf("%d: %v", c.status, err)
			}
		}
		if got.count() != 3 {
			t.Errorf("%d: %d requests", c.status, got.count())
		}
		if err != nil && c.status < 600 && !strings.Contains(reeve.AsError(err).Message, fmt.Sprint(c.status)) {
			t.Errorf("the error does not name status %d: %v", c.status, err)
		}
	}
}

func TestG09_ConflictOnRetryIsUnknownOutcome(t *testing.T) {
	base, _ := serve(t, reply(409, "text/plain", "in progress"))
	inv := call(`{}`)
	inv.Attempt = 2
	_, err := mustBuild(t, localBuilder(), reeve.Keyed, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base)).
		Handler(t.Context(), inv)
	wantCode(t, err, reeve.UnknownOutcome)
}

func TestG19_RedirectOfAMutatingGetIsNotFollowed(t *testing.T) {
	base, got := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/end", http.StatusFound)
		}
	})
	_, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"GET","url":"%s"}`, base), `{}`)
	wantCode(t, err, reeve.UnknownOutcome)
	if got.count() != 1 {
		t.Fatal("the redirect was followed")
	}
	if _, err := run(t, reeve.Read, fmt.Sprintf(`{"method":"GET","url":"%s"}`, base), `{}`); err != nil ||
		got.count() != 3 {
		t.Fatal(err, got.count())
	}
}

func TestG19_RetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "x": 0, "999999": time.Hour, "99999999999999999999": time.Hour,
		"Mon, 01 Jan 2001 00:00:00 GMT": 0, "Fri, 01 Jan 2100 00:00:00 GMT": time.Hour,
	} {
		base, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(429)
		})
		_, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base), `{}`)
		if e := wantCode(t, err, reeve.Unavailable); e.RetryAfter != want {
			t.Errorf("%q: %s", value, e.RetryAfter)
		}
	}
	soon := reeve.Now().Add(90 * time.Second).Format(http.TimeFormat)
	if d := backoff.RetryAfter(soon, time.Second); d < time.Minute || d > 91*time.Second {
		t.Errorf("%s: %s", soon, d)
	}
}

func TestG19_ErrorTextIsBounded(t *testing.T) {
	for body, want := range map[string]string{
		strings.Repeat("é", 100_000): "é…",
		"\x1b[31mred\x00":            "[31mred",
		"\xff\xfe":                   "the endpoint responded 400 Bad Request",
		"":                           "the endpoint responded 400 Bad Request",
	} {
		base, _ := serve(t, reply(400, "text/plain", body))
		_, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base), `{}`)
		m := wantCode(t, err, reeve.ToolFailed).Message
		if len(m) > maxErrorText+100 || !utf8.ValidString(m) || !strings.HasSuffix(m, want) {
			t.Errorf("%.20q: %.100q (%d)", body, m, len(m))
		}
	}
}

func TestG12_BodyOverLimitIsSuccess(t *testing.T) {
	base, _ := serve(t, reply(200, "application/json", `"`+strings.Repeat("é", 100)+`"`))
	spec := fmt.Sprintf(`{"method":"GET","url":"%s","max_response_bytes":10}`, base)
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Unsafe} {
		v, err := run(t, effect, spec, `{}`)
		r, ok := v.(ResponseInfo)
		if err != nil || !ok || r.Note == "" || r.Bytes != 202 || r.Text != `"éééé` {
			t.Errorf("%+v %v", v, err)
		}
	}
	exact, _ := serve(t, reply(200, "text/plain", "0123456789"))
	if v, err := run(t, reeve.Read, strings.Replace(spec, base, exact, 1), `{}`); v != "0123456789" || err != nil {
		t.Errorf("a body of exactly the limit: %v %v", v, err)
	}
	spec = strings.Replace(spec, `"url"`, `"result":"/a","url"`, 1)
	_, err := run(t, reeve.Read, spec, `{}`)
	wantCode(t, err, reeve.TooLarge)
	v, err := run(t, reeve.Unsafe, spec, `{}`)
	if r, ok := v.(ResponseInfo); err != nil || !ok || !strings.Contains(r.Note, "over the limit") ||
		r.Text != `"éééé` {
		t.Errorf("of an effect: %+v %v", v, err)
	}
}

func TestG12_NoMoreThanTheLimitIsRead(t *testing.T) {
	gone := make(chan error, 1)
	base := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
		chunk := []byte(strings.Repeat("x", 1<<16))
		for { // until the client closes the connection
			if _, err := c.Write(chunk); err != nil {
				_ = c.Close()
				gone <- err
				return
			}
		}
	})
	v, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s","max_response_bytes":1000}`, base), `{}`)
	if r, ok := v.(ResponseInfo); err != nil || !ok || len(r.Text) != 1000 {
		t.Fatal(err)
	}
	<-gone
}

// TestG12_BodyStallingBeyondLimitIsSuccess checks that a call does not wait long for bytes beyond the limit, which only
// redaction needs.
func TestG12_BodyStallingBeyondLimitIsSuccess(t *testing.T) {
	base := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"+strings.Repeat("x", 1001))
		_, _ = io.Copy(io.Discard, c) // until the client closes the connection
	})
	v, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s","max_response_bytes":1000}`, base), `{}`)
	if r, ok := v.(ResponseInfo); err != nil || !ok || len(r.Text) != 1000 {
		t.Fatal(v, err)
	}
}

// TestI10_MissingResultFailsReadsOnly checks that a status 2xx proves the effect with any body. Only a read fails if
// its result is missing.
func TestI10_MissingResultFailsReadsOnly(t *testing.T) {
	for body, typ := range map[string]string{`{"ok":false}`: "application/json", `[1]`: "application/json",
		`<p>`: "text/html", ``: "text/plain", "\xff": "x/y"} {
		base, _ := serve(t, reply(201, typ, body))
		spec := fmt.Sprintf(`{"method":"GET","url":"%s","result":"/data/0~11"}`, base)
		_, err := run(t, reeve.Read, spec, `{}`)
		if e := wantCode(t, err, reeve.ToolFailed); typ != "x/y" && !strings.Contains(e.Message, body) {
			t.Errorf("%q is not shown: %s", body, e.Message)
		}
		for _, effect := range []reeve.Effect{reeve.Unsafe, reeve.Keyed} {
			v, err := run(t, effect, spec, `{}`)
			r, ok := v.(ResponseInfo)
			if err != nil || !ok || r.Status != 201 || !strings.Contains(r.Note, "the request succeeded, but") {
				t.Fatalf("%s %q: %+v %v", effect, body, v, err)
			}
			if shown := string(r.Body) + r.Text; typ != "x/y" && shown != body {
				t.Errorf("%q is not shown: %+v", body, r)
			}
			if typ == "application/json" && !strings.HasSuffix(r.Note, "result pointer /data/0~11") {
				t.Errorf("the note does not name the pointer: %s", r.Note)
			}
		}
	}
}

func TestG12_IncompleteBody(t *testing.T) {
	base := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+
			"100\r\n\r\n{\"a\":1")
		_ = c.Close()
	})
	v, err := run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s"}`, base), `{}`)
	if r, ok := v.(ResponseInfo); err != nil || !ok || r.Note == "" || r.Text != `{"a":1` {
		t.Errorf("%+v %v", v, err)
	}
	v, err = run(t, reeve.Unsafe, fmt.Sprintf(`{"method":"POST","url":"%s","result":"/a"}`, base), `{}`)
	if r, ok := v.(ResponseInfo); err != nil || !ok || !strings.Contains(r.Note, "ended before") || r.Text != `{"a":1` {
		t.Errorf("with a result to find: %+v %v", v, err)
	}
	_, err = run(t, reeve.Read, fmt.Sprintf(`{"method":"GET","url":"%s"}`, base), `{}`)
	wantCode(t, err, reeve.Unavailable)
}
