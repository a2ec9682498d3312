package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// The sweeps below send bad input to every route. Each response is a problem document with a path and a hint, nothing
// is written, and the server handles the next request.

// startSweep returns a server with test data, its operations, and a check that nothing was written.
func startSweep(t *testing.T) (*reevetest.Host, []operation, map[string]sample, func()) {
	t.Helper()
	h := startServer(t, testTools()...)
	x := createFixture(t, h)
	before := takeSnapshot(t, h)
	return h, filterSampled(loadOpenAPI(t, h).operations()), samples(x), func() {
		t.Helper()
		wantUnchanged(t, before, takeSnapshot(t, h))
		h.Want(200, nil, "GET", "/readyz", nil)
	}
}

// wantClientError checks that a response is a 4xx problem.
func wantClientError(t *testing.T, what string, r reevetest.Reply, codes ...reeve.Code) {
	t.Helper()
	var p api.Problem
	if r.Status < 400 || r.Status > 499 || r.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%.200s: %d %s %.300s", what, r.Status, r.Header.Get("Content-Type"), r.Body)
		return
	}
	r.Decode(t, &p)
	if !slices.Contains(codes, p.Code) || p.Hint == "" || p.Detail == "" || p.RequestID == "" ||
		p.Code == reeve.Validation && len(p.Errors) == 0 || strings.Contains(p.Detail, string(p.Code)) {
		t.Errorf("%.200s: %.500s", what, r.Body)
	}
}

