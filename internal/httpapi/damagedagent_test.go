package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// One damaged row is one broken agent: it is listed and named, can do nothing, and is mended or removed through Reeve; nobody else is harmed. What is damaged stays so until it is set: an agent whose policy
// cannot be read does not become one that may do anything.
func TestI09_ADamagedAgentHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		patches := map[string]object{"policy": {"policy": object{"tools": object{"file_list": "ask"}}}, "categories": {"categories": []string{}}, "config": {"config": object{"max_moves": 3}}, "clock": {"kind": "reader"}}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			patches["throttle_ms"], patches["created_at"] = object{"throttle_ms": 5}, object{"kind": "reader"}
		}
		h.Agent("sound", "file_list")
		conversations := map[string]string{}
		for column := range patches {
			h.Agent("bad-"+column, "file_list")
			h.Want(200, nil, "PATCH", "/api/agents/bad-"+column, object{"config": object{"rehearsal": object{"steps": []any{}, "output": "it ran"}}}) // which calls nothing, and asks no model
			h.Want(201, nil, "POST", "/api/schedules", object{"agent": "bad-" + column, "goal": "g", "cadence_type": "cron", "cadence_value": "0 7 1 1 *"})
			conversations[column] = decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "bad-" + column})).ID
		}
		if said := ailing(t, h, "agents"); len(said) > 0 {
			t.Fatalf("before anything is damaged: %q", said)
		}
		for column := range patches {
			w.exec(t, `UPDATE agents SET `+column+` = '{broken' WHERE name = $1`, "bad-"+column)
		}
		h.Stop()
		h = w.start(t, tricks()...)
		list := decode[api.AgentList](t, h.Want(200, nil, "GET", "/api/agents", nil)).Agents
		if len(list) != len(patches)+1 {
			t.Fatalf("%d agents are listed", len(list))
		}
		said := ailing(t, h, "agents")
		for _, a := range list {
			column, bad := strings.CutPrefix(a.Name, "bad-")
			if !bad {
				if a.Broken != "" || h.Call(a.ID, "file_list", object{"path": "/"}).IsError {
					t.Errorf("another agent was harmed: %+v", a)
				}
				continue
			}
			want := "its row in the database is damaged: " + column + " cannot be read"
			if a.Broken != want || !slices.Contains(said, a.Name+": "+want) || len(said) != len(patches) {
				t.Errorf("%s is listed with %q, the doctor says %q", a.Name, a.Broken, said)
			}
			at := "/api/agents/" + a.Name
			refuses := func() {
				t.Helper()
				for path, body := range map[string]any{at + "/calls": object{"tool": "file_list", "args": object{"path": "/"}}, at + "/wake": object{}, "/api/conversations/" + conversations[column] + "/turns": object{"content": "hello"}} {
					if p := refused(t, h.Do("POST", path, body), 501, reeve.Unsupported); !strings.Contains(p.Detail, a.Name) || !strings.Contains(p.Detail, want) || !strings.Contains(p.Hint, "reeve agents update "+a.Name) {
						t.Errorf("%s: %+v", path, p)
					}
				}
			}
			refuses()
			if column == "policy" || column == "config" || column == "categories" { // whatever else is changed leaves it damaged
				if now := decode[reeve.Agent](t, h.Want(200, nil, "PATCH", at, object{"kind": "reader"})); now.Broken != want || now.Kind != "reader" {
					t.Errorf("%s with another kind: %+v", a.Name, now)
				}
				h.Want(204, nil, "POST", "/api/stop", object{"agent": a.Name, "reason": "drill"})
				h.Want(204, nil, "POST", "/api/resume", object{"agent": a.Name})
				refuses()
				w.exec(t, `UPDATE timers SET next_at = 1 WHERE agent_id = $1`, a.ID)
				run := firstRun(t, h, a.ID)
				if run.State != reeve.RunFailed || !strings.Contains(run.Message, a.Name) || !strings.Contains(run.Message, want) {
					t.Errorf("its schedule ran: %+v", run)
				}
			}
			if now := decode[reeve.Agent](t, h.Want(200, nil, "PATCH", at, patches[column])); now.Broken != "" {
				t.Errorf("%s is still broken: %s", a.Name, now.Broken)
			}
			if res := h.Call(a.ID, "file_list", object{"path": "/"}); res.IsError && res.Code != reeve.ApprovalRequired {
				t.Errorf("%s, mended: %+v", a.Name, res)
			}
			w.exec(t, `UPDATE agents SET `+column+` = '{broken' WHERE id = $1`, a.ID)
			h.Want(204, nil, "DELETE", at, nil)
			said = ailing(t, h, "agents")
			delete(patches, column)
		}
		if len(said) > 0 {
			t.Errorf("still broken: %q", said)
		}
	})
}

