package httpapi_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// exec changes the database behind Reeve's back, as a damaged disk or somebody's editor does.
func (w world) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(w.cfg.Dir, "reeve.db")+"?_pragma=busy_timeout(5000)"
	if w.cfg.Database != "" {
		driver, source = "pgx", w.cfg.Database
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%s changed nothing: %v", query, err)
	}
}

// brokenTools gives why tools cannot be called, by id, as the catalogue, the status and the doctor have it.
func brokenTools(t *testing.T, h *reevetest.Host) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range tools(t, h, "") {
		if v.Broken != "" {
			out[v.ID] = v.Broken
		}
	}
	said := decode[api.Status](t, h.Want(200, nil, "GET", "/api/status", nil)).Broken
	for _, c := range decode[api.CheckUp](t, h.Want(200, nil, "GET", "/api/doctor", nil)).Checks {
		if c.Name != "tools" {
			continue
		}
		for id, why := range out {
			if c.OK || !strings.Contains(c.Detail, id+": "+why) || !slices.Contains(said, id+": "+why) {
				t.Errorf("%s is broken (%s), the doctor says %+v, the status %q", id, why, c, said)
			}
		}
	}
	return out
}

// One damaged row is one broken tool: it is listed, refused and named by the doctor, and all others work.
func TestI09_ADamagedRowHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		columns := []string{"parameters", "spec", "retry", "config_schema", "identity", "cost"}
		spoil := `UPDATE tools SET retry = '{', parameters = '' WHERE id = 'file_read'` // a built-in one is mended at the next start
		if w.cfg.Database == "" {                                                       // where a column of numbers takes anything
			columns = append(columns, "timeout_ms", "previews", "version", "created_at", "async")
			spoil = `UPDATE tools SET retry = '{', parameters = '', created_at = 'x', version = 1.5, async = x'00' WHERE id = 'file_read'`
		}
		h.Agent("coach", "file_list")
		for _, column := range columns {
			define(t, h, object{"id": "bad_" + column, "config_schema": object{"type": "object"}})
			h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "bad_" + column})
		}
		sound := brokenTools(t, h) // by this machine, perhaps
		for _, column := range columns {
			w.exec(t, `UPDATE tools SET `+column+` = '{"type": ' WHERE id = $1`, "bad_"+column)
		}
		w.exec(t, spoil)
		check := func(builtin bool) {
			t.Helper()
			broken := brokenTools(t, h)
			for _, column := range columns {
				id := "bad_" + column
				if why := broken[id]; !strings.Contains(why, "damaged") || !strings.Contains(why, column) {
					t.Errorf("%s: %q", id, why)
				}
				if v := decode[api.ToolView](t, h.Want(200, nil, "GET", "/api/tools/"+id, nil)); v.Broken != broken[id] {
					t.Errorf("%s alone: %q", id, v.Broken)
				}
				p := refused(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": id, "args": object{"place": "here"}}), 501, reeve.Unsupported)
				if !strings.Contains(p.Detail, broken[id]) {
					t.Errorf("the call of %s: %+v", id, p)
				}
				delete(broken, id)
			}
			if _, ok := broken["file_read"]; ok != builtin {
				t.Errorf("a built-in tool: %v", broken)
			}
			if delete(broken, "file_read"); len(broken) != len(sound) {
				t.Errorf("broken too: %v", broken)
			}
			if res := h.Call("coach", "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("another tool was harmed: %+v", res)
			}
			if got := len(decode[api.ToolList](t, h.Want(200, nil, "GET", "/api/agents/coach/tools", nil)).Tools); got != len(columns)+1 {
				t.Errorf("the agent has %d tools", got)
			}
		}
		define(t, h, object{"id": "fresh"}) // has the catalogue read again
		check(true)
		h.Stop()
		h = w.start(t)
		check(false)
		// Settings of one that is broken cannot be checked, so that they are not taken.
		h.Agent("other")
		refused(t, h.Do("POST", "/api/agents/other/tools", object{"tool_id": "bad_config_schema", "config": object{"network": true}}), 501, reeve.Unsupported)
		// It is mended by being made again; what a damaged spec referred to nobody can tell, so that it takes an owner.
		refused(t, h.Do("PUT", "/api/tools/bad_spec", weather(object{"id": "bad_spec"}), as(token(t, h, reeve.Member))...), 403, reeve.Forbidden)
		for _, column := range columns {
			h.Want(200, nil, "PUT", "/api/tools/bad_"+column, weather(object{"id": "bad_" + column}))
		}
		if broken := brokenTools(t, h); len(broken) != len(sound) {
			t.Errorf("still broken: %v", broken)
		}
	})
}

