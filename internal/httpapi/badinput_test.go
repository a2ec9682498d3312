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

// sweep returns a server with test data, its operations, and a check that nothing was written.
func sweep(t *testing.T) (*reevetest.Host, []operation, map[string]sample, func()) {
	t.Helper()
	h := start(t, tricks()...)
	x := furnish(t, h)
	before := picture(t, h)
	return h, sampled(document(t, h).operations()), samples(x), func() {
		t.Helper()
		unchanged(t, before, picture(t, h))
		h.Want(200, nil, "GET", "/readyz", nil)
	}
}

// bad checks that a response is a 4xx problem.
func bad(t *testing.T, what string, r reevetest.Reply, codes ...reeve.Code) {
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

// hasBody reports whether an operation takes a JSON document. A batch of mails is lines; TestBadInput_MailLines has
// those.
func hasBody(o operation) bool {
	body, _ := o.tree["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	return content["application/json"] != nil
}

func TestBadInput_Bodies(t *testing.T) {
	t.Parallel()
	h, operations, all, untouched := sweep(t)
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
			bad(t, o.id+" "+text, h.Do(o.method, s.path, text), reeve.Validation)
		}
		for name := range s.body.(object) {
			upper := bytes.Replace(good, []byte(`"`+name+`":`), []byte(`"`+strings.ToUpper(name)+`":`), 1)
			bad(t, o.id+" "+string(upper), h.Do(o.method, s.path, upper), reeve.Validation)
		}
		bad(t, o.id+" no body", h.Do(o.method, s.path, nil), reeve.Validation)
		for _, kind := range []string{"text/plain", "application/xml", "multipart/form-data; boundary=x",
			"application/x-www-form-urlencoded", "application/jsonx", "*/*"} {
			bad(t, o.id+" "+kind, h.Do(o.method, s.path, s.body, "Content-Type", kind), reeve.Validation)
		}
	}
	untouched()
}

func TestBadInput_Fields(t *testing.T) {
	t.Parallel()
	h, operations, all, untouched := sweep(t)
	for _, o := range operations {
		s := all[o.id]
		if !hasBody(o) {
			continue
		}
		for name, v := range s.body.(object) {
			if name == "args" {
				continue // the gate judges those, and records that it did
			}
			with := func(v any) object {
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
					// some of these may be blank, or are then not found
					wrong = slices.DeleteFunc(wrong, func(v any) bool { return v == "" || v == " " })
				}
				if name == "content" || name == "message" || name == "source" {
					// people may say a lot
					wrong = slices.DeleteFunc(wrong, func(v any) bool {
						s, ok := v.(string)
						return ok &&
							len(s) > 1000
					})
				}
			case bool:
				wrong = slices.DeleteFunc(wrong, func(v any) bool { return v == true })
			case object:
				wrong = append(wrong, "{}", []any{})
			}
			for _, w := range wrong {
				r := h.Do(o.method, s.path, with(w))
				what := fmt.Sprintf("%s %s = %v", o.id, name, w)
				bad(t, what, r, reeve.Validation)
				if p := decode[api.Problem](t, r); p.Code == reeve.Validation &&
					!slices.ContainsFunc(p.Errors,
						func(f reeve.Field) bool { return strings.HasPrefix(f.Path, "/"+name) }) {
					t.Errorf("%.200s: no error at /%s: %.300s", what, name, r.Body)
				}
			}
		}
	}
	untouched()
}

func TestBadInput_TooLarge(t *testing.T) {
	t.Parallel()
	h, operations, all, untouched := sweep(t)
	for _, o := range operations {
		size := 10 << 20
		if o.id == "createTurn" { // which may bring files
			size = 33 << 20
		}
		large := []byte(`{"zzz":"` + strings.Repeat("x", size) + `"}`)
		if hasBody(o) {
			refused(t, h.Do(o.method, all[o.id].path, large), 413, reeve.TooLarge)
			refused(t, h.Do(o.method, all[o.id].path, large, key, "k"), 413, reeve.TooLarge)
		}
	}
	untouched()
}

func TestBadInput_Paths(t *testing.T) {
	t.Parallel()
	h, operations, _, untouched := sweep(t)
	hole := regexp.MustCompile(`\{\w+\}`)
	good := samples(nowhere)
	for _, o := range operations {
		for _, id := range []string{"%00", "a%00b", "%ff", "%c3%28", "a%2Fb", "..%2F..%2Fetc", "%2e%2e", "%2e", "%20",
			"%0d%0aX-Evil:%201", "%F0%9F%A6%A4", "'%20OR%201=1%20--", "%25", "*", strings.Repeat("a", 10_000),
			strings.Repeat("%E2%82%AC", 2000)} {
			if !hole.MatchString(o.path) {
				continue
			}
			r := h.Do(o.method, hole.ReplaceAllLiteralString(o.path, id), good[o.id].body)
			bad(t, o.id+" "+id, r, reeve.Validation, reeve.NotFound)
			if r.Header.Get("X-Evil") != "" {
				t.Errorf("%s: a header was let in", o.id)
			}
		}
	}
	for _, p := range []string{"//api/tools", "/api//tools", "/api/./tools", "/api/x/../tools", "/api/tools/",
		"/api/tools/..", "/api", "/api/", "/API/tools", "/api/nothing", "/nothing", "/healthz/", "/docs/../api/tools"} {
		refused(t, h.Do("GET", p, nil), 404, reeve.NotFound)
	}
	untouched()
}

