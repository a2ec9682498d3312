package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/canonjson"
	"reeve/reevetest"
)

func listTools(t *testing.T, h *reevetest.Host, query string, headers ...string) []api.ToolView {
	t.Helper()
	var list api.ToolList
	h.Want(200, &list, "GET", "/api/tools"+query, nil, headers...)
	return list.Tools
}

func toolIDs(list []api.ToolView) []string {
	var out []string
	for _, v := range list {
		out = append(out, v.ID)
	}
	return out
}

func TestI01_FreshDatabaseHasBuiltInTools(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		list := listTools(t, h, "")
		for _, id := range []string{"file_read", "file_search", "file_list", "file_write", "file_edit", "file_delete",
			"vault_copyto", "read_file", "write_file", "list_files", "output_read"} {
			if !slices.Contains(toolIDs(list), id) {
				t.Errorf("%s is missing", id)
			}
		}
		for _, v := range list {
			if v.Category == "" || v.HandlerKey == "" || v.CreatedAt.IsZero() || v.Broken != "" || v.Version != 1 {
				t.Errorf("%s: category %q, handler %q, created %s, broken %q, version %d", v.ID, v.Category,
					v.HandlerKey, v.CreatedAt, v.Broken, v.Version)
			}
			text, err := canonjson.Canonical([]byte(v.ParametersSchema))
			if tree, _ := canonjson.Canonical(v.Parameters); err != nil || string(text) != string(tree) {
				t.Errorf("%s: parameters_schema differs from parameters: %v", v.ID, err)
			}
			checkSchemaCompiles(t, v.ID, v.Parameters)
			if v.ConfigSchema != nil {
				checkSchemaCompiles(t, v.ID, v.ConfigSchema)
			}
		}
		before := takeSnapshot(t, h)
		h.Stop()
		h = env.start(t)
		wantUnchanged(t, before, takeSnapshot(t, h))
	})
}

func checkSchemaCompiles(t *testing.T, id string, schema json.RawMessage) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		t.Fatal(id, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:///s.json", v); err != nil {
		t.Fatal(id, err)
	}
	if _, err := c.Compile("mem:///s.json"); err != nil {
		t.Error(id, err)
	}
}

func TestI02_ListIsOrderedAndFiltered(t *testing.T) {
	t.Parallel()
	zebra, apple := newTool("a_zebra", reeve.Read, "", alwaysReturn("", nil)),
		newTool("z_apple", reeve.Read, "", alwaysReturn("", nil))
	zebra.Name, zebra.Category, apple.Name, apple.Category = "Zebra", "animal", "Apple", "animal"
	h := startServer(t, zebra, apple)
	list := listTools(t, h, "")
	if !slices.IsSortedFunc(list, func(a, b api.ToolView) int {
		return strings.Compare(a.Category+"\x00"+a.Name, b.Category+"\x00"+b.Name)
	}) {
		t.Errorf("not ordered by category then name: %v", toolIDs(list))
	}
	if got := toolIDs(listTools(t, h, "?category=animal")); !slices.Equal(got, []string{"z_apple", "a_zebra"}) {
		t.Errorf("category animal: %v", got)
	}
	for _, v := range listTools(t, h, "?category=filesystem") {
		if v.Category != "filesystem" {
			t.Errorf("%s is in %s", v.ID, v.Category)
		}
	}
	if got := listTools(t, h, "?category=nothing"); got == nil || len(got) != 0 {
		t.Errorf("unknown category: %v, want an empty list", got)
	}
	wantFieldError(t, h.Do("GET", "/api/tools", nil, "X-Workspace-Id", ""), "header/X-Workspace-Id")
}

func TestI03_UnknownTool(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	if got := decode[api.ToolView](t, h.Want(200, nil, "GET", "/api/tools/read_file", nil)); got.ID != "read_file" ||
		got.HandlerKey != "read_file" {
		t.Errorf("got %+v", got)
	}
	p := wantProblem(t, h.Do("GET", "/api/tools/nothing", nil), 404, reeve.NotFound)
	if !strings.Contains(p.Detail, `"nothing"`) {
		t.Errorf("detail %q", p.Detail)
	}
	wantProblem(t, h.Do("GET", "/api/tools/a%2Fb", nil), 404, reeve.NotFound)
}

