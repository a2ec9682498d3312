package model

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"reeve/internal/redact"
)

// accountIDs are ids that tell who pays. They are no secrets, but do not belong in recordings.
var accountIDs = []struct {
	like *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b(org|proj|user)-[A-Za-z0-9]{10,}`), "${1}-ID"},
	{regexp.MustCompile(`(?i)("(?:organization|organization_id|safety_identifier|user|workspace_id|account_id)"\s*:\s*)` +
		`"[^"]*"`), `$1"ID"`},
}

// secrets removes keys of known formats and values after words such as "password=".
var secrets = redact.New(nil).MaskNamed()

// anonymize removes secrets and the ids of accounts from a text.
func anonymize(text string) string {
	text = secrets.Text(text)
	for _, id := range accountIDs {
		text = id.like.ReplaceAllString(text, id.by)
	}
	return text
}

// harmless are the headers that recordings keep; all others may tell who asked.
var harmless = []string{"Content-Type", "Accept", "Retry-After", "Retry-After-Ms", "Anthropic-Version",
	"Anthropic-Beta"}

// anonymousHeader returns the headers that recordings keep.
func anonymousHeader(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if slices.Contains(harmless, http.CanonicalHeaderKey(name)) {
			out[http.CanonicalHeaderKey(name)] = values
		}
	}
	return out
}

// anonymousURL returns the path and query of a URL without keys.
func anonymousURL(u *url.URL) string {
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "key") || strings.Contains(strings.ToLower(name), "token") {
			q.Set(name, "KEY")
		}
	}
	if len(q) == 0 {
		return anonymize(u.EscapedPath())
	}
	return anonymize(u.EscapedPath()) + "?" + q.Encode()
}
