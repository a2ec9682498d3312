package tools_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

const regionSchema = `{"type":"object","additionalProperties":false,"required":["region"],"properties":{
	"region":{"type":"string"},"limit":{"type":"integer"},"token":{"type":"string","writeOnly":true}}}`

// An agent's settings reach the URL, the query, the headers and the body of an HTTP tool. Settings that are marked are
// never shown.
func TestM17_SettingsReachHTTPTools(t *testing.T) {
	t.Parallel()
	const token = "shibboleth-0123456789"
	s := newWebServer(t, map[string]http.HandlerFunc{"/eu west/items": func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode([]string{r.URL.RawQuery, r.Header.Get("X-Region"), string(b),
			r.Header.Get("Authorization")})
	}})
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.HTTPAllow = []string{"127.0.0.1"}
		h := reevetest.StartWith(t, cfg)
		spec := kit.Object{"method": "POST", "read": true,
			"url":     s.URL + "/{{config.region}}/items?top={{config.limit}}&q={name}",
			"headers": kit.Object{"X-Region": "r-{{config.region}}", "Authorization": "Bearer {{config.token}}"},
			"query":   kit.Object{"max": "config.limit"},
			"body":    kit.Object{"name": "name", "/where/region": "config.region"}}
		tool := kit.Object{"id": "items", "kind": "http", "description": "Lists.", "effect": "read",
			"parameters":    json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
			"config_schema": json.RawMessage(regionSchema), "spec": spec}
		h.Want(201, nil, "POST", "/api/tools", tool)
		a := h.Agent("clerk")
		path := "/api/agents/" + a.ID + "/tools"
		for _, bad := range []any{nil, kit.Object{}, kit.Object{"region": 1}, kit.Object{"region": "x", "more": 1}} {
			h.Want(400, nil, "POST", path, kit.Object{"tool_id": "items", "config": bad})
		}
		shown := h.Want(201, nil, "POST", path, kit.Object{"tool_id": "items", "config": kit.Object{"region": "eu west",
			"limit": 7, "token": token}})
		res := h.Call(a.ID, "items", kit.Object{"name": "n&m"})
		var got []string
		if err := json.Unmarshal([]byte(res.Content), &got); err != nil || len(got) != 4 ||
			got[0] != "top=7&q=n%26m&max=7" || got[1] != "r-eu west" ||
			got[2] != `{"name":"n&m","where":{"region":"eu west"}}` || got[3] != "Bearer [REDACTED]" {
			t.Errorf("%v %s", err, res.Content)
		}
		list := h.Do("GET", path, nil)
		if all := string(shown.Body) + string(list.Body); strings.Contains(all, token) ||
			!strings.Contains(all, "eu west") {
			t.Error(all)
		}
		for _, url := range []string{s.URL + "/{{config.absent}}/x", s.URL + "/{{config.region/x",
			s.URL + "/x?key={{region}}"} {
			tool["id"], tool["spec"] = "bad", kit.Object{"method": "GET", "url": url}
			if r := h.Do("POST", "/api/tools", tool); r.Status != 400 {
				t.Errorf("%s: %d %s", url, r.Status, r.Body)
			}
		}
		for id, extra := range map[string]kit.Object{"plain": {}} {
			tool["id"] = id
			delete(tool, "config_schema")
			tool["spec"] = kit.Object{"method": "GET", "url": s.URL + "/x?q={name}"}
			h.Want(201, nil, "POST", "/api/tools", tool)
			h.Want(400, nil, "POST", path, kit.Object{"tool_id": id, "config": kit.Object{"region": "x"}})
			h.Want(201, nil, "POST", path, kit.Object{"tool_id": id, "config": extra})
		}
	})
}

// A script tool has the agent's settings in the global config.
func TestM17_SettingsReachScriptTools(t *testing.T) {
	t.Parallel()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	tool := kit.Object{"id": "greet", "kind": "script", "description": "Greets.", "effect": "read",
		"parameters":    json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`),
		"config_schema": json.RawMessage(`{"type":"object","properties":{"word":{"type":"string"}}}`),
		"spec":          kit.Object{"source": "(config.word ?? 'Hello') + ' ' + input.name"}}
	h.Want(201, nil, "POST", "/api/tools", tool)
	for name, c := range map[string]struct {
		config any
		want   string
	}{"plain": {nil, "Hello Ada"}, "own": {kit.Object{"word": "Se\"rvus\u2028`"}, "Se\"rvus\u2028` Ada"}} {
		a := h.Agent(name)
		h.Want(201, nil, "POST", "/api/agents/"+a.ID+"/tools", kit.Object{"tool_id": "greet", "config": c.config})
		kit.Equal(t, kit.DecodeResult[string](t, h.Call(a.ID, "greet", kit.Object{"name": "Ada"})), c.want,
			"greeting of "+name)
	}
	tool["id"], tool["spec"] = "fails", kit.Object{"source": "const config = globalThis.config;\nthrow new Error('x')"}
	h.Want(201, nil, "POST", "/api/tools", tool)
	a := h.Agent("failing", "fails")
	if code, text := callCode(t, h, a.ID, "fails", kit.Object{}); code != reeve.ToolFailed || !strings.Contains(text,
		":2") {
		t.Error(code, text)
	}
}