// hasBody reports whether the request body of an operation is a JSON document. A batch of mails has JSON lines, which
// TestBadInput_MailLines checks.
func hasBody(o operation) bool {
	body, _ := o.tree["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	return content["application/json"] != nil
}

func TestBadInput_Bodies(t *testing.T) {
	t.Parallel()
	h, operations, all, checkUnchanged := startSweep(t)
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, o := range operations {
		s := all[o.id]
		if !hasBody(o) {
			continue
		}
		good, _ := json.Marshal(s.body)
		for _, text := range []string{`{"a":`, `nope`, `[]`, `null`, `"x"`, `7`, ``, ` `, `{} {}`, string(good) + `x`,
			`{"zzz":1}`, "\xff\xfe", "{\"name\":\"\xff\"}", "\x00", "{\"a\":\"\x00\"}",
			deep, `{"zzz":` + deep + `}`, `{"config":` + deep + `,"args":` + deep + `}`,
			strings.Repeat(`{"a":`, 10_000), `{"zzz":1e999}`, `{"zzz":123456789012345678901234567890}`,
			`{"zzz":"\ud800"}`,
			`{"a":1,"a":2}`, `{'a':1}`, "\xef\xbb\xbf{}"} {
			wantClientError(t, o.id+" "+text, h.Do(o.method, s.path, text), reeve.Validation)
		}
		for name := range s.body.(object) {
			upper := bytes.Replace(good, []byte(`"`+name+`":`), []byte(`"`+strings.ToUpper(name)+`":`), 1)
			wantClientError(t, o.id+" "+string(upper), h.Do(o.method, s.path, upper), reeve.Validation)
		}
		wantClientError(t, o.id+" no body", h.Do(o.method, s.path, nil), reeve.Validation)
		for _, kind := range []string{"text/plain", "application/xml", "multipart/form-data; boundary=x",
			"application/x-www-form-urlencoded", "application/jsonx", "*/*"} {
			wantClientError(t, o.id+" "+kind, h.Do(o.method, s.path, s.body, "Content-Type", kind), reeve.Validation)
		}
	}
	checkUnchanged()
}

func TestBadInput_Fields(t *testing.T) {
	t.Parallel()
	h, operations, all, checkUnchanged := startSweep(t)
	for _, o := range operations {
		s := all[o.id]
		if !hasBody(o) {
			continue
		}
		for name, v := range s.body.(object) {
			if name == "args" {
				continue // the gate judges those, and records that it did
			}
			withField := func(v any) object {
				b := object{}
				for k, old := range s.body.(object) {
					b[k] = old
				}
				b[name] = v
				return b
			}
			wrong := []any{[]any{[]any{true}}, true, 1e300, strings.Repeat("x", 100_000)}
			switch v.(type) {
			case string:
				wrong = append(wrong, 7, object{}, "a\x00b", "", " ")
				if name == "description" || name == "reason" || name == "name" || name == "value" ||
					name == "comment" || name == "agent" || name == "agentId" || name == "title" || name == "tool_id" ||
					name == "tool" {
					// These may be blank, or a blank value is not found.
					wrong = slices.DeleteFunc(wrong, func(v any) bool { return v == "" || v == " " })
				}
				if name == "content" || name == "message" || name == "source" {
					// These may be long.
					wrong = slices.DeleteFunc(wrong, func(v any) bool {
						s, ok := v.(string)
						return ok && len(s) > 1000
					})
				}
			case bool:
				wrong = slices.DeleteFunc(wrong, func(v any) bool { return v == true })
			case object:
				wrong = append(wrong, "{}", []any{})
			}
			for _, w := range wrong {
				r := h.Do(o.method, s.path, withField(w))
				what := fmt.Sprintf("%s %s = %v", o.id, name, w)
				wantClientError(t, what, r, reeve.Validation)
				if p := decode[api.Problem](t, r); p.Code == reeve.Validation &&
					!slices.ContainsFunc(p.Errors,
						func(f reeve.Field) bool { return strings.HasPrefix(f.Path, "/"+name) }) {
					t.Errorf("%.200s: no error at /%s: %.300s", what, name, r.Body)
				}
			}
		}
	}
	checkUnchanged()
}

func TestBadInput_TooLarge(t *testing.T) {
	t.Parallel()
	h, operations, all, checkUnchanged := startSweep(t)
	for _, o := range operations {
		size := 10 << 20
		if o.id == "createTurn" { // a turn may have attachments
			size = 33 << 20
		}
		large := []byte(`{"zzz":"` + strings.Repeat("x", size) + `"}`)
		if hasBody(o) {
			wantProblem(t, h.Do(o.method, all[o.id].path, large), 413, reeve.TooLarge)
			wantProblem(t, h.Do(o.method, all[o.id].path, large, idempotencyKey, "k"), 413, reeve.TooLarge)
		}
	}
	checkUnchanged()
}

func TestBadInput_Paths(t *testing.T) {
	t.Parallel()
	h, operations, _, checkUnchanged := startSweep(t)
	parameter := regexp.MustCompile(`\{\w+\}`)
	good := samples(missing)
	for _, o := range operations {
		for _, id := range []string{"%00", "a%00b", "%ff", "%c3%28", "a%2Fb", "..%2F..%2Fetc", "%2e%2e", "%2e", "%20",
			"%0d%0aX-Evil:%201", "%F0%9F%A6%A4", "'%20OR%201=1%20--", "%25", "*", strings.Repeat("a", 10_000),
			strings.Repeat("%E2%82%AC", 2000)} {
			if !parameter.MatchString(o.path) {
				continue
			}
			r := h.Do(o.method, parameter.ReplaceAllLiteralString(o.path, id), good[o.id].body)
			wantClientError(t, o.id+" "+id, r, reeve.Validation, reeve.NotFound)
			if r.Header.Get("X-Evil") != "" {
				t.Errorf("%s: response has an injected header", o.id)
			}
		}
	}
	for _, p := range []string{"//api/tools", "/api//tools", "/api/./tools", "/api/x/../tools", "/api/tools/",
		"/api/tools/..", "/api", "/api/", "/API/tools", "/api/nothing", "/nothing", "/healthz/", "/docs/../api/tools"} {
		wantProblem(t, h.Do("GET", p, nil), 404, reeve.NotFound)
	}
	checkUnchanged()
}

func TestBadInput_Methods(t *testing.T) {
	t.Parallel()
	h, operations, _, checkUnchanged := startSweep(t)
	known := map[string][]string{}
	for _, o := range operations {
		known[o.path] = append(known[o.path], o.method)
	}
	for p, methods := range known {
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "get"} {
			path := strings.NewReplacer("{", "", "}", "").Replace(p)
			if !slices.ContainsFunc(operations, func(o operation) bool { return o.matches(m, path) }) {
				r := h.Do(m, path, nil)
				wantProblem(t, r, 405, reeve.Unsupported)
				allowed := strings.Split(r.Header.Get("Allow"), ", ")
				if slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(allowed, m) }) {
					t.Errorf("%s %s: want methods %v, Allow has %v", m, p, methods, allowed)
				}
			}
		}
	}
	checkUnchanged()
}