// What Reeve itself never writes into a row of the catalogue is damage, also where it could be read as something.
func TestI09_WhatReeveNeverWritesIntoToolsIsDamage(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		cases := []struct {
			column string
			value  any
		}{{"tier", ""}, {"tier", "zzz"}, {"effect", ""}, {"effect", "zzz"}, {"risk", "zzz"}, {"capability", "Not One"}, {"retry", ""}, {"retry", "null"}, {"retry", `{"attempt":1}`}, {"cost", ""}, {"cost", "null"},
			{"cost", `{"micros":-1}`}, {"identity", ""}, {"identity", "{}"}, {"config_schema", "null"}, {"parameters", "null"}, {"spec", ""}, {"spec", "null"}, {"kind", ""}, {"kind", "zzz"},
			{"timeout_ms", -1}, {"timeout_ms", 0}, {"previews", 2}, {"async", -1}}
		h.Agent("coach", "file_list")
		id := func(i int) string { return fmt.Sprintf("bad_%02d", i) }
		for i := range cases {
			define(t, h, object{"id": id(i)})
			h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": id(i)})
		}
		sound := brokenTools(t, h) // by this machine, perhaps
		for i, c := range cases {
			w.exec(t, `UPDATE tools SET `+c.column+` = $1 WHERE id = $2`, c.value, id(i))
		}
		define(t, h, object{"id": "fresh"}) // has the catalogue read again
		broken := brokenTools(t, h)
		for i, c := range cases {
			if broken[id(i)] == "" {
				t.Errorf("%s of %v is not damage", c.column, c.value)
			}
			refused(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": id(i), "args": object{"place": "here"}}), 501, reeve.Unsupported)
			h.Want(200, nil, "PUT", "/api/tools/"+id(i), weather(object{"id": id(i)}))
		}
		if broken := brokenTools(t, h); len(broken) != len(sound) {
			t.Errorf("still broken: %v", broken)
		}
	})
}

// Settings that are damaged may have forbidden something: the agent that has them cannot call the tool, and others can.
func TestI09_DamagedSettingsForbidTheTool(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		hurt := h.Agent("hurt", "file_list", "file_search")
		h.Agent("sound", "file_list")
		for i, config := range []string{`{"a`, "null", "[]", "1", " "} {
			w.exec(t, `UPDATE agent_tools SET config = $1 WHERE agent_id = $2 AND tool_id = 'file_list'`, config, hurt.ID)
			define(t, h, object{"id": fmt.Sprintf("fresh_%d", i)}) // has it read again
			p := refused(t, h.Do("POST", "/api/agents/hurt/calls", object{"tool": "file_list", "args": object{"path": "/"}}), 501, reeve.Unsupported)
			if !strings.Contains(p.Detail, "settings") || !strings.Contains(p.Detail, "damaged") {
				t.Errorf("settings %q: %+v", config, p)
			}
			if said := ailing(t, h, "agents"); len(said) != 1 || !strings.HasPrefix(said[0], "hurt: the tool file_list: ") {
				t.Errorf("settings %q: the doctor says %q", config, said)
			}
		}
		for _, v := range decode[api.ToolList](t, h.Want(200, nil, "GET", "/api/agents/hurt/tools", nil)).Tools {
			if (v.Broken != "") != (v.ID == "file_list") {
				t.Errorf("%s: %q", v.ID, v.Broken)
			}
		}
		if res := h.Call("sound", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another agent was harmed: %+v", res)
		}
		h.Want(204, nil, "DELETE", "/api/agents/hurt/tools/file_list", nil)
		h.Want(201, nil, "POST", "/api/agents/hurt/tools", object{"tool_id": "file_list"})
		if res := h.Call("hurt", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("attached again: %+v", res)
		}
	})
}