func TestBadInput_Methods(t *testing.T) {
	t.Parallel()
	h, operations, _, untouched := sweep(t)
	known := map[string][]string{}
	for _, o := range operations {
		known[o.path] = append(known[o.path], o.method)
	}
	for p, methods := range known {
		for _, m := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "get"} {
			path := strings.NewReplacer("{", "", "}", "").Replace(p)
			if !slices.ContainsFunc(operations, func(o operation) bool { return o.takes(m, path) }) {
				r := h.Do(m, path, nil)
				refused(t, r, 405, reeve.Unsupported)
				allowed := strings.Split(r.Header.Get("Allow"), ", ")
				if slices.ContainsFunc(methods, func(m string) bool { return !slices.Contains(allowed, m) }) {
					t.Errorf("%s %s: allowed are %v, and it is told %v", m, p, methods, allowed)
				}
			}
		}
	}
	untouched()
}

func TestBadInput_Queries(t *testing.T) {
	t.Parallel()
	h, operations, all, untouched := sweep(t)
	for _, o := range operations {
		s := all[o.id]
		more := "?"
		if strings.Contains(s.path, "?") {
			more = "&"
		}
		if o.method == "GET" && o.id != "downloadBackup" {
			refusedAt(t, h.Do("GET", s.path+more+"zzz=1", nil), "query/zzz")
			refusedAt(t, h.Do("GET", s.path+more+"Limit=5", nil), "query/Limit")
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
					wrong = append(wrong, "x."+reeve.DeriveID("op", "x"), "1e3."+reeve.DeriveID("op", "x"),
						reeve.DeriveID("op", "x"))
				}
			case name == "state":
				wrong = append(wrong, "x", "COMMITTED", "committed,failed")
			}
			for _, v := range wrong {
				path, rest, _ := strings.Cut(s.path, "?")
				others, _ := url.ParseQuery(rest)
				others.Del(name)
				var lines any
				if text, ok := s.body.(string); ok { // a batch of mails is read before its query is
					lines = text
				}
				refusedAt(t, h.Do(o.method, path+"?"+name+"="+v+"&"+others.Encode(), lines), "query/"+name)
			}
		}
	}
	refused(t, h.Do("GET", "/api/operations?agent=nobody", nil), 404, reeve.NotFound)
	untouched()
}

