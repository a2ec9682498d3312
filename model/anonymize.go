package model

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"reeve/internal/redact"
)

// accountIDs match ids of accounts. They are not secret, but do not belong in recordings.
var accountIDs = []struct {
	pattern     *regexp.Regexp
	replacement string
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
		text = id.pattern.ReplaceAllString(text, id.replacement)
	}
	return text
}

// recordedHeaders are the headers that recordings include. Other headers may identify the account.
var recordedHeaders = []string{"Content-Type", "Accept", "Retry-After", "Retry-After-Ms", "Anthropic-Version",
	"Anthropic-Beta"}

// anonymizeHeader returns the headers that recordings include.
func anonymizeHeader(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if slices.Contains(recordedHeaders, http.CanonicalHeaderKey(name)) {
			out[http.CanonicalHeaderKey(name)] = values
		}
	}
	return out
}

// anonymizeURL returns the path and the query of a URL without keys.
func anonymizeURL(u *url.URL) string {
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
