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

// reservedHeaders are the headers that a spec may not set: those of the transport, those that change where a request
// goes or how its response is read, and those that Reeve sets itself.
var reservedHeaders = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Expect": true, "Host": true,
	"Idempotency-Key": true,
	"Keep-Alive":      true, "Proxy-Authorization": true, "Proxy-Connection": true, "Range": true, "Referer": true,
	"Te":      true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "User-Agent": true, "X-Idempotency-Key": true,
}

// credentialNames are the headers and query parameters whose values must be secrets, because people can read a spec.
var credentialNames = map[string]bool{
	"authorization": true, "cookie": true, "x-api-key": true, "api-key": true, "apikey": true, "x-auth-token": true,
	"x-access-token": true, "private-token": true, "api_key": true, "access_token": true, "client_secret": true,
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)

// buildRequest checks the request of a tool and builds it.
func (c *checker) buildRequest() *request {
	s := c.spec
	const methods = "one of GET, POST, PUT, PATCH, DELETE"
	switch {
	case s.Method == "":
		c.report("/spec/method", methods, invalidf("method is missing"))
	case !isMethod(s.Method):
		c.report("/spec/method", methods, invalidf("method %q is not supported", s.Method))
	}
	if s.MaxResponseBytes < 1 || s.MaxResponseBytes > maxResponseBytes {
		c.report("/spec/max_response_bytes", "1 to "+strconv.Itoa(maxResponseBytes), invalidf("limit is out of range"))
	}
	r := &request{
		method: s.Method, query: s.Query, body: s.Body, bodyType: s.BodyType, limit: s.MaxResponseBytes,
		effect: c.tool.Effect,
		client: c.builder.newClient(!c.tool.Effect.Mutates()), provider: c.builder.Secrets,
		hiddenSettings: c.hiddenSettings(),
	}
	r.url = c.parseURL("/spec/url", s.URL)
	path, query := r.url.args()
	r.usedArgs = append(path, query...)
	r.headers = c.parseHeaders("/spec/headers", s.Headers)
	for _, h := range r.headers {
		r.usedArgs = append(r.usedArgs, argNames(h.value)...)
	}
	r.secrets = c.collectSecrets(r)
	for _, name := range sortedKeys(s.Query) {
		at := "/spec/query/" + canonjson.EscapePointer(name)
		c.checkArgument(at, s.Query[name], "object")
		r.usedArgs = append(r.usedArgs, s.Query[name])
		if name == "" || slices.ContainsFunc(r.url.query, func(p param) bool { return unescape(p.name) == name }) {
			c.report(at, "another name", invalidf("the parameter name is empty or already in the URL"))
		}
	}
	c.checkReads()
	c.checkBody()
	tokens, ok := parsePointer(s.Result)
	if !ok {
		c.report("/spec/result", "a JSON Pointer, like /data/id", invalidf("%q is not a JSON Pointer", s.Result))
	}
	r.result = tokens
	return r
}

// isMethod reports whether a tool may use the method. HEAD is not allowed, because its response has no body to return.
func isMethod(s string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete}, s)
}

// checkReads checks the argument values with which a call changes nothing.
func (c *checker) checkReads() {
	if len(c.spec.Reads) > 0 && c.tool.Effect == reeve.Read {
		c.report("/spec/reads", "no value", invalidf("a tool with effect read changes nothing in any call"))
	}
	for _, name := range sortedKeys(c.spec.Reads) {
		at := "/spec/reads/" + canonjson.EscapePointer(name)
		c.checkArgument(at, name)
		if typ, ok := c.paramTypes[name]; ok && typ != "string" {
			c.report(at, "a parameter of type string", invalidf("parameter %s has type %s", name, typ))
		}
		if len(c.spec.Reads[name]) == 0 {
			c.report(at, "the values with which a call changes nothing", invalidf("list is empty"))
		}
	}
}

