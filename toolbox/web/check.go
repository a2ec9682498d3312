package web

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/canonjson"
)

// ours are the headers a spec may not set: the transport's, those that would change where a request goes or how its
// answer is read, and those Reeve answers for.
var ours = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true,
	"Idempotency-Key": true,
	"Keep-Alive":      true, "Proxy-Authorization": true, "Proxy-Connection": true, "Range": true, "Referer": true,
	"Te":      true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "User-Agent": true, "X-Idempotency-Key": true,
}

// credentials are the headers and query parameters whose value belongs into a secret: a spec is shown to people, a
// secret is not.
var credentials = map[string]bool{
	"authorization": true, "cookie": true, "x-api-key": true, "api-key": true, "apikey": true, "x-auth-token": true,
	"x-access-token": true, "private-token": true, "api_key": true, "access_token": true, "client_secret": true,
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)

// endpoint checks the request a tool makes and makes it ready.
func (c *checker) endpoint() *request {
	s := c.spec
	const methods = "one of GET, POST, PUT, PATCH, DELETE"
	switch {
	case s.Method == "":
		c.bad("/spec/method", methods, bad("the method is missing"))
	case !isMethod(s.Method):
		c.bad("/spec/method", methods, bad("%q is not a method of a tool", s.Method))
	}
	if s.MaxResponseBytes < 1 || s.MaxResponseBytes > mostResponseBytes {
		c.bad("/spec/max_response_bytes", "1 to "+strconv.Itoa(mostResponseBytes), bad("the limit is out of range"))
	}
	r := &request{
		method: s.Method, query: s.Query, body: s.Body, bodyType: s.BodyType, limit: s.MaxResponseBytes,
		effect: c.tool.Effect,
		client: c.builder.client(!c.tool.Effect.Mutates()), provider: c.builder.Secrets,
	}
	r.url = c.url("/spec/url", s.URL)
	path, query := r.url.args()
	r.used = append(path, query...)
	r.headers = c.headers("/spec/headers", s.Headers)
	r.secrets = c.secrets(r)
	for _, name := range sortedKeys(s.Query) {
		at := "/spec/query/" + canonjson.EscapePointer(name)
		c.argument(at, s.Query[name], "object")
		r.used = append(r.used, s.Query[name])
		if name == "" || slices.ContainsFunc(r.url.query, func(p param) bool { return unescape(p.name) == name }) {
			c.bad(at, "another name", bad("the parameter is empty or stands in the url already"))
		}
	}
	c.reads()
	c.body()
	tokens, ok := parsePointer(s.Result)
	if !ok {
		c.bad("/spec/result", "a JSON Pointer, like /data/id", bad("%q is not a JSON Pointer", s.Result))
	}
	r.result = tokens
	return r
}

// isMethod knows the methods of a tool. HEAD is none: it has no answer that a caller could be given.
func isMethod(s string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete}, s)
}

// reads checks which calls are said to change nothing.
func (c *checker) reads() {
	if len(c.spec.Reads) > 0 && c.tool.Effect == reeve.Read {
		c.bad("/spec/reads", "nothing: no call of a tool of effect read changes anything", bad("the tool only reads"))
	}
	for _, name := range sortedKeys(c.spec.Reads) {
		at := "/spec/reads/" + canonjson.EscapePointer(name)
		c.argument(at, name)
		if typ, ok := c.known[name]; ok && typ != "string" {
			c.bad(at, "a parameter of type string", bad("the parameter %s is of type %s", name, typ))
		}
		if len(c.spec.Reads[name]) == 0 {
			c.bad(at, "the values with which a call changes nothing", bad("there is no value"))
		}
	}
}

// lookup checks the request that finds out what happened and makes it ready.
func (c *checker) lookup() *lookup {
	v := c.spec.Verify
	if v == nil {
		return nil
	}
	if v.Method != "GET" && v.Method != "HEAD" {
		c.bad("/spec/verify/method", "GET or HEAD", bad("%q is not a method of a look-up", v.Method))
	}
	tokens, _ := parsePointer(c.spec.Result)
	l := &lookup{applied: v.Applied, notApplied: v.NotApplied}
	l.request = request{
		method: v.Method, bodyType: noBody, limit: c.spec.MaxResponseBytes, effect: reeve.Read, result: tokens,
		client: c.builder.client(false), provider: c.builder.Secrets,
	}
	l.url = c.url("/spec/verify/url", v.URL)
	if path, query := l.url.args(); l.url.base != "" && len(path)+len(query) == 0 {
		c.bad("/spec/verify/url", "{operation_id} or an argument", bad("nothing says which attempt is meant"))
	}
	l.headers = c.headers("/spec/verify/headers", v.Headers)
	l.secrets = c.secrets(&l.request)
	c.statuses("/spec/verify/applied", v.Applied, nil)
	c.statuses("/spec/verify/not_applied", v.NotApplied, v.Applied)
	return l
}

