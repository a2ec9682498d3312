package httpapi_test

import (
	"strings"
	"testing"

	"reeve/reevetest"
)

// Only pages of configured origins may call the API from a browser.
func TestCORS_ForTheOriginsThatAreConfigured(t *testing.T) {
	t.Parallel()
	const good = "https://app.example.com"
	w := newWorld(t)
	w.cfg.Origins = []string{good}
	h := reevetest.StartWith(t, w.cfg) // whose answers are not all JSON
	h.Agent("coach")
	c := h.StartConversation("coach")
	for path, method := range map[string]string{"/api/agents": "POST", "/api/conversations/" + c.ID +
		"/events?follow=false": "GET", "/v1/models": "GET", "/v1/chat/completions": "POST"} {
		asks := []string{"Authorization", "", "Origin", good, "Access-Control-Request-Method", method,
			"Access-Control-Request-Headers", "authorization,content-type,x-stainless-lang"}
		r := h.Do("OPTIONS", path, nil, asks...)
		if r.Status != 204 || r.Header.Get("Access-Control-Allow-Origin") != good || r.Header.Get("Vary") != "Origin" ||
			r.Header.Get("Access-Control-Max-Age") == "" || r.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", path, r.Status, r.Header)
		}
		if !strings.Contains(r.Header.Get("Access-Control-Allow-Methods"), method) {
			t.Errorf("%s: %v", path, r.Header)
		}
		// the last is what OpenAI's library sends along
		if got := r.Header.Get("Access-Control-Allow-Headers"); got != "authorization,content-type,x-stainless-lang" {
			t.Errorf("%s: only %q may be sent", path, got)
		}
		asks[3] = "https://evil.example.com"
		if r := h.Do("OPTIONS", path, nil, asks...); r.Status != 403 ||
			r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s of another origin: %d %v", path, r.Status, r.Header)
		}
		if method != "GET" {
			continue
		}
		for _, token := range []string{h.Token, "wrong"} { // a page is told what was wrong too
			r := h.Do("GET", path, nil, "Origin", good, "Authorization", "Bearer "+token)
			if r.Header.Get("Access-Control-Allow-Origin") != good || r.Header.Get("Vary") != "Origin" ||
				!strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
				t.Errorf("%s: %d %v", path, r.Status, r.Header)
			}
		}
		if r := h.Do("GET", path, nil); r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s without an origin: %v", path, r.Header)
		}
	}
	if r := h.Do("OPTIONS", "/api/agents", nil, "Origin", good); r.Status == 204 { // which asks nothing
		t.Errorf("%d %v", r.Status, r.Header)
	}
}
