package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Defining a tool whose schema refers to another document fails, and the error names the reference.
func TestI10_ExternalSchemaReferencesAreRefused(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	for name, parameters := range map[string]string{
		"relative":  `{"type":"object","properties":{"city":{"$ref":"city.json"}}}`,
		"absolute":  `{"type":"object","properties":{"city":{"$ref":"https://example.com/city.json"}}}`,
		"urn":       `{"type":"object","properties":{"city":{"$dynamicRef":"urn:city"}}}`,
		"rebased":   `{"type":"object","properties":{"city":{"$id":"city.json","$ref":"#/$defs/a","$defs":{"a":{}}}}}`,
		"named so":  `{"$id":"https://example.com/a.json","type":"object","properties":{"city":{"$ref":"a.json"}}}`,
		"elsewhere": `{"type":"object","properties":{"city":{"$ref":"#/x/y"}},"x":{"y":{"$ref":"city.json"}}}`,
	} {
		spec := kit.Object{"id": "weather", "description": "The weather.", "effect": "read", "tier": "read_only",
			"parameters": json.RawMessage(parameters),
			"spec":       kit.Object{"method": "GET", "url": "https://example.com/weather"}}
		r := h.Do("POST", "/api/tools", spec)
		if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "leads outside the schema") ||
			!strings.Contains(string(r.Body), "/parameters") {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		built := kit.Tool("weather", reeve.Read, nil)
		built.Parameters = json.RawMessage(parameters)
		built.Handler = func(context.Context, *reeve.Invocation) (any, error) { return "", nil }
		server, err := host.New(t.Context(), host.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		if err := server.AddTool(built); err == nil || !strings.Contains(err.Error(), "leads outside the schema") {
			t.Errorf("%s: %v", name, err)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Integers beyond 2^53 are exact in schemas and arguments.
func TestI10_WideIntegersAreExact(t *testing.T) {
	t.Parallel()
	var got string
	wide := kit.Tool("wide", reeve.Read, nil)
	wide.Parameters = json.RawMessage(`{"type":"object","properties":{"n":
		{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}}}`)
	wide.Handler = func(_ context.Context, inv *reeve.Invocation) (any, error) {
		got = string(inv.Args)
		return json.RawMessage(inv.Args), nil
	}
	h := reevetest.Start(t, wide)
	agent := h.Agent("a", "wide").ID
	for _, n := range []string{"9007199254740993", "9223372036854775807", "-9223372036854775808"} {
		if res := h.Call(agent, "wide", json.RawMessage(`{"n":`+n+`}`)); res.IsError || got != `{"n":`+n+`}` ||
			res.Content != got {
			t.Errorf("%s: got %s, %+v", n, got, res)
		}
	}
	r := h.Do("POST", "/api/agents/"+agent+"/calls",
		kit.Object{"tool": "wide", "args": json.RawMessage(`{"n":9223372036854775808}`)})
	if r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "at most 9223372036854775807") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	spec := kit.Object{"id": "far", "description": "Far.", "effect": "read", "tier": "read_only",
		"parameters": wide.Parameters,
		"spec":       kit.Object{"method": "GET", "url": "https://example.com/weather?n={n}"}}
	if r := h.Want(http.StatusCreated, nil, "POST", "/api/tools", spec); !strings.Contains(string(r.Body),
		`"maximum":9223372036854775807`) {
		t.Errorf("%s", r.Body)
	}
}

// Answers do not distinguish a missing tool, a tool of another agent and a tool of another workspace.
func TestG03_NotFoundRevealsNothing(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "read_file")
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "other"})
	body := map[string]any{"id": "theirs", "description": "d", "effect": "read",
		"parameters": json.RawMessage(kit.AnyObject),
		"spec":       map[string]any{"method": "GET", "url": "https://example.com/"}}
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body, "X-Workspace-Id", "other")
	body["id"] = "broken"
	h.Want(http.StatusCreated, nil, "POST", "/api/tools", body)
	answer := func(id string, c kit.Call) string {
		r := h.Do("POST", "/api/agents/"+a.ID+"/calls", c.With("tool", id))
		var p api.Problem
		r.Decode(t, &p)
		if r.Status != http.StatusNotFound || p.Code != reeve.NotFound {
			t.Errorf("%s: %d %s", id, r.Status, r.Body)
		}
		p.RequestID, p.CallID = "", ""
		b, _ := json.Marshal(p)
		return strings.ReplaceAll(string(b), id, "NAME")
	}
	for _, c := range []kit.Call{{}, {"args": map[string]any{"path": "/x"}}, {"args": "not json"},
		{"preview_only": true},
		{"tools": []string{"read_file"}}, {"idempotency_key": "k"}} {
		want := answer("missing", c)
		for _, id := range []string{"theirs", "broken", "file_write", "write_file", "MISSING", "read_file ",
			"' OR 1=1 --"} {
			if got := answer(id, c); got != want {
				t.Errorf("%s answers %s, a missing one %s", id, got, want)
			}
		}
	}
}