// What takes an owner takes one also of a tool that this machine cannot run: another day it can.
func TestI09_SettingsOfABrokenToolAreChecked(t *testing.T) {
	t.Parallel()
	off := trick("off", reeve.Read, "", says("", nil))
	off.Broken = "this machine lacks what it needs"
	off.ConfigSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"network":{"type":"boolean","` + reeve.OwnerKeyword + `":true}}}`)
	h := start(t, off)
	h.Agent("coach")
	member := as(token(t, h, reeve.Member))
	refused(t, h.Do("POST", "/api/agents/coach/tools", object{"tool_id": "off", "config": object{"network": true}}, member...), 403, reeve.Forbidden)
	refusedAt(t, h.Do("POST", "/api/agents/coach/tools", object{"tool_id": "off", "config": object{"colour": true}}, member...), "/config/colour")
	h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "off", "config": object{"network": true}})
}

// A later build has a tool of an id that a workspace gave to one of its own: the built-in one serves, and whoever had the other is told so.
func TestO21_AStoredToolNeverStandsInForABuiltInOne(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		define(t, h, object{"id": "extra"})
		h.Agent("old", "extra", "file_list")
		h.Stop()
		said := &bytes.Buffer{}
		w.cfg.Log = slog.New(slog.NewTextHandler(said, nil))
		h = w.start(t, trick("extra", reeve.Read, "", says("built in", nil)))
		const why = "its id is now a built-in tool's; make it again under another id"
		var served, broken int
		for _, v := range tools(t, h, "") {
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
		if served != 1 || broken != 1 || brokenTools(t, h)["extra"] != why {
			t.Errorf("%d serve, %d are broken", served, broken)
		}
		if v := decode[api.ToolView](t, h.Want(200, nil, "GET", "/api/tools/extra", nil)); v.Kind != reeve.GoTool || v.Broken != "" {
			t.Errorf("by its id: %+v", v.Tool)
		}
		h.Agent("new", "extra")
		if res := h.Call("new", "extra", nil); res.Content != "built in" {
			t.Errorf("the built-in tool: %+v", res)
		}
		// Nobody gave the built-in tool to an agent that had the other.
		p := refused(t, h.Do("POST", "/api/agents/old/calls", object{"tool": "extra"}), 501, reeve.Unsupported)
		if !strings.Contains(p.Detail, why) || !strings.Contains(p.Hint, "detach") {
			t.Errorf("problem %+v", p)
		}
		if res := h.Call("old", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another tool was harmed: %+v", res)
		}
		for _, v := range decode[api.ToolList](t, h.Want(200, nil, "GET", "/api/agents/old/tools", nil)).Tools {
			if (v.Broken == why) != (v.ID == "extra") {
				t.Errorf("%s of the agent: %q", v.ID, v.Broken)
			}
		}
		refused(t, h.Do("PUT", "/api/tools/extra", weather(object{"id": "extra"})), 409, reeve.Conflict)
		h.Want(204, nil, "DELETE", "/api/tools/extra", nil) // the stored one
		if _, ok := brokenTools(t, h)["extra"]; ok {
			t.Error("it is still broken")
		}
		h.Want(201, nil, "POST", "/api/agents/old/tools", object{"tool_id": "extra"})
		if res := h.Call("old", "extra", nil); res.Content != "built in" {
			t.Errorf("the built-in tool, given to the agent: %+v", res)
		}
		h.Stop()
		if log := said.String(); strings.Count(log, why) != 1 || !strings.Contains(log, "tool=extra workspace=default") {
			t.Errorf("the log says %s", log)
		}
	})
}
