package console_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve/reevetest"
)

// A browser gets the console's page at every path that is not the server's, with a strict policy.
func TestC24_PagesHaveAStrictPolicy(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	browser := append([]string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}, anonymous...)
	for _, path := range []string{"/", "/inbox", "/signin", "/runs/run_1", "/tools/file.read", "/chat/c1",
		"/conversations/c1", "/settings/tokens", "/automations/a1", "/automations/a1/runs/r1"} {
		r := h.Want(http.StatusOK, nil, "GET", path, nil, browser...)
		for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Content-Security-Policy": "default-src 'none'; " +
				"script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
				"connect-src 'self'; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; " +
				"form-action 'self'"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	for _, path := range []string{"/assets/missing.js", "/api/nothing", "/docs/nothing", "/v1/nothing", "/mcp"} {
		if r := h.Do("GET", path, nil, append(browser, "Authorization", "Bearer "+h.Token, "X-Workspace-Id",
			"default")...); r.Status != http.StatusNotFound ||
			strings.Contains(r.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s", path, r.Status, r.Header.Get("Content-Type"))
		}
	}
	for path, status := range map[string]int{"/healthz": 200, "/docs": 200, "/openapi.json": 200, "/metrics": 401} {
		if r := h.Do("GET", path, nil, browser...); r.Status != status ||
			strings.Contains(r.Header.Get("Content-Security-Policy"), "script-src") {
			t.Errorf("%s: %d, the console's page", path, r.Status)
		}
	}
	if r := h.Do("POST", "/inbox", nil, browser...); r.Status != http.StatusNotFound {
		t.Errorf("POST /inbox: %d", r.Status)
	}
	if r := h.Do("GET", "/inbox", nil); r.Status != http.StatusNotFound {
		t.Errorf("a program at /inbox: %d", r.Status)
	}
}