// raw sends bytes as they are and reads the answer.
func raw(t *testing.T, h *reevetest.Host, text string) reevetest.Reply {
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
	w := newWorld(t)
	w.cfg.Hosts, w.cfg.Origins = []string{"Reeve.Example"}, []string{"https://app.example"}
	h := w.start(t)
	u, _ := url.Parse(h.Server.URL)
	get := func(host string, headers ...string) reevetest.Reply {
		text := "GET /api/agents HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\nAuthorization: Bearer " +
			h.Token + "\r\nX-Workspace-Id: default\r\n"
		for _, v := range headers {
			text += v + "\r\n"
		}
		return raw(t, h, text+"\r\n")
	}
	for _, host := range []string{"evil.example", "evil.example:" + u.Port(), "127.0.0.1.evil.example",
		"localhost.evil.example", "reeve.example.evil", "169.254.169.254", "0.0.0.0", "[::2]", "notreeve.example"} {
		refused(t, get(host), 403, reeve.Forbidden)
	}
	for _, host := range []string{"localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]:7410",
		"reeve.example", "Reeve.Example:443"} {
		if r := get(host); r.Status != 200 {
			t.Errorf("host %s: %d %s", host, r.Status, r.Body)
		}
	}
	for _, origin := range []string{"https://evil.example", "null", "http://localhost:1", "https://app.example.evil",
		"http://app.example", "file://", "x", "https://app.example:444"} {
		refused(t, get(u.Host, "Origin: "+origin), 403, reeve.Forbidden)
	}
	for _, origin := range []string{h.Server.URL, "https://app.example"} {
		if r := get(u.Host, "Origin: "+origin); r.Status != 200 {
			t.Errorf("origin %s: %d %s", origin, r.Status, r.Body)
		}
	}
	refused(t, raw(t, h, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"), 403,
		reeve.Forbidden)
}

func TestBadInput_Headers(t *testing.T) {
	t.Parallel()
	h := start(t)
	before := picture(t, h)
	request := func(headers string) string {
		return "POST /api/agents HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + h.Token +
			"\r\nContent-Type: application/json\r\n" + headers +
			"Content-Length: 14\r\n\r\n" + `{"name":"bad"}`
	}
	// What net/http itself refuses gets its own short answer, before any of ours; it is a 4xx and nothing is done.
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
		if r := raw(t, h, request(headers)); r.Status < 400 || r.Status == 500 || r.Status == 503 ||
			r.Header.Get("X-Evil") != "" {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	// And what reaches us gets ours.
	for _, workspace := range []string{"nowhere", "default,default", "DEFAULT", "\xff\xfe", strings.Repeat("d", 10_000),
		"' OR 1=1 --", "default;x"} {
		refused(t, raw(t, h, request("X-Workspace-Id: "+workspace+"\r\n")), 403, reeve.Forbidden)
	}
	refusedAt(t, raw(t, h, request("")), "header/X-Workspace-Id")
	refused(t, raw(t, h, request("X-Workspace-Id: nowhere\r\n"+strings.Repeat("X-Fill: y\r\n", 5000))), 403,
		reeve.Forbidden)
	for _, accept := range []string{"text/html", "application/xml", "image/*;q=0", "garbage",
		strings.Repeat("a/b,", 2000)} {
		if r := h.Do("GET", "/api/agents", nil, "Accept", accept); r.Status != 200 &&
			(r.Status < 400 || r.Status > 499) {
			t.Errorf("accept %.50s: %d %.300s", accept, r.Status, r.Body)
		}
	}
	unchanged(t, before, picture(t, h))
}

func TestBadInput_RateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Rate, w.cfg.Burst = 0.001, 5
	h := w.start(t)
	limited := func(do func() reevetest.Reply) {
		t.Helper()
		for range 5 {
			if r := do(); r.Status == 429 {
				t.Fatalf("too early: %s", r.Body)
			}
		}
		r := do()
		refused(t, r, 429, reeve.RateLimited)
		if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 {
			t.Errorf("Retry-After %q", r.Header.Get("Retry-After"))
		}
	}
	limited(func() reevetest.Reply { return h.Do("GET", "/api/agents", nil) })
	// so that tokens cannot be guessed
	limited(func() reevetest.Reply { return h.Do("GET", "/api/agents", nil, as("guess")...) })
	h.Want(200, nil, "GET", "/healthz", nil)
}

// A number out of range is refused with its path and the accepted range. The message has no Go type names.
func TestBadInput_NumbersOutOfRange(t *testing.T) {
	t.Parallel()
	h := start(t)
	for _, number := range []string{"1e30", "1.5e300", "1e3", "-1e30"} {
		r := h.Do("PUT", "/api/budgets/workspace", `{"limit":{"calls":`+number+`}}`)
		refusedAt(t, r, "/limit/calls")
		if p := decode[api.Problem](t, r); !strings.Contains(p.Detail, "/limit/calls cannot be ") ||
			!strings.Contains(p.Detail, api.IntegerRange) || strings.Contains(string(r.Body), "json:") ||
			strings.Contains(string(r.Body), "int64") {
			t.Errorf("%s: %s", number, r.Body)
		}
	}
	for _, number := range []string{"9223372036854775807", "99999999999999999999"} {
		p := refused(t, h.Do("PUT", "/api/budgets/workspace", `{"limit":{"calls":`+number+`}}`), 400, reeve.Validation)
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
	h := start(t)
	c := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "Home"}))
	task := decode[reeve.Task](t, h.Want(201, nil, "POST", "/api/journal/tasks",
		object{"category_id": c.ID, "title": "Row"}))
	rate := func(score string) reevetest.Reply {
		return h.Do("PUT", "/api/journal/ratings", `{"target_kind":"task","target_id":"`+task.ID+`","scores":{"a":`+
			score+`}}`)
	}
	for _, score := range []string{"1e20", "-1e20", "1e300", "101", "-1", "9007199254740991"} {
		r := rate(score)
		if refusedAt(t, r, "/scores/a"); !strings.Contains(string(r.Body), `"0 to 100"`) {
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

// Entries that are found by id or name must not have a name in the form of an id. Such a name could stand for a deleted
// entry.
func TestBadInput_NamesInIDForm(t *testing.T) {
	t.Parallel()
	h := start(t)
	gone, here := h.Agent("gone"), h.Agent("here")
	for _, id := range []string{gone.ID, "agt_" + strings.Repeat("0", 26), "prj_" + strings.Repeat("z", 26)} {
		refusedAt(t, h.Do("POST", "/api/agents", object{"name": id}), "/name")
		refusedAt(t, h.Do("PATCH", "/api/agents/here", object{"name": id}), "/name")
		refusedAt(t, h.Do("POST", "/api/projects", object{"name": id, "path": t.TempDir()}), "/name")
		if id != gone.ID { // which would make an automation of that agent
			refusedAt(t, h.Do("POST", "/api/automations", object{"name": id}), "/name")
		}
	}
	h.Want(204, nil, "DELETE", "/api/agents/"+gone.ID, nil)
	refusedAt(t, h.Do("POST", "/api/automations", object{"name": gone.ID}), "/name")
	refused(t, h.Do("GET", "/api/agents/"+gone.ID, nil), 404, reeve.NotFound)
	// looks like one, and is none
	h.Want(200, nil, "PATCH", "/api/agents/here", object{"name": "agt_" + strings.Repeat("0", 25)})
	if got := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/"+here.ID, nil)); got.ID != here.ID {
		t.Errorf("got %+v", got)
	}
}
