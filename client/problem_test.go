package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// newClient returns a client of a server with the given handler. The handlers simulate faulty servers and proxies.
// Other tests use a real server.
func newClient(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{URL: s.URL + "/", Token: "secret", Workspace: "acme",
		Key: func() string { return "key-1" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(kind string, status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Request-Id", "req_1") // as in all responses of a Reeve server
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestProblemSurvivesTheWire(t *testing.T) {
	c := newClient(t, answer("application/problem+json; charset=utf-8", 409, `{"type":"about:blank","title":"Conflict","status":409,"detail":"used before",
		"code":"CONFLICT","hint":"use another","errors":[{"path":"/a","message":"bad","expected":"good"}],"request_id":"req_1","call_id":"msg_1"}`, "Retry-After", "7"))
	_, err := c.Calls().Call(t.Context(), "clerk", api.CallRequest{Tool: "x"})
	if !errors.Is(err, &reeve.Error{Code: reeve.Conflict}) {
		t.Fatalf("got %v, want a conflict", err)
	}
	e := reeve.AsError(err)
	if e.Message != "used before" || e.Hint != "use another" || e.RetryAfter != 7*time.Second || len(e.Fields) != 1 ||
		e.Fields[0].Expected != "good" {
		t.Errorf("got %+v", e)
	}
	p, ok := client.ProblemOf(err)
	if !ok || p.RequestID != "req_1" || p.CallID != "msg_1" || p.Status != 409 {
		t.Errorf("got %+v, %v", p, ok)
	}
}

func TestOtherServers(t *testing.T) {
	for name, tt := range map[string]struct {
		h    http.HandlerFunc
		want reeve.Code
	}{
		"a web page":           {answer("text/html", 200, "<html>"), reeve.Internal},
		"a redirect":           {answer("text/html", 302, "", "Location", "/login"), reeve.Internal},
		"a gateway":            {answer("text/html", 502, "bad gateway"), reeve.Unavailable},
		"a gateway timeout":    {answer("text/plain", 504, "late"), reeve.Timeout},
		"a limiter":            {answer("text/plain", 429, "slow down"), reeve.RateLimited},
		"not found":            {answer("text/plain", 404, "404"), reeve.NotFound},
		"broken problem":       {answer("application/problem+json", 500, "{"), reeve.Internal},
		"problem without code": {answer("application/problem+json", 403, `{"title":"Forbidden"}`), reeve.Forbidden},
		"no request id":        {answer("application/json", 200, `{}`, "X-Request-Id", ""), reeve.Internal},
		"a foreign request id": {answer("application/json", 200, `{}`, "X-Request-Id", "request-1"), reeve.Internal},
		"JSON cut off":         {answer("application/json", 200, `{"version":`), reeve.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newClient(t, tt.h).Server().Status(t.Context())
			if got := reeve.CodeOf(err); got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
			var e *reeve.Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Errorf("got %#v, want an error with a message", err)
			}
		})
	}
}

// TestOtherServersDoNothing checks that a success without a Reeve request id is an error.
func TestOtherServersDoNothing(t *testing.T) {
	c := newClient(t, answer("application/json", 200, `{}`, "X-Request-Id", ""))
	var copied strings.Builder
	_, backup := c.Server().Backup(t.Context(), &copied)
	for name, err := range map[string]error{"a backup": backup, "a removal": c.Agents().Delete(t.Context(), "clerk"),
		"a look": c.Server().CheckReady(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "is not a Reeve server") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if copied.Len() > 0 {
		t.Errorf("%q was copied", copied.String())
	}
}

func TestNoServer(t *testing.T) {
	const url = "http://127.0.0.1:1" // a port that no test server gets
	c, err := client.New(client.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Calls().Call(t.Context(), "clerk", api.CallRequest{Tool: "x"})
	e := reeve.AsError(err)
	if e.Code != reeve.Unavailable || e.Message != "no Reeve server answers at "+url ||
		e.Hint != "start one with: reeve serve" {
		t.Errorf("got %+v", e)
	}
}

// TestLostAnswers checks that a change whose response is lost has an unknown outcome, because it may have been made.
func TestLostAnswers(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	c := newClient(t, hangUp)
	_, err := c.Calls().Call(t.Context(), "clerk", api.CallRequest{Tool: "x"})
	if e := reeve.AsError(err); e.Code != reeve.UnknownOutcome || !strings.Contains(e.Hint, "key-1") {
		t.Errorf("call: got %+v", e)
	}
	if got := reeve.CodeOf(c.Agents().Delete(t.Context(), "clerk")); got != reeve.UnknownOutcome {
		t.Errorf("delete: got %s", got)
	}
	if _, err := c.Server().Status(t.Context()); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("status: got %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	arrived, done := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(done) })
	c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	if _, err := c.Calls().Call(ctx, "clerk", api.CallRequest{Tool: "x"}); reeve.CodeOf(err) != reeve.UnknownOutcome {
		t.Errorf("during a call: got %v", err)
	}
	if _, err := c.Calls().Call(ctx, "clerk", api.CallRequest{Tool: "x"}); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("before a call: got %v", err)
	}
}

func TestRequest(t *testing.T) {
	var got *http.Request
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		answer("application/json", 200, "{}")(w, r)
	})
	if _, err := c.Budgets().Set(t.Context(), "agent:a/b?c", api.BudgetRequest{}); err != nil {
		t.Fatal(err)
	}
	if got.URL.EscapedPath() != "/api/budgets/agent:a%2Fb%3Fc" {
		t.Errorf("path %s", got.URL.EscapedPath())
	}
	if got.Header.Get("Authorization") != "Bearer secret" || got.Header.Get("X-Workspace-Id") != "acme" ||
		got.Header.Get("Idempotency-Key") != "" {
		t.Errorf("headers %v", got.Header)
	}
	if _, err := c.Agents().Create(t.Context(), api.AgentRequest{}); err != nil {
		t.Fatal(err)
	}
	if got.Header.Get("Idempotency-Key") != "key-1" {
		t.Errorf("a POST without a key: %v", got.Header)
	}
	if _, err := c.Operations().
		List(t.Context(), client.OperationFilter{State: reeve.Unknown, Page: client.Page{Limit: 5}}); err != nil {
		t.Fatal(err)
	}
	if got.URL.RawQuery != "limit=5&state=unknown" {
		t.Errorf("query %s", got.URL.RawQuery)
	}
}

func TestBadAddress(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:7410", "ftp://x", "http://", "http://a b"} {
		if _, err := client.New(client.Config{URL: url}); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%q: got %v", url, err)
		}
	}
	if _, err := client.New(client.Config{URL: "http://localhost", Token: "a\nb"}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a token with a line break: got %v", err)
	}
}