// schemaCases are the argument errors that G04 lists, each with the paths that the error must name.
var schemaCases = []struct {
	args  string
	paths []string
}{
	{`{}`, []string{"/name"}},
	{`{"name":1.5,"n":"x"}`, []string{"/name", "/n"}},
	{`{"name":"ab","extra":1,"more":2}`, []string{"/extra", "/more"}},
	{`{"name":"ab","kind":"z"}`, []string{"/kind"}},
	{`{"name":"ab","n":0}`, []string{"/n"}},
	{`{"name":"ab","n":11}`, []string{"/n"}},
	{`{"name":"AB"}`, []string{"/name"}},
	{`{"name":"ab","o":{"deep":{"id":"x"}}}`, []string{"/o/deep/id"}},
	{`{"name":"ab","list":[1,"x",3,null]}`, []string{"/list/1", "/list/3"}},
	{`{"name":"ab","list":[]}`, []string{"/list"}},
	{`{"n":"x","kind":"z","o":{"deep":7},"list":[true]}`, []string{"/name", "/n", "/kind", "/o/deep", "/list/0"}},
	{`{"name":"ab","a/b~c":true}`, []string{"/a~1b~0c"}},
}

const strictShape = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string","pattern":"^[a-z]+$"},"n":{"type":"integer","minimum":1,"maximum":10},"kind":{"enum":["a","b"]},
	"o":{"type":"object","properties":{"deep":{"type":"object","properties":{"id":{"type":"integer"}}}}},
	"list":{"type":"array","minItems":1,"items":{"type":"integer"}}}}`

func TestG04_EveryWrongArgumentIsNamed(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	strict := kit.Tool("strict", reeve.Local, ran.Handle)
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	for _, c := range schemaCases {
		_, p, status := kit.TryCall(h, a.ID, kit.Call{"tool": "strict", "args": json.RawMessage(c.args)})
		if status != http.StatusBadRequest || p.Code != reeve.Validation {
			t.Errorf("%s: %d %+v", c.args, status, p)
			continue
		}
		got := map[string]bool{}
		for _, f := range p.Errors {
			got[f.Path] = true
			if f.Message == "" || f.Expected == "" {
				t.Errorf("%s: %+v does not say what was expected", c.args, f)
			}
		}
		for _, path := range c.paths {
			if !got[path] {
				t.Errorf("%s: %+v does not name %s", c.args, p.Errors, path)
			}
			if !strings.Contains(p.Detail, path) {
				t.Errorf("%s: a model that reads %q does not see %s", c.args, p.Detail, path)
			}
		}
		if len(got) != len(c.paths) {
			t.Errorf("%s: %+v, want %v", c.args, p.Errors, c.paths)
		}
		info := kit.ResultInfo(t, kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[p.CallID][1])
		if len(info.Fields) != len(p.Errors) {
			t.Errorf("the record keeps %+v of %+v", info.Fields, p.Errors)
		}
	}
	if ran.Count() != 0 {
		t.Errorf("the handler ran %d times", ran.Count())
	}
	if res := h.Call(a.ID, "strict", map[string]any{"name": "ab", "n": 1}); res.IsError { // corrected on the next step
		t.Errorf("%+v", res)
	}
}

// A key whose call was refused can be used again, because nothing was done with it.
func TestG04_ARefusedCallDoesNotUseUpItsKey(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	strict := kit.Tool("strict", reeve.Local, ran.Handle)
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	if _, _, status := kit.TryCall(h, a.ID, kit.Call{"tool": "strict"}, "Idempotency-Key", "k"); status != http.StatusBadRequest {
		t.Fatal(status)
	}
	if res := h.Call(a.ID, "strict", map[string]any{"name": "ab"}, "Idempotency-Key", "k"); res.IsError ||
		res.Replayed || ran.Count() != 1 {
		t.Errorf("%+v", res)
	}
}

func TestG05_BrokenArgumentsOfModels(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	strict := kit.Tool("strict", reeve.Read, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		got.Store(string(inv.Args))
		return "ok", nil
	})
	strict.Parameters = json.RawMessage(strictShape)
	h := reevetest.Start(t, strict)
	a := h.Agent("a", "strict")
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		args string
		want string // canonical arguments, or what the error says after !
	}{
		{`{"name":"ab"}`, `{"name":"ab"}`},
		{`{"name":"ab","n":"3"}`, `{"n":3,"name":"ab"}`},
		{`{"name":"ab","n":" 3 "}`, `{"n":3,"name":"ab"}`},
		{`{"name":"ab","n":null}`, `{"name":"ab"}`},
		{`{"name":"ab","o":{"deep":{"id":null}}}`, `{"name":"ab","o":{"deep":{}}}`},
		{`{"name":"ab","o":{"deep":"{\"id\":\"4\"}"}}`, `{"name":"ab","o":{"deep":{"id":4}}}`},
		{`{"name":"ab","list":"[1,\"2\"]"}`, `{"list":[1,2],"name":"ab"}`},
		{`{"name":"ab","list":["1"]}`, `{"list":[1],"name":"ab"}`},
		{`"{\"name\":\"ab\"}"`, `{"name":"ab"}`},
		{`{"name":null}`, `!/name`},
		{`{"name":"ab","n":"3.5"}`, `!/n`},
		{`{"name":"ab","n":"three"}`, `!/n`},
		{`{"name":"ab","n":""}`, `!/n`},
		{`{"name":"ab"`, `!cut off`},
		{`{"name":"ab","list":[1,`, `!cut off`},
		{`{"name":"ab"}{"name":"cd"}`, `!2 JSON values`},
		{"{\"name\":\"ab\"}\n{\"name\":\"cd\"}\n", `!2 JSON values`},
		{`{"name":"ab","name":"cd"}`, `!twice`},
		{`{"name":"ab","n":1e999}`, `!out of range`},
		{`{"name":"ab","n":99999999999999999999}`, `!the arguments are not valid`},
		{`{"name":"\ud83d"}`, `!surrogate`},
		{"{\"name\":\"\xc3\x28\"}", `!UTF-8`},
		{"{\"name\":\"\x00\"}", `!not valid JSON`},
		{`{"name":"\u0000"}`, `!/name`},
		{`{"name":"` + big + `"}`, `{"name":"` + big + `"}`},
		{strings.Repeat(`{"o":`, 500) + `1` + strings.Repeat(`}`, 500), `!nesting`},
		{strings.Repeat(`[`, 1_000_000), `!nesting`},
		{`<tool>strict</tool>`, `!not valid JSON`},
		{"```json\n{\"name\":\"ab\"}\n```", `!not valid JSON`},
		{`{'name':'ab'}`, `!not valid JSON`},
		{`true`, `!an object`},
	} {
		for _, way := range []string{"go", "rest"} {
			var res reeve.Result
			var err error
			if way == "go" {
				res, err = h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "strict",
					Args: json.RawMessage(c.args)})
			} else if strings.ToValidUTF8(c.args, "") == c.args { // text that a model sent, in a request of its own
				r := h.Do("POST", "/api/agents/"+a.ID+"/calls", kit.Call{"tool": "strict", "args": c.args})
				if r.Status == http.StatusOK {
					r.Decode(t, &res)
				} else {
					var p api.Problem
					r.Decode(t, &p)
					err = &reeve.Error{Code: p.Code, Message: p.Detail}
					res.CallID = p.CallID
				}
			} else {
				continue
			}
			if res.CallID == "" {
				t.Errorf("%s %.60q: no record: %v", way, c.args, err)
			}
			if want, wrong := strings.CutPrefix(c.want, "!"); wrong {
				if reeve.CodeOf(err) != reeve.Validation || !strings.Contains(reeve.AsError(err).Message, want) {
					t.Errorf("%s %.60q: %.300v, want %s", way, c.args, err, want)
				}
				continue
			}
			if err != nil || got.Load() != c.want {
				t.Errorf("%s %.60q: %.100v, %v, want %.100s", way, c.args, got.Load(), err, c.want)
			}
		}
	}
}