// buildLookup checks the look-up request and builds it.
func (c *checker) buildLookup() *lookup {
	v := c.spec.Verify
	if v == nil {
		return nil
	}
	if v.Method != "GET" && v.Method != "HEAD" {
		c.report("/spec/verify/method", "GET or HEAD", invalidf("%q is not a method for a look-up", v.Method))
	}
	tokens, _ := parsePointer(c.spec.Result)
	l := &lookup{applied: v.Applied, notApplied: v.NotApplied}
	l.request = request{
		method: v.Method, bodyType: noBody, limit: c.spec.MaxResponseBytes, effect: reeve.Read, result: tokens,
		client: c.builder.newClient(false), provider: c.builder.Secrets, hiddenSettings: c.hiddenSettings(),
	}
	l.url = c.parseURL("/spec/verify/url", v.URL)
	path, query := l.url.args()
	isSetting := func(name string) bool { return strings.HasPrefix(name, configPrefix) }
	if names := slices.DeleteFunc(append(path, query...), isSetting); l.url.base != "" && len(names) == 0 {
		c.report("/spec/verify/url", "{operation_id} or an argument", invalidf("the URL does not identify the attempt"))
	}
	l.headers = c.parseHeaders("/spec/verify/headers", v.Headers)
	l.secrets = c.collectSecrets(&l.request)
	c.checkStatuses("/spec/verify/applied", v.Applied, nil)
	c.checkStatuses("/spec/verify/not_applied", v.NotApplied, v.Applied)
	return l
}

func (c *checker) checkStatuses(path string, list, other []int) {
	for i, s := range list {
		if s < 200 || s > 599 || slices.Contains(other, s) {
			c.report(path+"/"+strconv.Itoa(i), "a status from 200 to 599 that is in one list only",
				invalidf("status %d is out of range or in both lists", s))
		}
	}
}

func (c *checker) parseURL(at, s string) template {
	t, err := parseTemplate(s)
	if err != nil {
		c.report(at, "a URL such as https://api.example.com/users/{id}?page={page}", err)
		return template{}
	}
	path, query := t.args()
	for _, name := range path {
		c.checkArgument(at, name, "object", "array")
	}
	for _, name := range query {
		c.checkArgument(at, name, "object", "array")
	}
	for _, q := range t.query {
		if credentialNames[strings.ToLower(unescape(q.name))] && !c.hidesCredential(q.value) {
			c.report(at, "${secret:NAME}", invalidf("parameter %s is a credential; store its value as a secret",
				q.name))
		}
	}
	return t
}

// hidesCredential reports whether a value contains a secret, or a setting that is never shown.
func (c *checker) hidesCredential(value []part) bool {
	return len(secretNames(value)) > 0 || slices.ContainsFunc(argNames(value), func(arg string) bool {
		name, ok := strings.CutPrefix(arg, configPrefix)
		return ok && slices.Contains(c.hiddenSettings(), name)
	})
}