func TestI05_DetachAndCascade(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		a := h.Agent("coach", "file_read", "file_list")
		h.Want(204, nil, "DELETE", "/api/agents/coach/tools/file_read", nil)
		wantProblem(t, h.Do("DELETE", "/api/agents/coach/tools/file_read", nil), 404, reeve.NotFound)
		wantProblem(t, h.Do("DELETE", "/api/agents/coach/tools/nothing", nil), 404, reeve.NotFound)
		wantProblem(t, h.Do("DELETE", "/api/agents/nobody/tools/file_list", nil), 404, reeve.NotFound)
		if got := listAttached(t, h, a.ID); !slices.Equal(got, []string{"file_list"}) {
			t.Errorf("the agent has %v", got)
		}

		// Deleting a tool deletes its attachments.
		defineTool(t, h, object{})
		h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "weather"})
		h.Want(204, nil, "DELETE", "/api/tools/weather", nil)
		wantProblem(t, h.Do("DELETE", "/api/tools/weather", nil), 404, reeve.NotFound)
		if got := listAttached(t, h, a.ID); !slices.Equal(got, []string{"file_list"}) {
			t.Errorf("after the tool was deleted, the agent has %v", got)
		}
		defineTool(t, h, object{}) // a new tool with the same id is not attached
		if got := listAttached(t, h, a.ID); !slices.Equal(got, []string{"file_list"}) {
			t.Errorf("the agent has %v", got)
		}

		// Deleting an agent deletes its attachments. A new agent with the same name has the default tools.
		h.Want(204, nil, "DELETE", "/api/agents/coach", nil)
		wantProblem(t, h.Do("DELETE", "/api/agents/coach", nil), 404, reeve.NotFound)
		wantProblem(t, h.Do("GET", "/api/agents/"+a.ID+"/tools", nil), 404, reeve.NotFound)
		b := h.Agent("coach")
		if got := listAttached(t, h, b.ID); !slices.Equal(got, defaultTools) {
			t.Errorf("a new agent has %v", got)
		}
		// A built-in tool cannot be deleted.
		if p := wantProblem(t, h.Do("DELETE", "/api/tools/file_read", nil), 409, reeve.Conflict); !strings.Contains(p.Detail, "file_read is built in") {
			t.Errorf("problem %+v", p)
		}
		if !slices.Contains(toolIDs(listTools(t, h, "")), "file_read") {
			t.Error("a built-in tool was removed")
		}
	})
}

var defaultTools = []string{"list_files", "output_read", "read_file", "write_file"}

// listAttached returns the sorted ids of the tools that an agent can call.
func listAttached(t *testing.T, h *reevetest.Host, agent string, headers ...string) []string {
	t.Helper()
	var list api.ToolList
	h.Want(200, &list, "GET", "/api/agents/"+agent+"/tools", nil, headers...)
	out := toolIDs(list.Tools)
	slices.Sort(out)
	return out
}

func TestI09_UnknownHandlerLeavesOtherToolsUsable(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t, newTool("extra", reeve.Read, "", alwaysReturn("fine", nil)))
	a := h.Agent("coach", "extra", "file_list")
	if got := h.Call(a.ID, "extra", nil); got.Content != "fine" {
		t.Fatalf("got %+v", got)
	}
	h.Stop()

	h = env.start(t) // a build without the tool
	if got := h.Call(a.ID, "file_list", object{"path": "/"}); got.IsError {
		t.Errorf("call of another tool: %+v", got)
	}
	p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "extra"}), 501, reeve.Unsupported)
	if !strings.Contains(p.Detail, "extra") || !strings.Contains(p.Hint, "doctor") {
		t.Errorf("problem %+v", p)
	}
	for _, v := range append(listTools(t, h, ""),
		decode[api.ToolList](t, h.Want(200, nil, "GET", "/api/agents/coach/tools",
			nil)).Tools...) {
		if (v.Broken != "") != (v.ID == "extra") {
			t.Errorf("%s: broken %q", v.ID, v.Broken)
		}
	}
	if s := decode[api.Status](t, h.Want(200, nil, "GET", "/api/status", nil)); len(s.Broken) != 1 ||
		!strings.HasPrefix(s.Broken[0], "extra: ") {
		t.Errorf("status reports %v", s.Broken)
	}
	var found bool
	for _, c := range decode[api.DoctorReport](t, h.Want(200, nil, "GET", "/api/doctor", nil)).Checks {
		if c.Name == "tools" {
			found = true
			if c.OK || !strings.Contains(c.Detail, "extra") || c.Hint == "" {
				t.Errorf("doctor reports %+v", c)
			}
		}
	}
	if !found {
		t.Error("doctor has no check of tools")
	}
	h.Stop()

	h = env.start(t, newTool("extra", reeve.Read, "", alwaysReturn("back", nil)))
	if got := h.Call(a.ID, "extra", nil); got.Content != "back" {
		t.Errorf("with the handler again: %+v", got)
	}
}