// A model that corrects itself after an error finds in the thread what it sent and what was wrong, cut to a limit.
func TestG05_TheRecordOfBrokenArgumentsIsBounded(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "write_file")
	huge := `{"` + strings.Repeat("k", 1<<20) + `":1}`
	res, err := h.Host.Call(t.Context(), reeve.Call{Workspace: "default", Agent: a.ID, Tool: "write_file",
		Args: json.RawMessage(huge)})
	if reeve.CodeOf(err) != reeve.Validation {
		t.Fatal(err)
	}
	p := kit.PairCalls(h, kit.ListThread(h, a.ID, ""))[res.CallID]
	for i, m := range p {
		if n := len(m.Content) + len(m.Metadata); n > 64<<10 {
			t.Errorf("message %d has %d bytes", i, n)
		}
	}
	if b, _ := json.Marshal(res); len(b) > 64<<10 {
		t.Errorf("the answer has %d bytes", len(b))
	}
}

// Settings of the operator appear in no schema, description, error or message.
func TestG06_OperatorSettingsAreNotShown(t *testing.T) {
	t.Parallel()
	const sealed, header, key = "topsecret-value-1", "quiet-header-value",
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	w := kit.NewWitness(t)
	w.Before = func(n int, out http.ResponseWriter, r *http.Request) bool { // a server that returns all it received
		out.WriteHeader([]int{200, 400, 500}[n%3])
		fmt.Fprintf(out, "you sent %s and %s", r.Header.Get("X-Key"), r.URL.Query().Get("k"))
		return true
	}
	cfg := kit.FastConfig(t)
	cfg.SecretKey, cfg.OutputCap = key, 4321
	h := reevetest.StartWith(t, cfg)
	h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/KEY", map[string]any{"value": sealed})
	kit.DefineHTTPTool(h, "post", reeve.Unsafe, map[string]any{"method": "POST", "url": w.URL + "/hook?k=${secret:KEY}",
		"headers": map[string]any{"X-Key": "${secret:KEY}", "X-Other": header}},
		map[string]any{"retry": map[string]any{"attempts": 2, "delay_ms": 1, "max_ms": 1}})
	kit.DefineHTTPTool(h, "unreachable", reeve.Unsafe, map[string]any{"method": "POST", "url": kit.ClosedPort + "/hook",
		"headers": map[string]any{"X-Key": "${secret:KEY}"}}, nil)
	a := h.Agent("a", "post", "unreachable")
	h.Want(http.StatusOK, nil, "PUT", "/api/budgets/workspace",
		map[string]any{"limit": map[string]any{"calls": 987654}})
	var said []string
	for range 3 {
		said = append(said, string(h.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "post"}).Body))
	}
	said = append(said, string(h.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "unreachable"}).Body),
		string(h.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "post", "args": 5}).Body),
		string(h.Do("GET", "/api/agents/a/messages", nil).Body),
		string(h.Do("GET", "/api/operations", nil).Body),
		string(h.Do("GET", "/api/inbox", nil).Body))
	for _, m := range kit.ListThread(h, a.ID, "") {
		said = append(said, string(h.Do("GET", "/api/calls/"+m.ID+"/explanation", nil).Body))
	}
	for _, text := range said {
		for _, v := range []string{sealed, header, key, h.Token, w.URL, w.Listener.Addr().String(), "987654", "4321",
			h.Dir()} {
			if strings.Contains(text, v) {
				t.Errorf("%q is in %s", v, text)
			}
		}
	}
	var tools api.ToolList
	h.Want(http.StatusOK, &tools, "GET", "/api/tools", nil)
	for _, v := range tools.Tools { // what a model is given: the spec is for those who define tools
		given := v.Description + string(v.Parameters) + v.ParametersSchema
		for _, value := range []string{sealed, header, key, h.Token, w.URL, h.Dir()} {
			if strings.Contains(given, value) || strings.Contains(string(v.Spec), sealed) {
				t.Errorf("%q is in what a model sees of %s", value, v.ID)
			}
		}
	}
}