// What Reeve itself never writes is damage, also where it could be read as something: a policy that is gone must not be one that allows all.
func TestI09_WhatReeveNeverWritesIsDamage(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		deny := object{"policy": object{"tools": object{"file_list": "deny"}}}
		cases := []struct {
			column string
			value  any
			mend   object
		}{
			{"policy", "", deny}, {"policy", "null", deny}, {"policy", " ", deny}, {"policy", "[]", deny}, {"policy", `{"tool":{"file_list":"deny"}}`, deny}, {"policy", `{"tools":null}`, deny},
			{"policy", `{"tools":{"file_list":"never"}}`, deny}, {"policy", `{"tiers":{"read":"deny"}}`, deny}, {"policy", `{"tools":{"file_list":"deny"}} {}`, deny},
			{"categories", "", object{"categories": []string{}}}, {"categories", "{}", object{"categories": []string{}}}, {"categories", "[null]", object{"categories": []string{}}},
			{"config", "", object{"config": object{}}}, {"config", "null", object{"config": object{}}}, {"config", "-1", object{"config": object{}}}, {"config", "[]", object{"config": object{}}},
			{"lifecycle", "", object{"lifecycle": "dormant"}}, {"lifecycle", "zzz", object{"lifecycle": "active"}},
			{"mode", "", object{"mode": "interactive"}}, {"mode", "zzz", object{"mode": "hybrid"}},
			{"kind", "", object{"kind": "reader"}}, {"kind", "Not A Kind", object{"kind": "reader"}},
			{"throttle_ms", -1, object{"throttle_ms": 0}}, {"stopped_at", -1, nil},
		}
		name := func(i int) string { return fmt.Sprintf("a%02d", i) }
		for i := range cases {
			h.Agent(name(i), "file_list")
			h.Want(200, nil, "PATCH", "/api/agents/"+name(i), deny)
		}
		for i, c := range cases {
			w.exec(t, `UPDATE agents SET `+c.column+` = $1 WHERE name = $2`, c.value, name(i))
		}
		h.Stop()
		h = w.start(t)
		said := ailing(t, h, "agents")
		for i, c := range cases {
			at, want := "/api/agents/"+name(i), "its row in the database is damaged: "+c.column+" cannot be read"
			if !slices.Contains(said, name(i)+": "+want) || len(said) != len(cases) {
				t.Errorf("%s of %v: the doctor says %q", c.column, c.value, said)
			}
			refused(t, h.Do("POST", at+"/calls", object{"tool": "file_list", "args": object{"path": "/"}}), 501, reeve.Unsupported)
			if now := decode[reeve.Agent](t, h.Want(200, nil, "PATCH", at, object{"name": name(i)})); now.Broken != want {
				t.Errorf("%s of %v, with something else set: %q", c.column, c.value, now.Broken)
			}
			if c.mend == nil {
				h.Want(204, nil, "POST", "/api/resume", object{"agent": name(i)})
			} else {
				h.Want(200, nil, "PATCH", at, c.mend)
			}
			if now := decode[reeve.Agent](t, h.Want(200, nil, "GET", at, nil)); now.Broken != "" {
				t.Errorf("%s of %v, mended: %q", c.column, c.value, now.Broken)
			}
			refused(t, h.Do("POST", at+"/calls", object{"tool": "file_list", "args": object{"path": "/"}}), 403, reeve.Denied)
		}
	})
}

// firstRun waits for an agent's first run to end.
func firstRun(t *testing.T, h *reevetest.Host, agent string) reeve.Run {
	t.Helper()
	for deadline := reeve.Now().Add(30 * time.Second); reeve.Now().Before(deadline); {
		h.Settle(t.Context())
		for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent="+agent, nil)).Runs {
			if r.State.Final() {
				return r
			}
		}
	}
	t.Fatal("it did not run")
	return reeve.Run{}
}

