package httpapi_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Settings that need an owner also need one for a tool that cannot run on this machine, because it may run later.
func TestI09_BrokenToolSettingsAreChecked(t *testing.T) {
	t.Parallel()
	off := newTool("off", reeve.Read, "", alwaysReturn("", nil))
	off.Broken = "this machine lacks what it needs"
	off.ConfigSchema = json.RawMessage(
		`{"type":"object","additionalProperties":false,"properties":{"network":{"type":"boolean","` +
			reeve.OwnerKeyword + `":true}}}`)
	h := startServer(t, off)
	h.Agent("coach")
	member := withToken(createToken(t, h, reeve.Member))
	wantProblem(t, h.Do("POST", "/api/agents/coach/tools", object{"tool_id": "off", "config": object{"network": true}},
		member...), 403, reeve.Forbidden)
	wantFieldError(t, h.Do("POST", "/api/agents/coach/tools",
		object{"tool_id": "off", "config": object{"colour": true}},
		member...), "/config/colour")
	h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "off", "config": object{"network": true}})
}

// A later build adds a built-in tool with the id of a workspace's own tool. The built-in tool is used, and the server
// reports the conflict.
func TestO21_StoredToolNeverReplacesBuiltIn(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		defineTool(t, h, object{"id": "extra"})
		h.Agent("old", "extra", "file_list")
		h.Stop()
		logs := &bytes.Buffer{}
		env.cfg.Log = slog.New(slog.NewTextHandler(logs, nil))
		h = env.start(t, newTool("extra", reeve.Read, "", alwaysReturn("built in", nil)))
		const why = "its id now belongs to a built-in tool; define it again under another id"
		var served, broken int
		for _, v := range listTools(t, h, "") {
			switch {
			case v.ID != "extra":
			case v.WorkspaceID == "" && v.Broken == "":
				served++
			case v.WorkspaceID != "" && v.Broken == why:
				broken++
			default:
				t.Errorf("listed %+v", v.Tool)
			}
		}
		if served != 1 || broken != 1 || getBrokenTools(t, h)["extra"] != why {
			t.Errorf("%d working and %d broken tools, want 1 and 1", served, broken)
		}
		if v := decode[api.ToolView](t, h.Want(200, nil, "GET", "/api/tools/extra", nil)); v.Kind != reeve.GoTool ||
			v.Broken != "" {
			t.Errorf("by its id: %+v", v.Tool)
		}
		h.Agent("new", "extra")
		if res := h.Call("new", "extra", nil); res.Content != "built in" {
			t.Errorf("the built-in tool: %+v", res)
		}
		// The agent had the workspace's tool. The built-in tool is not attached to it.
		p := wantProblem(t, h.Do("POST", "/api/agents/old/calls", object{"tool": "extra"}), 501, reeve.Unsupported)
		if !strings.Contains(p.Detail, why) || !strings.Contains(p.Hint, "detach") {
			t.Errorf("problem %+v", p)
		}
		if res := h.Call("old", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("call of another tool: %+v", res)
		}
		for _, v := range decode[api.ToolList](t, h.Want(200, nil, "GET", "/api/agents/old/tools", nil)).Tools {
			if (v.Broken == why) != (v.ID == "extra") {
				t.Errorf("%s of the agent: %q", v.ID, v.Broken)
			}
		}
		wantProblem(t, h.Do("PUT", "/api/tools/extra", weatherTool(object{"id": "extra"})), 409, reeve.Conflict)
		h.Want(204, nil, "DELETE", "/api/tools/extra", nil) // deletes the workspace's tool
		if _, ok := getBrokenTools(t, h)["extra"]; ok {
			t.Error("the tool is still broken")
		}
		h.Want(201, nil, "POST", "/api/agents/old/tools", object{"tool_id": "extra"})
		if res := h.Call("old", "extra", nil); res.Content != "built in" {
			t.Errorf("the built-in tool, attached: %+v", res)
		}
		h.Stop()
		if log := logs.String(); strings.Count(log, why) != 1 ||
			!strings.Contains(log, "tool=extra workspace=default") {
			t.Errorf("log: %s", log)
		}
	})
}

// getBrokenTools returns the reason why each broken tool cannot be called, by tool id. It checks that the status and
// the doctor report the same reasons.
func getBrokenTools(t *testing.T, h *reevetest.Host) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range listTools(t, h, "") {
		if v.Broken != "" {
			out[v.ID] = v.Broken
		}
	}
	statusLines := decode[api.Status](t, h.Want(200, nil, "GET", "/api/status", nil)).Broken
	for _, c := range decode[api.DoctorReport](t, h.Want(200, nil, "GET", "/api/doctor", nil)).Checks {
		if c.Name != "tools" {
			continue
		}
		for id, why := range out {
			if c.OK || !strings.Contains(c.Detail, id+": "+why) || !slices.Contains(statusLines, id+": "+why) {
				t.Errorf("%s is broken (%s), doctor reports %+v, status %q", id, why, c, statusLines)
			}
		}
	}
	return out
}