func TestO21_EveryToolDeclaresAllFields(t *testing.T) {
	t.Parallel()
	for _, v := range listTools(t, startServer(t), "") {
		if len(v.Description) < 20 || !slices.Contains(reeve.Tiers(), v.Tier) ||
			!slices.Contains(reeve.Effects(), v.Effect) || v.TimeoutMS < 1 ||
			!slices.Contains(reeve.Risks(), v.Risk) || v.Retry.Attempts < 1 {
			t.Errorf("%s: %+v", v.ID, v.Tool)
		}
		var s struct {
			Type                 string
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(v.Parameters, &s); err != nil || s.Type != "object" || s.AdditionalProperties == nil ||
			*s.AdditionalProperties {
			t.Errorf("%s: schema %s: %v", v.ID, v.Parameters, err)
		}
	}
}

func TestO21_BadDeclarationsFailAtStart(t *testing.T) {
	t.Parallel()
	h, err := host.New(t.Context(), host.Config{Dir: t.TempDir(), LogTo: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	good := newTool("once", reeve.Read, "", alwaysReturn("", nil))
	if err := h.AddTool(good); err != nil {
		t.Fatal(err)
	}
	if err := h.AddTool(good); reeve.CodeOf(err) != reeve.AlreadyExists || !strings.Contains(err.Error(), "once") {
		t.Errorf("the same name twice: %v", err)
	}
	if err := h.AddTool(newTool("file_read", reeve.Read, "", alwaysReturn("", nil))); reeve.CodeOf(
		err) != reeve.AlreadyExists {
		t.Errorf("a built-in tool's name: %v", err)
	}
	other := newTool("file_read", reeve.Read, "", alwaysReturn("", nil))
	other.HandlerKey = "another"
	if err := h.AddTool(other); reeve.CodeOf(err) != reeve.AlreadyExists {
		t.Errorf("a built-in tool's name with another handler key: %v", err)
	}
	for what, change := range map[string]func(*reeve.Tool){
		"description": func(v *reeve.Tool) { v.Description = "" },
		"tier":        func(v *reeve.Tool) { v.Tier = "none" },
		"effect":      func(v *reeve.Tool) { v.Effect = "none" },
		"timeout":     func(v *reeve.Tool) { v.TimeoutMS = -1 },
		"no schema":   func(v *reeve.Tool) { v.Parameters = nil },
		"schema":      func(v *reeve.Tool) { v.Parameters = json.RawMessage(`{"type":"thing"}`) },
		"not object":  func(v *reeve.Tool) { v.Parameters = json.RawMessage(`{"type":"string"}`) },
		"handler":     func(v *reeve.Tool) { v.Handler = nil },
		"config":      func(v *reeve.Tool) { v.ConfigSchema = json.RawMessage(`{"type":"thing"}`) },
	} {
		bad := newTool("other", reeve.Read, "", alwaysReturn("", nil))
		change(&bad)
		if err := h.AddTool(bad); reeve.CodeOf(err) != reeve.Validation {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// defineTool creates the tool weather with the given changes.
func defineTool(t *testing.T, h *reevetest.Host, change object, headers ...string) api.ToolView {
	t.Helper()
	var v api.ToolView
	h.Want(http.StatusCreated, &v, "POST", "/api/tools", weatherTool(change), headers...)
	return v
}

// weatherTool returns the definition of an HTTP tool with the given changes. A nil value deletes a field.
func weatherTool(change object) object {
	out := object{"id": "weather", "description": "Returns the weather of a place.", "effect": "read",
		"parameters": object{"type": "object", "properties": object{"place": object{"type": "string"}},
			"required": []string{"place"}, "additionalProperties": false},
		"spec": object{"method": "GET", "url": "https://weather.example/{place}"}}
	for k, v := range change {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}
