package web

import (
	"context"
	"errors"
	"strings"

	"reeve"
)

// parseHeader reads a header value with ${secret:NAME} in it. Braces mean nothing else in a header.
func parseHeader(s string) ([]part, error) {
	var parts []part
	for s != "" {
		i := strings.Index(s, secretOpening)
		if i < 0 {
			i = len(s)
		}
		if lit := s[:i]; lit != "" {
			if !isHeaderValue(lit) {
				return nil, bad("a header value is printable ASCII")
			}
			parts = append(parts, part{literal: lit})
		}
		if s = s[i:]; s == "" {
			break
		}
		end := strings.IndexByte(s, '}')
		if end < 0 || !secretName.MatchString(s[len(secretOpening):end]) {
			return nil, bad("a secret is written ${secret:NAME}")
		}
		parts = append(parts, part{secret: s[len(secretOpening):end]})
		s = s[end+1:]
	}
	return parts, nil
}

func secretsOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		if p.secret != "" {
			names = append(names, p.secret)
		}
	}
	return names
}

func isHeaderValue(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// resolve fetches the secrets a request needs. What it says on failure names the secret and never its value; the
// provider's own words are dropped, for they might.
func (r *request) resolve(ctx context.Context, workspace string) (map[string]string, error) {
	values := make(map[string]string, len(r.secrets))
	for _, name := range r.secrets {
		v, err := r.provider(ctx, workspace, name)
		switch v = strings.TrimRight(v, "\r\n"); { // files that hold a secret tend to end in a newline
		case errors.Is(err, context.Canceled):
			return nil, reeve.Errorf(reeve.Canceled, "the call was canceled before anything was sent")
		case reeve.CodeOf(err) == reeve.NotFound || err == nil && v == "":
			return nil, reeve.Errorf(reeve.Unauthenticated, "the secret %s is not set", name).
				Hintf("an operator can set the secret %s in this workspace", name)
		case err != nil:
			return nil, reeve.Errorf(reeve.Unavailable, "the secret %s cannot be read now", name).
				Hintf("try again; if it lasts, it was stored under another key: servers that share a database need " +
					"the same secret.key (reeve doctor says whether they have it)")
		case reeve.CheckSecret(v) != nil: // the provider is not ours, or it was stored before this was checked
			return nil, reeve.Errorf(reeve.Unauthenticated, "the secret %s cannot be used", name).
				Hintf("a secret is %s", reeve.SecretRule)
		}
		values[name] = v
	}
	return values, nil
}
