package web

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// part is a piece of a template. Exactly one of its fields is set.
type part struct {
	literal string // already escaped
	arg     string
	secret  string
}

// template is a URL with placeholders. Scheme and host have none. A placeholder is inside one path segment or one query
// value, so its value cannot change where the request goes or how the URL is parsed.
type template struct {
	base  string // scheme://host
	path  [][]part
	query []param
}

// param is a query parameter. Its name has no placeholders.
type param struct {
	name  string // already escaped
	value []part
}

var (
	argName      = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	secretName   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
	authority    = regexp.MustCompile(`^(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
	pathLiteral  = regexp.MustCompile(`^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})*$`)
	queryLiteral = regexp.MustCompile(`^(?:[A-Za-z0-9\-._~!$'()*+,;:@/?=]|%[0-9A-Fa-f]{2})*$`)
)

const (
	secretOpening = reeve.SecretMark
	configOpening = "{{" + configPrefix
)

// cutConfig splits s after a setting {{config.NAME}} at its beginning, and returns the setting's name as an argument.
func cutConfig(s string) (arg, rest string, err error) {
	end := strings.Index(s, "}}")
	if end < 0 || !argName.MatchString(s[len(configOpening):end]) {
		return "", "", invalidf("a setting must be written {{config.NAME}}")
	}
	return configPrefix + s[len(configOpening):end], s[end+2:], nil
}

// parseTemplate parses a URL template. Its errors are meant for the author of the tool.
func parseTemplate(s string) (template, error) {
	var t template
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return t, invalidf("the URL must begin with http:// or https://")
	}
	if strings.ContainsAny(s, "#\\") {
		return t, invalidf("the URL must not contain a fragment or a backslash")
	}
	host := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, rest = rest[:i], rest[i:]
	} else {
		rest = ""
	}
	switch {
	case strings.ContainsAny(host, "{}$"):
		return t, invalidf("scheme and host must not contain an argument or a secret")
	case strings.Contains(host, "@"):
		return t, invalidf("the URL must not contain a user or password; use a header with a secret")
	case !authority.MatchString(host):
		return t, invalidf("the host is not valid")
	}
	t.base = scheme + "://" + host
	if u, err := url.Parse(t.base); err != nil || u.Port() != "" && !isPort(u.Port()) {
		return t, invalidf("the host is not valid")
	}
	path, query, _ := strings.Cut(rest, "?")
	if path == "" {
		path = "/"
	}
	for segment := range strings.SplitSeq(path[1:], "/") {
		parts, err := parseParts(segment, pathLiteral, false)
		if err != nil {
			return t, err
		}
		if len(parts) == 1 && hasDots(unescape(parts[0].literal)) {
			return t, invalidf("the path must not contain the segments . and ..")
		}
		t.path = append(t.path, parts)
	}
	if query == "" {
		return t, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name == "" || strings.ContainsAny(name, "{}") || !queryLiteral.MatchString(name) {
			return t, invalidf("the name of a query parameter must not contain an argument")
		}
		parts, err := parseParts(value, queryLiteral, true)
		if err != nil {
			return t, err
		}
		t.query = append(t.query, param{name: name, value: parts})
	}
	return t, nil
}

// parseParts parses text that contains {arg}, {{config.NAME}} and, if secrets is true, ${secret:NAME}.
func parseParts(s string, literal *regexp.Regexp, secrets bool) ([]part, error) {
	var parts []part
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			i = len(s)
		}
		secret := i > 0 && strings.HasPrefix(s[i-1:], secretOpening)
		if secret {
			i--
		}
		if lit := s[:i]; lit != "" {
			if !literal.MatchString(lit) {
				return nil, invalidf("%q contains characters that must be percent-encoded in a URL", lit)
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
		switch {
		case end <= 0:
			return nil, invalidf("a brace is not closed or not opened")
		case secret && !secrets:
			return nil, invalidf("a secret is only allowed in header values and query values")
		case secret && !secretName.MatchString(s[len(secretOpening):end]):
			return nil, invalidf("%q is not a valid name of a secret", s[len(secretOpening):end])
		case secret:
			parts = append(parts, part{secret: s[len(secretOpening):end]})
		case !argName.MatchString(s[1:end]):
			return nil, invalidf("%q is not a valid name of an argument", s[1:end])
		default:
			parts = append(parts, part{arg: s[1:end]})
		}
		s = s[end+1:]
	}
	return parts, nil
}

// expand fills in the placeholders. It leaves out query parameters whose argument is missing. A missing argument in the
// path is an error.
func (t template) expand(args arguments, secrets map[string]string, more []string) (*url.URL, error) {
	var b strings.Builder
	b.WriteString(t.base)
	for _, segment := range t.path {
		b.WriteByte('/')
		whole := ""
		for _, p := range segment {
			if p.arg == "" {
				b.WriteString(p.literal)
				whole += unescape(p.literal)
				continue
			}
			v, err := args.pathValue(p.arg)
			if err != nil {
				return nil, err
			}
			b.WriteString(escape(v))
			whole += v
		}
		if hasDots(whole) {
			return nil, invalidArg(segment[slices.IndexFunc(segment, isArg)].arg, "would change the path",
				"no . or .. between slashes")
		}
	}
	pairs := make([]string, 0, len(t.query)+len(more))
	for _, q := range t.query {
		v, ok, err := args.expandQueryValue(q.value, secrets)
		if err != nil {
			return nil, err
		}
		if ok {
			pairs = append(pairs, q.name+"="+v)
		}
	}
	if pairs = append(pairs, more...); len(pairs) > 0 {
		b.WriteString("?" + strings.Join(pairs, "&"))
	}
	u, err := url.Parse(b.String())
	if err != nil || u.Scheme+"://"+u.Host != t.base || u.User != nil ||
		strings.Count(u.EscapedPath(), "/") != len(t.path) {
		return nil, reeve.Errorf(reeve.Internal, "arguments changed the structure of the URL") // escape rules this out
	}
	return u, nil
}

// args returns the arguments in the path and those in the query.
func (t template) args() (path, query []string) {
	for _, segment := range t.path {
		path = append(path, argNames(segment)...)
	}
	for _, q := range t.query {
		query = append(query, argNames(q.value)...)
	}
	return path, query
}

// secrets returns the names of the secrets that the template uses.
func (t template) secrets() []string {
	var names []string
	for _, q := range t.query {
		names = append(names, secretNames(q.value)...)
	}
	return names
}

func argNames(parts []part) []string {
	var names []string
	for _, p := range parts {
		if isArg(p) {
			names = append(names, p.arg)
		}
	}
	return names
}

func isArg(p part) bool { return p.arg != "" }

// escape percent-encodes all but unreserved characters, so that s has no special meaning in a URL.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

func unescape(s string) string {
	u, err := url.PathUnescape(s)
	if err != nil {
		return s
	}
	return u
}

func isDots(s string) bool { return s == "." || s == ".." }

// hasDots reports whether s contains a dot segment. It treats escaped slashes as separators too, because some proxies
// unescape a path before they clean it.
func hasDots(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }), isDots)
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func invalidf(format string, args ...any) error {
	return reeve.Errorf(reeve.Validation, format, args...)
}
