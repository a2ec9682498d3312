package console_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// anonymous are the headers of a request without a token.
var anonymous = []string{"Authorization", "", "X-Workspace-Id", ""}

// signIn signs in with a body and returns the response and the session's cookie as name=value.
func signIn(h *reevetest.Host, body api.SessionRequest, headers ...string) (reevetest.Reply, string) {
	h.T.Helper()
	r := h.Do("POST", "/api/session", body, append(anonymous, headers...)...)
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	return r, cookie
}

// newCode makes a sign-in link and returns its code.
func newCode(h *reevetest.Host, headers ...string) string {
	h.T.Helper()
	var l api.ConsoleLink
	h.Want(http.StatusCreated, &l, "POST", "/api/console/links", nil, headers...)
	if l.Path != "/signin#"+l.Code || l.Code == "" {
		h.T.Fatalf("%+v", l)
	}
	return l.Code
}

// inBrowser returns the headers that the console's page sends with a cookie.
func inBrowser(h *reevetest.Host, cookie string, more ...string) []string {
	return append([]string{"Authorization", "", "Cookie", cookie, "Origin", h.URL, "Sec-Fetch-Site", "same-origin"},
		more...)
}

func TestC01_ALinkSignsInOnce(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		code := newCode(h)
		r, cookie := signIn(h, api.SessionRequest{Code: code})
		if r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		set := r.Header.Get("Set-Cookie")
		for _, want := range []string{"reeve_session=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604"} {
			if !strings.Contains(set, want) {
				t.Errorf("the cookie %q lacks %s", set, want)
			}
		}
		if strings.Contains(set, "Secure") {
			t.Errorf("a cookie over plain HTTP is Secure: %s", set)
		}
		var s api.Session
		h.Want(http.StatusOK, &s, "GET", "/api/session", nil, inBrowser(h, cookie, "X-Workspace-Id", "")...)
		if s.User != "owner" || s.Role != reeve.Owner || !s.Server || len(s.Workspaces) != 1 || s.Version == "" ||
			s.Workspaces[0].ID != "default" || s.ExpiresAt == nil {
			t.Errorf("%+v", s)
		}
		if r, again := signIn(h, api.SessionRequest{Code: code}); r.Status != http.StatusUnauthorized ||
			again != "" || !strings.Contains(string(r.Body), "reeve console link") {
			t.Errorf("a used link: %d %s", r.Status, r.Body)
		}
		h.Want(http.StatusOK, nil, "GET", "/api/inbox", nil, inBrowser(h, cookie)...)
		h.Want(http.StatusCreated, nil, "POST", "/api/agents", kit.Call{"name": "made"}, inBrowser(h, cookie)...)

		// Sign-out ends the session on the server.
		out := h.Want(http.StatusNoContent, nil, "DELETE", "/api/session", nil, inBrowser(h, cookie)...)
		if set := out.Header.Get("Set-Cookie"); !strings.Contains(set, "Max-Age=0") {
			t.Errorf("the cookie is kept: %s", set)
		}
		h.Want(http.StatusUnauthorized, nil, "GET", "/api/inbox", nil, inBrowser(h, cookie)...)
		h.Want(http.StatusUnauthorized, nil, "GET", "/api/session", nil, inBrowser(h, cookie)...)
	})
}

// Two browsers open the same link at the same time. One of them signs in.
func TestC01_OneOfTwoUsesOfALinkWins(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		for range 5 {
			code, status := newCode(h), make([]int, 4)
			var wait sync.WaitGroup
			for i := range status {
				wait.Go(func() {
					r, _ := signIn(h, api.SessionRequest{Code: code})
					status[i] = r.Status
				})
			}
			wait.Wait()
			won := 0
			for _, s := range status {
				if s == http.StatusOK {
					won++
				} else if s != http.StatusUnauthorized {
					t.Errorf("status %d", s)
				}
			}
			if won != 1 {
				t.Errorf("%d of 4 signed in: %v", won, status)
			}
		}
	})
}

// A session has the rights of its token and ends with it. It cannot be used as a token, nor a token or link as a
// session.
func TestC01_ASessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		var viewer api.NewToken
		h.Want(http.StatusCreated, &viewer, "POST", "/api/tokens", api.TokenRequest{Name: "v", Role: reeve.Viewer,
			User: "vera", ExpiresAt: reeve.Now().Add(time.Hour).Format(time.RFC3339)})
		r, cookie := signIn(h, api.SessionRequest{Token: viewer.Token})
		if r.Status != http.StatusOK {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		var s api.Session
		if r.Decode(t, &s); s.User != "vera" || s.Role != reeve.Viewer || s.Server || s.ExpiresAt == nil ||
			s.ExpiresAt.After(*viewer.ExpiresAt) {
			t.Errorf("%+v", s)
		}
		_, linked := signIn(h, api.SessionRequest{Code: newCode(h, inBrowser(h, cookie)...)})
		unused := newCode(h, inBrowser(h, cookie)...)
		h.Want(http.StatusForbidden, nil, "POST", "/api/agents", kit.Call{"name": "x"}, inBrowser(h, cookie)...)
		h.Want(http.StatusForbidden, nil, "GET", "/api/inbox", nil, inBrowser(h, cookie, "X-Workspace-Id", "other")...)

		_, text, _ := strings.Cut(cookie, "=")
		for _, bad := range [][]string{
			{"Authorization", "Bearer " + text}, {"Authorization", "Bearer reeve_" + text},
			{"Authorization", "", "Cookie", "reeve_session=" + viewer.Token},
			{"Authorization", "", "Cookie", "reeve_session=" + strings.TrimPrefix(viewer.Token, "reeve_")},
			{"Authorization", "", "Cookie", "reeve_session=" + unused}} {
			if r := h.Do("GET", "/api/inbox", nil, bad...); r.Status != http.StatusUnauthorized {
				t.Errorf("%v: %d", bad, r.Status)
			}
		}
		if r, _ := signIn(h, api.SessionRequest{Code: text}); r.Status != http.StatusUnauthorized {
			t.Errorf("a session's secret signs in as a link: %d", r.Status)
		}
		var list api.TokenList
		h.Want(http.StatusOK, &list, "GET", "/api/tokens", nil)
		sessions := 0
		for _, v := range list.Tokens {
			if v.Kind == reeve.ConsoleSession {
				sessions++
			} else if v.Kind != reeve.BearerToken {
				t.Errorf("%+v is listed", v)
			}
		}
		if sessions != 2 {
			t.Errorf("%d sessions are listed", sessions)
		}
		h.Want(http.StatusNoContent, nil, "DELETE", "/api/tokens/"+viewer.ID, nil)
		for _, c := range []string{cookie, linked} {
			h.Want(http.StatusUnauthorized, nil, "GET", "/api/inbox", nil, inBrowser(h, c)...)
		}
		if r, _ := signIn(h, api.SessionRequest{Code: unused}); r.Status != http.StatusUnauthorized {
			t.Errorf("a link of a revoked token signs in: %d", r.Status)
		}
	})
}