func (c *checker) statuses(path string, list, other []int) {
	for i, s := range list {
		if s < 200 || s > 599 || slices.Contains(other, s) {
			c.bad(path+"/"+strconv.Itoa(i), "a status of 200 to 599 that is in one list only",
				bad("%d cannot stand here", s))
		}
	}
}

func (c *checker) url(at, s string) template {
	t, err := parseTemplate(s)
	if err != nil {
		c.bad(at, "like https://api.example.com/users/{id}?page={page}", err)
		return template{}
	}
	path, query := t.args()
	for _, name := range path {
		c.argument(at, name, "object", "array")
	}
	for _, name := range query {
		c.argument(at, name, "object", "array")
	}
	for _, q := range t.query {
		if credentials[strings.ToLower(unescape(q.name))] && len(secretsOf(q.value)) == 0 {
			c.bad(at, "${secret:NAME}", bad("the parameter %s is a credential: keep its value as a secret", q.name))
		}
	}
	return t
}

// argument checks that a name used somewhere is a parameter, and not of a type that cannot be written there.
func (c *checker) argument(at, name string, not ...string) {
	typ, ok := c.known[name]
	c.used[name] = true
	switch {
	case !ok:
		c.bad(at, "one of the tool's parameters", bad("the parameters do not define %q", name))
	case slices.Contains(not, typ):
		c.bad(at, "a string, number or boolean", bad("the parameter %s is of type %s, which cannot be written here",
			name, typ))
	}
}

func (c *checker) headers(at string, m map[string]string) []header {
	var out []header
	for _, name := range sortedKeys(m) {
		at, canonical := at+"/"+canonjson.EscapePointer(name), http.CanonicalHeaderKey(name)
		value, err := parseHeader(m[name])
		switch {
		case !headerName.MatchString(name):
			c.bad(at, "a header's name", bad("%q is not a header's name", name))
		case ours[canonical]:
			c.bad(at, "nothing here", bad("the header %s is set by Reeve", canonical))
		case slices.ContainsFunc(out, func(h header) bool { return h.name == canonical }):
			c.bad(at, "each header once", bad("the header %s stands here twice", canonical))
		case err != nil:
			c.bad(at, "text with ${secret:NAME}", err)
		case credentials[strings.ToLower(name)] && len(secretsOf(value)) == 0:
			c.bad(at, "${secret:NAME}", bad("the header %s is a credential: keep its value as a secret", canonical))
		}
		out = append(out, header{name: canonical, value: value})
	}
	return out
}

// secrets lists what a request needs to know.
func (c *checker) secrets(r *request) []string {
	names := r.url.secrets()
	for _, h := range r.headers {
		names = append(names, secretsOf(h.value)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 0 && r.provider == nil {
		c.bad("/spec", "a spec without secrets", bad("there are no secrets here, but the spec uses %s", names[0]))
	}
	return names
}

func (c *checker) body() {
	s := c.spec
	if !slices.Contains([]string{jsonBody, formBody, noBody}, s.BodyType) {
		c.bad("/spec/body_type", "json, form or none", bad("%q is not a type of body", s.BodyType))
	}
	if s.Method == http.MethodGet && s.BodyType != noBody || len(s.Body) > 0 && s.BodyType == noBody {
		c.bad("/spec/body", "nothing here", bad("a %s with body_type %s has no body", s.Method, s.BodyType))
	}
	var places [][]string
	for _, target := range sortedKeys(s.Body) {
		at := "/spec/body/" + canonjson.EscapePointer(target)
		if s.BodyType == formBody {
			c.argument(at, s.Body[target], "object")
		} else {
			c.argument(at, s.Body[target])
		}
		if _, ok := parsePointer(target); target == "" || target[0] == '/' && !ok {
			c.bad(at, "a key or a JSON Pointer", bad("%q names no place in a body", target))
			continue
		}
		tokens := place(target)
		if len(tokens) > 1 && s.BodyType == formBody {
			c.bad(at, "a key", bad("a form has no inner places"))
		}
		if slices.ContainsFunc(places, func(p []string) bool { return overlap(p, tokens) }) {
			c.bad(at, "a place of its own", bad("%q lies inside, around or on another place", target))
		}
		places = append(places, tokens)
	}
}

// overlap tells whether one place lies in the other.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}