func TestBadInput_Queries(t *testing.T) {
	t.Parallel()
	h, operations, all, checkUnchanged := startSweep(t)
	for _, o := range operations {
		s := all[o.id]
		more := "?"
		if strings.Contains(s.path, "?") {
			more = "&"
		}
		if o.method == "GET" && o.id != "downloadBackup" {
			wantFieldError(t, h.Do("GET", s.path+more+"zzz=1", nil), "query/zzz")
			wantFieldError(t, h.Do("GET", s.path+more+"Limit=5", nil), "query/Limit")
		}
		for _, p := range o.tree["parameters"].([]any) {
			p := p.(map[string]any)
			name := p["name"].(string)
			wrong := []string{"%00", "%ff", strings.Repeat("x", 5000)}
			switch {
			case p["in"] != "query":
				continue
			case name == "limit":
				wrong = []string{"0", "-1", "5000001", "x", "1.5", "1e3", "%00", "99999999999999999999", "0x10", "%20"}
				if o.id != "getOutput" {
					wrong = append(wrong, "501")
				}
			case name == "offset":
				wrong = []string{"-1", "x", "99999999999999999999"}
			case name == "cursor":
				wrong = append(wrong, "!!", "%20", "x%20y", "-1", "%2e%2e%2f", "a/b", "x", "5.x", "5", ".", "op_",
					"name.", "name.a%20b")
				if o.id == "listTasks" {
					wrong = append(wrong, "x."+reeve.DeriveID("op", "x"), "1e3."+reeve.DeriveID("op", "x"), reeve.DeriveID("op", "x"))
				}
			case name == "state":
				wrong = append(wrong, "x", "COMMITTED", "committed,failed")
			}
			for _, v := range wrong {
				path, rest, _ := strings.Cut(s.path, "?")
				others, _ := url.ParseQuery(rest)
				others.Del(name)
				var lines any
				if text, ok := s.body.(string); ok { // the body of a mail batch is checked before its query
					lines = text
				}
				wantFieldError(t, h.Do(o.method, path+"?"+name+"="+v+"&"+others.Encode(), lines), "query/"+name)
			}
		}
	}
	wantProblem(t, h.Do("GET", "/api/operations?agent=nobody", nil), 404, reeve.NotFound)
	checkUnchanged()
}

