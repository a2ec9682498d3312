package model

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secrets are what keys and ids look like that belong to whoever pays.
var secrets = []struct {
	like *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b(sk|rk|pk|gsk|xai|sess)[-_][A-Za-z0-9_-]{12,}`), "KEY"},
	{regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{20,}`), "KEY"},
	{regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]{8,}`), "Bearer KEY"},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`), "TOKEN"},
	{regexp.MustCompile(`\b(org|proj|user)-[A-Za-z0-9]{10,}`), "${1}-ID"},
	{regexp.MustCompile(`(?i)("(?:organization|organization_id|safety_identifier|user|workspace_id|account_id)"\s*:\s*)"[^"]*"`), `$1"ID"`},
}

// scrub takes out of a text what looks like a secret.
func scrub(text string) string {
	for _, s := range secrets {
		text = s.like.ReplaceAllString(text, s.by)
	}
	return text
}

// harmless are the headers that are kept in recordings; all others may name somebody.
var harmless = []string{"Content-Type", "Accept", "Retry-After", "Retry-After-Ms", "Anthropic-Version", "Anthropic-Beta"}

func scrubHeader(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if slices.Contains(harmless, http.CanonicalHeaderKey(name)) {
			out[http.CanonicalHeaderKey(name)] = values
		}
	}
	return out
}

// scrubURL gives what is asked for, without where and without a key.
func scrubURL(u *url.URL) string {
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "key") || strings.Contains(strings.ToLower(name), "token") {
			q.Set(name, "KEY")
		}
	}
	if len(q) == 0 {
		return scrub(u.EscapedPath())
	}
	return scrub(u.EscapedPath()) + "?" + q.Encode()
}