// A tool that declares no effect class is unsafe, needs approval, and is never sent twice.
func TestG07_NoEffectMeansUnsafe(t *testing.T) {
	t.Parallel()
	var ran kit.Counter
	vague := reeve.Tool{ID: "vague", Description: "Does something.", Parameters: json.RawMessage(kit.AnyObject),
		Handler: ran.Handle}
	h := reevetest.Start(t, vague)
	kit.DefineHTTPTool(h, "vague_http", "", map[string]any{"method": "POST", "url": "https://example.com/"},
		map[string]any{"tier": nil, "effect": nil})
	for _, id := range []string{"vague", "vague_http"} {
		var v api.ToolView
		h.Want(http.StatusOK, &v, "GET", "/api/tools/"+id, nil)
		if v.Effect != reeve.Unsafe || v.Tier != reeve.Privileged {
			t.Errorf("%s has effect %q and tier %q", id, v.Effect, v.Tier)
		}
	}
	a := h.Agent("a", "vague")
	if res := h.Call(a.ID, "vague", nil); res.State != reeve.Parked || ran.Count() != 0 {
		t.Errorf("%+v after %d runs", res, ran.Count())
	}
	if err := h.AddTool(reeve.Tool{ID: "wrong", Description: "d", Effect: "harmless",
		Parameters: json.RawMessage(kit.AnyObject), Handler: ran.Handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("an effect class of one's own: %v", err)
	}
	if err := h.AddTool(reeve.Tool{ID: "sly", Description: "d", Effect: reeve.Keyed, Tier: reeve.ReadOnly,
		Parameters: json.RawMessage(kit.AnyObject), Handler: ran.Handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a mutating tool that calls itself read_only: %v", err)
	}
	if err := h.AddTool(reeve.Tool{ID: "blind", Description: "d", Effect: reeve.Verifiable,
		Parameters: json.RawMessage(kit.AnyObject), Handler: ran.Handle}); reeve.CodeOf(err) != reeve.Validation {
		t.Errorf("a verifiable tool that cannot look: %v", err)
	}
}