// A damaged stop counts as one, until somebody says what holds.
func TestI09_ADamagedStopIsAStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	h.Agent("clerk", "file_list")
	w.exec(t, `UPDATE agents SET stopped_at = 'x'`)
	h.Stop()
	h = w.start(t)
	if a := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/clerk", nil)); a.StoppedAt == nil || !strings.Contains(a.Broken, "stopped_at") {
		t.Errorf("%+v", a)
	}
	h.Want(200, nil, "PATCH", "/api/agents/clerk", object{"kind": "reader"})
	refused(t, h.Do("POST", "/api/agents/clerk/calls", object{"tool": "file_list", "args": object{"path": "/"}}), 501, reeve.Unsupported)
	h.Want(204, nil, "POST", "/api/resume", object{"agent": "clerk"})
	if res := h.Call("clerk", "file_list", object{"path": "/"}); res.IsError {
		t.Errorf("resumed: %+v", res)
	}
}

// A workspace whose stop, or count of changes, cannot be read counts as stopped; the log and the doctor say so, and resuming it mends it.
func TestI09_ADamagedWorkspaceIsStopped(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		values := []any{-1}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			values = append(values, "x", "", 1.5, []byte{0})
		}
		h := w.start(t)
		h.Agent("clerk", "file_list", "file_write")
		for _, column := range []string{"stopped_at", "revision"} {
			if column == "revision" {
				values = values[:1] // what else there is was tried
			}
			for _, value := range values {
				w.exec(t, `UPDATE workspaces SET `+column+` = $1 WHERE id = 'default'`, value)
				h.Stop()
				said := &bytes.Buffer{}
				w.cfg.Log = slog.New(slog.NewTextHandler(said, nil))
				h = w.start(t)
				want := "its row in the database is damaged: " + column + " cannot be read"
				if got := ailing(t, h, "workspace"); len(got) != 1 || !strings.Contains(got[0], want) {
					t.Errorf("%s of %v: the doctor says %q", column, value, got)
				}
				write := object{"tool": "file_write", "args": object{"path": "/shared/a.txt", "content": "a"}}
				if res := h.Do("POST", "/api/agents/clerk/calls", write); !strings.Contains(string(res.Body), "STOPPED") || !strings.Contains(string(res.Body), want) {
					t.Errorf("%s of %v: %s", column, value, res.Body)
				}
				h.Want(204, nil, "POST", "/api/resume", object{})
				if got := ailing(t, h, "workspace"); len(got) != 0 {
					t.Errorf("%s of %v, resumed: %q", column, value, got)
				}
				if res := h.Call("clerk", "file_list", object{"path": "/"}); res.IsError {
					t.Errorf("%s of %v, resumed: %+v", column, value, res)
				}
				h.Stop()
				if log := said.String(); !strings.Contains(log, want) || !strings.Contains(log, "workspace=default") {
					t.Errorf("%s of %v: the log says %s", column, value, log)
				}
				h = w.start(t)
			}
		}
	})
}

// A damaged state is empty and says so; setting the slots mends it.
func TestI09_ADamagedStateIsSetAgain(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("clerk", "file_list")
		h.Want(200, nil, "PUT", "/api/agents/clerk/state", object{"revision": 0, "slots": object{"primary_goal": "one"}})
		for i, column := range []string{"slots", "stamps", "processed", "clock"} {
			w.exec(t, `UPDATE agent_states SET `+column+` = '{broken' WHERE agent_id = $1`, a.ID)
			want := "the row of its state in the database is damaged: " + column + " cannot be read"
			is := decode[reeve.AgentState](t, h.Want(200, nil, "GET", "/api/agents/clerk/state", nil))
			if said := ailing(t, h, "agents"); is.Broken != want || !slices.Equal(said, []string{"clerk: " + want}) {
				t.Errorf("it says %q, the doctor %q", is.Broken, said)
			}
			if res := h.Call("clerk", "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("a call, which has nothing to do with it: %+v", res)
			}
			put := object{"revision": i + 1, "slots": object{"primary_goal": "one"}}
			if now := decode[reeve.AgentState](t, h.Want(200, nil, "PUT", "/api/agents/clerk/state", put)); now.Broken != "" || now.Slots.PrimaryGoal != "one" {
				t.Errorf("set again: %+v", now)
			}
			if now := decode[reeve.AgentState](t, h.Want(200, nil, "GET", "/api/agents/clerk/state", nil)); now.Broken != "" || now.Slots.PrimaryGoal != "one" || len(now.Stamps) == 0 || len(now.Stamp.Clock) == 0 {
				t.Errorf("read again: %+v", now)
			}
		}
		if said := ailing(t, h, "agents"); len(said) > 0 {
			t.Errorf("still broken: %q", said)
		}
	})
}