func TestC01_SignInNeedsOneSecret(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	for _, body := range []api.SessionRequest{{}, {Code: "a", Token: "b"}} {
		if r, _ := signIn(h, body); r.Status != http.StatusBadRequest {
			t.Errorf("%+v: %d", body, r.Status)
		}
	}
	for _, body := range []api.SessionRequest{{Code: "nothing"}, {Token: "nothing"}, {Token: h.Token + "x"},
		{Code: strings.TrimPrefix(h.Token, "reeve_")}} {
		if r, cookie := signIn(h, body); r.Status != http.StatusUnauthorized || cookie != "" {
			t.Errorf("%+v: %d", body, r.Status)
		}
	}
	r, _ := signIn(h, api.SessionRequest{Token: h.Token}, "X-Forwarded-Proto", "https")
	if set := r.Header.Get("Set-Cookie"); !strings.Contains(set, "Secure") {
		t.Errorf("behind TLS: %s", set)
	}
}

// A page of another origin cannot use the cookie, even if the browser sends it along.
func TestC24_ForeignPagesCannotUseTheCookie(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Origins = []string{"https://app.example"} // may call the API with a token, not with the cookie
	h := reevetest.StartWith(t, cfg)
	_, cookie := signIn(h, api.SessionRequest{Token: h.Token})
	base := []string{"Authorization", "", "Cookie", cookie}
	allowed := h.Do("POST", "/api/agents", kit.Call{"name": "one"}, append(base, "Sec-Fetch-Site", "same-origin")...)
	if allowed.Status != http.StatusCreated {
		t.Fatalf("the console itself: %d %s", allowed.Status, allowed.Body)
	}
	for name, headers := range map[string][]string{
		"no proof":             {},
		"another port":         {"Origin", "http://127.0.0.1:1"},
		"another site":         {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"an allowed origin":    {"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"},
		"an older browser":     {"Origin", "https://app.example"},
		"same site":            {"Sec-Fetch-Site", "same-site"},
		"a form of a file":     {"Origin", "null"},
		"typed by a person":    {"Sec-Fetch-Site", "none"},
		"contradicting itself": {"Origin", "https://app.example", "Sec-Fetch-Site", "same-origin"},
		"without workspace":    {"Sec-Fetch-Site", "same-origin", "X-Workspace-Id", ""},
	} {
		r := h.Do("POST", "/api/agents", kit.Call{"name": "two"}, append(base, headers...)...)
		if r.Status != http.StatusForbidden {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		if name == "without workspace" { // signing out needs no workspace
			continue
		}
		if r := h.Do("DELETE", "/api/session", nil, append(base, headers...)...); r.Status != http.StatusForbidden {
			t.Errorf("%s signs out: %d", name, r.Status)
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-site"}, {"Sec-Fetch-Site", "cross-site"},
		{"Origin", "https://app.example"}} {
		if r := h.Do("GET", "/api/inbox", nil, append(base, headers...)...); r.Status != http.StatusForbidden {
			t.Errorf("%v may read: %d", headers, r.Status)
		}
		if r, _ := signIn(h, api.SessionRequest{Token: h.Token}, headers...); r.Status != http.StatusForbidden {
			t.Errorf("%v may sign in: %d", headers, r.Status)
		}
	}
	// A socket with the cookie needs the origin of the console.
	upgrade := append(base, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13",
		"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	for _, headers := range [][]string{{}, {"Origin", "https://app.example"}} {
		r := h.Do("GET", "/conversations/c?workspace=default", nil, append(upgrade, headers...)...)
		if r.Status != http.StatusForbidden {
			t.Errorf("a socket with %v: %d", headers, r.Status)
		}
	}
	if r := h.Do("GET", "/conversations/c?workspace=default", nil, append(upgrade, "Origin", h.URL)...); r.Status !=
		http.StatusNotFound {
		t.Errorf("a socket of the console: %d %s", r.Status, r.Body)
	}
	h.Want(http.StatusUnauthorized, nil, "GET", "/v1/models", nil, base...) // the cookie is for the console only
}
