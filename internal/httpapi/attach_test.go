package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

func TestI04_Attach(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	a := h.Agent("coach")
	const path = "/api/agents/coach/tools"
	v := decode[api.ToolView](t,
		h.Want(201, nil, "POST", path, object{"tool_id": "file_search", "config": object{"default_limit": 20}}))
	if v.ID != "file_search" || v.HandlerKey != "file_search" || v.ParametersSchema == "" ||
		string(v.Config) != `{"default_limit":20}` {
		t.Errorf("got %+v", v)
	}
	if p := wantProblem(t, h.Do("POST", path, object{"tool_id": "file_search"}), 409, reeve.AlreadyExists); !strings.Contains(p.Detail, "file_search") ||
		!strings.Contains(p.Hint, "attach it again") {
		t.Errorf("detail %q, hint %q", p.Detail, p.Hint)
	}
	r := h.Do("POST", path, object{"tool_id": "file_search", "config": object{"default_limit": 0}})
	wantFieldError(t, r, "/config/default_limit")
	if p := decode[api.Problem](t, r); !strings.HasPrefix(p.Detail,
		"the settings are not valid: /config/default_limit is ") {
		t.Errorf("detail %q", p.Detail)
	}
	if v := decode[api.ToolView](t, h.Want(201, nil, "POST", path, object{"tool_id": "file_read"})); string(v.Config) != `{}` {
		t.Errorf("config %s without a config in the request, want {}", v.Config)
	}
	if v := decode[api.ToolView](t, h.Want(201, nil, "POST", path, `{"tool_id":"file_list","config":null}`)); string(
		v.Config) != `{}` {
		t.Errorf("config %s for null, want {}", v.Config)
	}
	h.Want(201, nil, "POST", "/api/agents/"+a.ID+"/tools", `{"tool_id":"file_write","config":{}}`)

	before := takeSnapshot(t, h)
	for body, at := range map[string]string{
		`{}`:                        "",
		`{"tool_id":""}`:            "/tool_id",
		`{"tool_id":7}`:             "/tool_id",
		`{"tool_id":null}`:          "/tool_id",
		`{"tool_id":["file_edit"]}`: "/tool_id",
		`{"tool_id":"` + strings.Repeat("x", 200) + `"}`: "/tool_id",
		`{"tool_id":"file_edit","config":[1]}`:           "/config",
		`{"tool_id":"file_edit","config":"x"}`:           "/config",
		`{"tool_id":"file_edit","colour":1}`:             "/colour",
		`{"tool_id":"file_edit","Config":{}}`:            "/Config",
		`{"tool_id":"file_edit","tool_id":"file_edit"}`:  "",
		`{"tool_id":"file_edit"`:                         "",
		`not json`:                                       "",
		`[]`:                                             "",
		`null`:                                           "",
	} {
		wantFieldError(t, h.Do("POST", path, body), at)
	}
	wantProblem(t, h.Do("POST", path, nil), 400, reeve.Validation)
	wantProblem(t, h.Do("POST", path, object{"tool_id": "nothing"}), 404, reeve.NotFound)
	wantProblem(t, h.Do("POST", "/api/agents/nobody/tools", object{"tool_id": "file_edit"}), 404, reeve.NotFound)
	wantUnchanged(t, before, takeSnapshot(t, h))

	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	h.Want(201, nil, "POST", "/api/agents", object{"name": "other"}, "X-Workspace-Id", "beta")
	wantProblem(t, h.Do("POST", "/api/agents/other/tools", object{"tool_id": "file_edit"}), 404, reeve.NotFound)
	wantProblem(t, h.Do("POST", path, object{"tool_id": "file_edit"}, "X-Workspace-Id", "beta"), 404, reeve.NotFound)
	defineTool(t, h, object{"id": "betas"}, "X-Workspace-Id", "beta")
	wantProblem(t, h.Do("POST", path, object{"tool_id": "betas"}), 404, reeve.NotFound)
	if got := listAttached(t, h, "coach"); !slices.Equal(got, []string{"file_list", "file_read", "file_search",
		"file_write"}) {
		t.Errorf("the agent has %v", got)
	}
}