// sendRaw sends text to the server unchanged and returns the response.
func sendRaw(t *testing.T, h *reevetest.Host, text string) reevetest.Reply {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(h.Server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reevetest.Reply{Status: res.StatusCode, Header: res.Header, Body: b}
}

func TestBadInput_HostAndOrigin(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	env.cfg.Hosts, env.cfg.Origins = []string{"Reeve.Example"}, []string{"https://app.example"}
	h := env.start(t)
	u, _ := url.Parse(h.Server.URL)
	get := func(host string, headers ...string) reevetest.Reply {
		text := "GET /api/agents HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nAuthorization: Bearer " +
			h.Token + "\r\nX-Workspace-Id: default\r\n"
		for _, v := range headers {
			text += v + "\r\n"
		}
		return sendRaw(t, h, text+"\r\n")
	}
	for _, host := range []string{"evil.example", "evil.example:" + u.Port(), "127.0.0.1.evil.example",
		"localhost.evil.example", "reeve.example.evil", "169.254.169.254", "0.0.0.0", "[::2]", "notreeve.example"} {
		wantProblem(t, get(host), 403, reeve.Forbidden)
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:7410",
		"reeve.example", "Reeve.Example:443"} {
		if r := get(host); r.Status != 200 {
			t.Errorf("host %s: %d %s", host, r.Status, r.Body)
		}
	}
	for _, origin := range []string{"https://evil.example", "null", "http://localhost:1", "https://app.example.evil",
		"http://app.example", "file://", "x", "https://app.example:444"} {
		wantProblem(t, get(u.Host, "Origin: "+origin), 403, reeve.Forbidden)
	}
	for _, origin := range []string{h.Server.URL, "https://app.example"} {
		if r := get(u.Host, "Origin: "+origin); r.Status != 200 {
			t.Errorf("origin %s: %d %s", origin, r.Status, r.Body)
		}
	}
	wantProblem(t, sendRaw(t, h, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), 403,
		reeve.Forbidden)
}

func TestBadInput_Headers(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	before := takeSnapshot(t, h)
	request := func(headers string) string {
		return "POST /api/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + h.Token +
			"\r\nContent-Type: application/json\r\n" + headers +
			"Content-Length: 14\r\n\r\n" + `{"name":"bad"}`
	}
	// net/http refuses these requests with a short 4xx response of its own, before the handler runs.
	for name, headers := range map[string]string{
		"NUL in a value":    "X-Workspace-Id: de\x00fault\r\n",
		"a bare CR":         "X-Workspace-Id: default\rX-Evil: 1\r\n",
		"a space in a name": "X Workspace: default\r\n",
		"two lengths":       "X-Workspace-Id: default\r\nContent-Length: 3\r\n",
		"length and chunks": "X-Workspace-Id: default\r\nTransfer-Encoding: gzip\r\n",
		"two hosts":         "X-Workspace-Id: default\r\nHost: other\r\n",
		"more than a megabyte": "X-Workspace-Id: default\r\n" + strings.Repeat("X-Fill: "+strings.Repeat("y", 1000)+
			"\r\n", 3000),
	} {
		if r := sendRaw(t, h, request(headers)); r.Status < 400 || r.Status == 500 || r.Status == 503 ||
			r.Header.Get("X-Evil") != "" {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	// These requests reach the handler, which responds with a problem document.
	for _, workspace := range []string{"nowhere", "default,default", "DEFAULT", "\xff\xfe", strings.Repeat("d", 10_000),
		"' OR 1=1 --", "default;x"} {
		wantProblem(t, sendRaw(t, h, request("X-Workspace-Id: "+workspace+"\r\n")), 403, reeve.Forbidden)
	}
	wantFieldError(t, sendRaw(t, h, request("")), "header/X-Workspace-Id")
	wantProblem(t, sendRaw(t, h, request("X-Workspace-Id: nowhere\r\n"+strings.Repeat("X-Fill: y\r\n", 5000))), 403,
		reeve.Forbidden)
	for _, accept := range []string{"text/html", "application/xml", "image/*;q=0", "garbage",
		strings.Repeat("a/b,", 2000)} {
		if r := h.Do("GET", "/api/agents", nil, "Accept", accept); r.Status != 200 &&
			(r.Status < 400 || r.Status > 499) {
			t.Errorf("accept %.50s: %d %.300s", accept, r.Status, r.Body)
		}
	}
	wantUnchanged(t, before, takeSnapshot(t, h))
}

func TestBadInput_RateLimit(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	env.cfg.Rate, env.cfg.Burst = 0.001, 5
	h := env.start(t)
	wantLimited := func(do func() reevetest.Reply) {
		t.Helper()
		for range 5 {
			if r := do(); r.Status == 429 {
				t.Fatalf("limited too early: %s", r.Body)
			}
		}
		r := do()
		wantProblem(t, r, 429, reeve.RateLimited)
		if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 {
			t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
		}
	}
	wantLimited(func() reevetest.Reply { return h.Do("GET", "/api/agents", nil) })
	// Invalid tokens are limited too, so that tokens cannot be guessed.
	wantLimited(func() reevetest.Reply { return h.Do("GET", "/api/agents", nil, withToken("guess")...) })
	h.Want(200, nil, "GET", "/healthz", nil)
}

// A number out of range is refused with its path and the accepted range. The message has no Go type names.
func TestBadInput_NumbersOutOfRange(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	for _, number := range []string{"1e30", "1.5e300", "1e3", "-1e30"} {
		r := h.Do("PUT", "/api/budgets/workspace", `{"limit":{"calls":`+number+`}}`)
		wantFieldError(t, r, "/limit/calls")
		if p := decode[api.Problem](t, r); !strings.Contains(p.Detail, "/limit/calls cannot be ") ||
			!strings.Contains(p.Detail, api.IntegerRange) || strings.Contains(string(r.Body), "json:") ||
			strings.Contains(string(r.Body), "int64") {
			t.Errorf("%s: %s", number, r.Body)
		}
	}
	for _, number := range []string{"9223372036854775807", "99999999999999999999"} {
		p := wantProblem(t, h.Do("PUT", "/api/budgets/workspace", `{"limit":{"calls":`+number+`}}`), 400,
			reeve.Validation)
		if !strings.Contains(p.Detail, number) || !strings.Contains(p.Detail, api.IntegerRange) {
			t.Errorf("%s: %s", number, p.Detail)
		}
	}
	if list := decode[api.BudgetList](t, h.Want(200, nil, "GET", "/api/budgets", nil)); len(list.Budgets) != 0 {
		t.Errorf("something was written: %+v", list)
	}
	h.Want(200, nil, "PUT", "/api/budgets/workspace", `{"limit":{"calls":9007199254740991}}`)
}

// A score out of range is refused with its path and its range.
func TestBadInput_Scores(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	c := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "Home"}))
	task := decode[reeve.Task](t, h.Want(201, nil, "POST", "/api/journal/tasks",
		object{"category_id": c.ID, "title": "Row"}))
	rate := func(score string) reevetest.Reply {
		return h.Do("PUT", "/api/journal/ratings", `{"target_kind":"task","target_id":"`+task.ID+`","scores":{"a":`+
			score+`}}`)
	}
	for _, score := range []string{"1e20", "-1e20", "1e300", "101", "-1", "9007199254740991"} {
		r := rate(score)
		if wantFieldError(t, r, "/scores/a"); !strings.Contains(string(r.Body), `"0 to 100"`) {
			t.Errorf("%s: %s", score, r.Body)
		}
	}
	for _, score := range []string{"0.5", "-0.5", `"5"`, "null"} {
		if r := rate(score); r.Status != 400 {
			t.Errorf("%s: %d %s", score, r.Status, r.Body)
		}
	}
	if v := decode[reeve.Rating](t, rate("100")); v.Scores["a"] != 100 {
		t.Errorf("%+v", v)
	}
}

