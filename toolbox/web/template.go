package web

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reeve"
)

// part is a piece of a template: exactly one of its fields is set.
type part struct {
	literal string // already escaped
	arg     string
	secret  string
}

// template is a URL with holes. Scheme and host have none, and the holes sit inside one path segment or one query value
// each, so that whatever fills them cannot change where the request goes or how the URL falls into pieces.
type template struct {
	base  string // scheme://host
	path  [][]part
	query []param
}

// param is a query parameter. Its name has no holes.
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

const secretOpening = reeve.SecretMark

// parseTemplate reads a URL template. The error says what is wrong in words fit for the person who wrote it.
func parseTemplate(s string) (template, error) {
	var t template
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return t, bad("the url must begin with http:// or https://")
	}
	if strings.ContainsAny(s, "#\\") {
		return t, bad("a url has no fragment and no backslash here")
	}
	host := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, rest = rest[:i], rest[i:]
	} else {
		rest = ""
	}
	switch {
	case strings.ContainsAny(host, "{}$"):
		return t, bad("scheme and host must be written out: an argument or a secret cannot choose them")
	case strings.Contains(host, "@"):
		return t, bad("user and password have no place in a url: use a header with a secret")
	case !authority.MatchString(host):
		return t, bad("the host cannot be read")
	}
	t.base = scheme + "://" + host
	if u, err := url.Parse(t.base); err != nil || u.Port() != "" && !isPort(u.Port()) {
		return t, bad("the host cannot be read")
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
			return t, bad("the segments . and .. have no place in a path")
		}
		t.path = append(t.path, parts)
	}
	if query == "" {
		return t, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name == "" || strings.ContainsAny(name, "{}") || !queryLiteral.MatchString(name) {
			return t, bad("a query parameter's name must be written out")
		}
		parts, err := parseParts(value, queryLiteral, true)
		if err != nil {
			return t, err
		}
		t.query = append(t.query, param{name: name, value: parts})
	}
	return t, nil
}

// parseParts reads text with {arg} and, where they may be, ${secret:NAME}.
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
				return nil, bad("%q holds characters that must be percent-encoded in a url", lit)
			}
			parts = append(parts, part{literal: lit})
		}
		if s = s[i:]; s == "" {
			break
		}
		end := strings.IndexByte(s, '}')
		switch {
		case end <= 0:
			return nil, bad("a brace is not closed or not opened")
		case secret && !secrets:
			return nil, bad("a secret may stand in header values and query values only")
		case secret && !secretName.MatchString(s[len(secretOpening):end]):
			return nil, bad("%q is not the name of a secret", s[len(secretOpening):end])
		case secret:
			parts = append(parts, part{secret: s[len(secretOpening):end]})
		case !argName.MatchString(s[1:end]):
			return nil, bad("%q is not the name of an argument", s[1:end])
		default:
			parts = append(parts, part{arg: s[1:end]})
		}
		s = s[end+1:]
	}
	return parts, nil
}

// expand fills the holes. Query parameters that need an argument which is missing are left out; a path cannot do
// without.
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
			v, err := args.inPath(p.arg)
			if err != nil {
				return nil, err
			}
			b.WriteString(escape(v))
			whole += v
		}
		if hasDots(whole) {
			return nil, wrongArg(segment[slices.IndexFunc(segment, isArg)].arg, "it would change the path",
				"no . or .. between slashes")
		}
	}
	pairs := make([]string, 0, len(t.query)+len(more))
	for _, q := range t.query {
		v, ok, err := args.inQuery(q.value, secrets)
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
		return nil, reeve.Errorf(reeve.Internal, "the url does not keep its shape") // escape made this impossible
	}
	return u, nil
}

// args lists the arguments a template uses, those of the path first.
func (t template) args() (path, query []string) {
	for _, segment := range t.path {
		path = append(path, argsOf(segment)...)
	}
	for _, q := range t.query {
		query = append(query, argsOf(q.value)...)
	}
	return path, query
}

// secrets lists the secrets a template uses.
func (t template) secrets() []string {
	var names []string
	for _, q := range t.query {
		names = append(names, secretsOf(q.value)...)
	}
	return names
}

func argsOf(parts []part) []string {
	var names []string
	for _, p := range parts {
		if isArg(p) {
			names = append(names, p.arg)
		}
	}
	return names
}

func isArg(p part) bool { return p.arg != "" }

// escape writes a value so that it means nothing in a URL: only unreserved characters stay.
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

// hasDots finds dot segments behind escaped slashes too: proxies that unescape a path before they tidy it would follow
// them.
func hasDots(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == '\\' }), isDots)
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func bad(format string, args ...any) error { return reeve.Errorf(reeve.Validation, format, args...) }