func TestI04_ConcurrentAttach(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		h.Agent("coach")
		for _, tool := range []string{"file_read", "file_list", "file_search"} {
			got := runConcurrently(16, func(int) reevetest.Reply {
				return h.Do("POST", "/api/agents/coach/tools", object{"tool_id": tool})
			})
			created := 0
			for _, r := range got {
				if r.Status == 201 {
					created++
				} else {
					wantProblem(t, r, 409, reeve.AlreadyExists)
				}
			}
			if created != 1 {
				t.Errorf("%s was attached %d times", tool, created)
			}
		}
		if got := listAttached(t, h, "coach"); len(got) != 3 {
			t.Errorf("the agent has %v", got)
		}
	})
}

// runConcurrently calls f n times in parallel and returns the results in order.
func runConcurrently[T any](n int, f func(int) T) []T {
	out := make([]T, n)
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { <-begin; out[i] = f(i) })
	}
	close(begin)
	wg.Wait()
	return out
}

func TestI07_ConfigReachesTheHandler(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	lines := make([]string, 60)
	for i := range lines {
		lines[i] = fmt.Sprintf("needle %d", i)
	}
	writeSharedFiles(t, h, "default", map[string]string{"notes/hay.txt": strings.Join(lines, "\n")})
	h.Agent("plain", "file_search")
	h.Agent("coach")
	h.Want(201, nil, "POST", "/api/agents/coach/tools",
		object{"tool_id": "file_search", "config": object{"default_limit": 20}})
	countMatches := func(agent string, args object) int {
		t.Helper()
		res := h.Call(agent, "file_search", args)
		var out struct{ Matches []any }
		if err := json.Unmarshal([]byte(res.Content), &out); err != nil {
			t.Fatalf("%+v: %v", res, err)
		}
		return len(out.Matches)
	}
	for _, c := range []struct {
		agent string
		args  object
		want  int
	}{
		{"coach", object{"query": "needle"}, 20},
		{"coach", object{"query": "needle", "limit": 5}, 5},
		{"coach", object{"query": "needle", "limit": 50}, 50},
		{"plain", object{"query": "needle"}, 10},
	} {
		if n := countMatches(c.agent, c.args); n != c.want {
			t.Errorf("%s %v: %d matches, want %d", c.agent, c.args, n, c.want)
		}
	}
	h.Agent("other")
	for _, bad := range []any{0, -1, 51, "x", 2.5, []int{5}} {
		wantFieldError(t, h.Do("POST", "/api/agents/coach/calls",
			object{"tool": "file_search", "args": object{"query": "needle", "limit": bad}}), "/limit")
		wantFieldError(t, h.Do("POST", "/api/agents/other/tools",
			object{"tool_id": "file_search", "config": object{"default_limit": bad}}), "/config/default_limit")
	}
	wantFieldError(t, h.Do("POST", "/api/agents/other/tools",
		object{"tool_id": "file_search", "config": object{"limit": 5}}), "/config/limit")
	if got := listAttached(t, h, "other"); !slices.Equal(got, defaultTools) {
		t.Errorf("a bad config was attached: %v", got)
	}
}

func TestI08_ToolsAvailableToAgent(t *testing.T) {
	t.Parallel()
	h := startServer(t, testTools()...)
	h.Agent("fresh")
	h.Agent("coach", "look")
	sendCall := func(agent, tool string, list []string) reevetest.Reply {
		body := object{"tool": tool, "args": object{}}
		if tool == "list_files" {
			body["args"] = object{"path": "/"}
		}
		if list != nil {
			body["tools"] = list
		}
		return h.Do("POST", "/api/agents/"+agent+"/calls", body)
	}
	wantAllowed := func(agent, tool string, list []string) {
		t.Helper()
		if r := sendCall(agent, tool, list); r.Status != 200 {
			t.Errorf("%s %s with %v: %d %s", agent, tool, list, r.Status, r.Body)
		}
	}
	wantNotFound := func(agent, tool string, list []string) {
		t.Helper()
		p := wantProblem(t, sendCall(agent, tool, list), 404, reeve.NotFound)
		if p.Detail != fmt.Sprintf("tool %q not found", tool) {
			t.Errorf("detail %q", p.Detail)
		}
	}
	if got := listAttached(t, h, "fresh"); !slices.Equal(got, defaultTools) {
		t.Errorf("the default set is %v", got)
	}
	wantAllowed("fresh", "list_files", nil)
	wantNotFound("fresh", "look", nil)
	wantNotFound("fresh", "nothing", nil)
	wantNotFound("fresh", "file_read", nil)

	if got := listAttached(t, h, "coach"); !slices.Equal(got, []string{"look"}) {
		t.Errorf("attached tools %v", got)
	}
	wantAllowed("coach", "look", nil)
	wantNotFound("coach", "list_files", nil) // an attachment replaces the default set
	wantNotFound("coach", "long_output", nil)

	wantAllowed("coach", "long_output", []string{"long_output"})
	wantAllowed("fresh", "look", []string{"long_output", "look"})
	wantNotFound("coach", "look", []string{"long_output"}) // an explicit list replaces the attachments
	wantNotFound("coach", "look", []string{})
	wantNotFound("fresh", "list_files", []string{"look"})
	wantNotFound("fresh", "nothing", []string{"nothing"})
}