// An entry that is found by id or name must not have a name in the form of an id. Such a name could be mistaken for a
// deleted entry.
func TestBadInput_NamesInIDForm(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	gone, here := h.Agent("gone"), h.Agent("here")
	for _, id := range []string{gone.ID, "agt_" + strings.Repeat("0", 26), "prj_" + strings.Repeat("z", 26)} {
		wantFieldError(t, h.Do("POST", "/api/agents", object{"name": id}), "/name")
		wantFieldError(t, h.Do("PATCH", "/api/agents/here", object{"name": id}), "/name")
		wantFieldError(t, h.Do("POST", "/api/projects", object{"name": id, "path": t.TempDir()}), "/name")
		if id != gone.ID { // the id of an agent that exists would turn that agent into an automation
			wantFieldError(t, h.Do("POST", "/api/automations", object{"name": id}), "/name")
		}
	}
	h.Want(204, nil, "DELETE", "/api/agents/"+gone.ID, nil)
	wantFieldError(t, h.Do("POST", "/api/automations", object{"name": gone.ID}), "/name")
	wantProblem(t, h.Do("GET", "/api/agents/"+gone.ID, nil), 404, reeve.NotFound)
	// The name is one character too short to be an id.
	h.Want(200, nil, "PATCH", "/api/agents/here", object{"name": "agt_" + strings.Repeat("0", 25)})
	if got := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/"+here.ID, nil)); got.ID != here.ID {
		t.Errorf("got %+v", got)
	}
}
