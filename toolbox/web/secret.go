package web

import (
	"context"
	"errors"
	"strings"

	"reeve"
)

// parseHeader parses a header value that may contain ${secret:NAME} and {{config.NAME}}. Braces have no other meaning
// in a header.
func parseHeader(s string) ([]part, error) {
	var parts []part
	for s != "" {
		i := len(s)
		for _, opening := range []string{secretOpening, configOpening} {
			if at := strings.Index(s, opening); at >= 0 {
				i = min(i, at)
			}
		}
		if lit := s[:i]; lit != "" {
			if !isHeaderValue(lit) {
				return nil, invalidf("a header value must be printable ASCII")
			}
			parts = append(parts, part{literal: lit})
		}
		if s = s[i:]; s == "" {
			break
		}
		if strings.HasPrefix(s, configOpening) {
			arg, rest, err := cutConfig(s)
			if err != nil {
				return nil, err
			}
			parts, s = append(parts, part{arg: arg}), rest
			continue
		}
		end := strings.IndexByte(s, '}')
		if end < 0 || !secretName.MatchString(s[len(secretOpening):end]) {
			return nil, invalidf("a secret must be written ${secret:NAME}")
		}
		parts = append(parts, part{secret: s[len(secretOpening):end]})
		s = s[end+1:]
	}
	return parts, nil
}

func secretNames(parts []part) []string {
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

// resolveSecrets returns the values of the secrets that a request uses. Its errors name the secret but never its value.
// The provider's own message is dropped, because it might contain the value.
func (r *request) resolveSecrets(ctx context.Context, workspace string) (map[string]string, error) {
	values := make(map[string]string, len(r.secrets))
	for _, name := range r.secrets {
		v, err := r.provider(ctx, workspace, name)
		switch v = strings.TrimRight(v, "\r\n"); { // secret files often end in a newline
		case errors.Is(err, context.Canceled):
			return nil, reeve.Errorf(reeve.Canceled, "call cancelled before anything was sent")
		case reeve.CodeOf(err) == reeve.NotFound || err == nil && v == "":
			return nil, reeve.Errorf(reeve.Unauthenticated, "secret %s is not set", name).
				Hintf("an operator can set the secret %s in this workspace", name)
		case err != nil:
			return nil, reeve.Errorf(reeve.Unavailable, "secret %s cannot be read now", name).
				Hintf("try again; if the error persists, the secret was stored with another key: servers that share " +
					"a database need the same secret.key (check with reeve doctor)")
		case reeve.CheckSecret(v) != nil: // an external provider, or stored before this check existed
			return nil, reeve.Errorf(reeve.Unauthenticated, "secret %s cannot be used", name).
				Hintf("a secret must be %s", reeve.SecretRule)
		}
		values[name] = v
	}
	return values, nil
}