// A member may attach tools with settings, except settings that allow network access or pass on the server's variables.
// Those need an owner.
func TestO04_ServerSettingsNeedAnOwner(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Agent("dev")
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: "ann", User: "ann", Role: reeve.Member})
	ann := []string{"Authorization", "Bearer " + made.Token}
	for _, config := range []object{{"network": true}, {"network": true, "allow": []string{"ls"}},
		{"env": []string{"HOME"}}} {
		r := h.Do("POST", "/api/agents/dev/tools", object{"tool_id": "shell_exec", "config": config}, ann...)
		var p api.Problem
		if r.Decode(t, &p); r.Status != 403 || p.Code != reeve.Forbidden || !strings.Contains(p.Hint, "owner") {
			t.Errorf("%v: %d %+v", config, r.Status, p)
		}
	}
	if got := listAttached(t, h, "dev"); !slices.Equal(got, defaultTools) {
		t.Errorf("something was attached: %v", got)
	}
	for _, config := range []object{{"network": false, "env": []string{}, "allow": []string{"ls"}}, {}} {
		h.Want(201, nil, "POST", "/api/agents/dev/tools", object{"tool_id": "shell_exec", "config": config}, ann...)
		h.Want(204, nil, "DELETE", "/api/agents/dev/tools/shell_exec", nil, ann...)
	}
	h.Want(201, nil, "POST", "/api/agents/dev/tools",
		object{"tool_id": "shell_exec", "config": object{"network": true, "env": []string{"HOME"}}})
}

// Settings accept 20.0 for 20, as arguments do. Every integer in the settings of a tool and in an agent's config is
// accepted in both forms and stored as an integer.
func TestG13_WholeNumbersInSettings(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	writeSharedFiles(t, h, "default", map[string]string{"hay.txt": strings.Repeat("needle\n", 60)})
	h.Agent("coach")
	tried := 0
	for _, tool := range listTools(t, h, "") {
		var schema struct {
			Properties map[string]struct {
				Type    any     `json:"type"`
				Minimum float64 `json:"minimum"`
			} `json:"properties"`
		}
		if len(tool.ConfigSchema) == 0 {
			continue
		}
		if err := json.Unmarshal(tool.ConfigSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for name, p := range schema.Properties {
			if p.Type != "integer" {
				continue
			}
			tried++
			n := int(max(p.Minimum, 20))
			v := decode[api.ToolView](t, h.Want(201, nil, "POST", "/api/agents/coach/tools",
				fmt.Sprintf(`{"tool_id":%q,"config":{%q: %d.0}}`, tool.ID, name, n)))
			if want := fmt.Sprintf(`{%q:%d}`, name, n); string(v.Config) != want {
				t.Errorf("%s has %s, not %s", tool.ID, v.Config, want)
			}
		}
	}
	if tried < 4 { // file_search, email_search, shell_exec, delegate and loop_in have integer settings
		t.Errorf("%d integer settings, want at least 4", tried)
	}
	var out struct{ Matches []any }
	if res := h.Call("coach", "file_search", object{"query": "needle"}); res.IsError ||
		json.Unmarshal([]byte(res.Content), &out) != nil || len(out.Matches) != 20 {
		t.Errorf("it found %d: %+v", len(out.Matches), res)
	}
	h.Want(200, nil, "PATCH", "/api/agents/coach",
		`{"config":{"max_model_requests":3.0,"rehearsal":{"steps":[],"output":"it ran"}}}`)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", object{})
	if run := waitForFirstRun(t, h, "coach"); run.State != reeve.RunCompleted || run.Output != "it ran" {
		t.Errorf("%+v", run)
	}
}