// hiddenSettings lists the settings that are never shown.
func (c *checker) hiddenSettings() (names []string) {
	for name, s := range settingsOf(c.tool) {
		if s.WriteOnly {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkArgument checks that name is a parameter and that its type is not one of not.
func (c *checker) checkArgument(at, name string, not ...string) {
	typ, ok := c.paramTypes[name]
	c.usedParams[name] = true
	switch {
	case !ok:
		c.report(at, "one of the tool's parameters", invalidf("the parameters do not define %q", name))
	case slices.Contains(not, typ):
		c.report(at, "a string, number or boolean", invalidf("parameter %s has type %s, which cannot be used here",
			name, typ))
	}
}

func (c *checker) parseHeaders(at string, m map[string]string) []header {
	var out []header
	for _, name := range sortedKeys(m) {
		at, canonical := at+"/"+canonjson.EscapePointer(name), http.CanonicalHeaderKey(name)
		value, err := parseHeader(m[name])
		switch {
		case !headerName.MatchString(name):
			c.report(at, "a header name", invalidf("%q is not a header name", name))
		case reservedHeaders[canonical]:
			c.report(at, "no value", invalidf("Reeve sets the header %s itself", canonical))
		case slices.ContainsFunc(out, func(h header) bool { return h.name == canonical }):
			c.report(at, "each header once", invalidf("header %s occurs twice", canonical))
		case err != nil:
			c.report(at, "text with ${secret:NAME} or {{config.NAME}}", err)
		case credentialNames[strings.ToLower(name)] && !c.hidesCredential(value):
			c.report(at, "${secret:NAME}", invalidf("header %s is a credential; store its value as a secret",
				canonical))
		}
		for _, name := range argNames(value) {
			c.checkArgument(at, name, "object", "array")
		}
		out = append(out, header{name: canonical, value: value})
	}
	return out
}

// collectSecrets returns the names of the secrets that a request uses.
func (c *checker) collectSecrets(r *request) []string {
	names := r.url.secrets()
	for _, h := range r.headers {
		names = append(names, secretNames(h.value)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 0 && r.provider == nil {
		c.report("/spec", "a spec without secrets",
			invalidf("the spec uses the secret %s, but this server has no secrets", names[0]))
	}
	return names
}

func (c *checker) checkBody() {
	s := c.spec
	if !slices.Contains([]string{jsonBody, formBody, noBody}, s.BodyType) {
		c.report("/spec/body_type", "json, form or none", invalidf("%q is not a body type", s.BodyType))
	}
	if s.Method == http.MethodGet && s.BodyType != noBody || len(s.Body) > 0 && s.BodyType == noBody {
		c.report("/spec/body", "no value", invalidf("a %s with body_type %s has no body", s.Method, s.BodyType))
	}
	var places [][]string
	for _, target := range sortedKeys(s.Body) {
		at := "/spec/body/" + canonjson.EscapePointer(target)
		if s.BodyType == formBody {
			c.checkArgument(at, s.Body[target], "object")
		} else {
			c.checkArgument(at, s.Body[target])
		}
		if _, ok := parsePointer(target); target == "" || target[0] == '/' && !ok {
			c.report(at, "a key or a JSON Pointer", invalidf("%q is neither a key nor a JSON Pointer", target))
			continue
		}
		tokens := bodyPath(target)
		if len(tokens) > 1 && s.BodyType == formBody {
			c.report(at, "a key", invalidf("a form has no nested values"))
		}
		if slices.ContainsFunc(places, func(p []string) bool { return pathsOverlap(p, tokens) }) {
			c.report(at, "a path that does not overlap another", invalidf("%q overlaps another path", target))
		}
		places = append(places, tokens)
	}
}

// pathsOverlap reports whether one path is a prefix of the other.
func pathsOverlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// checkEffect checks that the effect class and the request agree.
func (c *checker) checkEffect() {
	s, effect := c.spec, c.tool.Effect
	switch {
	case effect == reeve.Local:
		c.report("/effect", "read, keyed, verifiable or unsafe",
			invalidf("the effect of an endpoint happens outside Reeve and cannot be local"))
	case effect == reeve.Read && s.Method == http.MethodPost && !s.Read:
		c.report("/spec/method", `GET, or POST with "read": true`,
			invalidf("a POST counts as a change unless read is true"))
	case effect == reeve.Read && isMethod(s.Method) && s.Method != http.MethodGet && s.Method != http.MethodPost:
		c.report("/spec/method", "GET", invalidf("%s changes something, but the effect of the tool is read", s.Method))
	}
	if s.Read && (effect != reeve.Read || s.Method != http.MethodPost) {
		c.report("/spec/read", "no value", invalidf("read is only for a POST of a tool with effect read"))
	}
	if effect == reeve.Verifiable && s.Verify == nil {
		c.report("/spec/verify", "a look-up request", invalidf("a tool with effect verifiable needs a look-up request"))
	}
	if effect != reeve.Verifiable && s.Verify != nil {
		c.report("/spec/verify", "no value", invalidf("only a tool with effect verifiable has a look-up request"))
	}
}
