package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// spoilt tells whether the doctor names a row of a table that is damaged.
func spoilt(t *testing.T, h *reevetest.Host, table, id string) bool {
	t.Helper()
	return slices.ContainsFunc(ailing(t, h, "rows"), func(s string) bool { return strings.Contains(s, "a row of "+table+" ("+id+"): ") })
}

// parked makes a call that waits for a person, and gives its operation and approval.
func parked(t *testing.T, h *reevetest.Host, agent, path string) reeve.Result {
	t.Helper()
	res := h.Call(agent, "file_write", object{"path": path, "content": "a"})
	if res.ApprovalID == "" {
		t.Fatalf("not parked: %+v", res)
	}
	return res
}

func asking(t *testing.T, h *reevetest.Host, names ...string) {
	t.Helper()
	for _, n := range names {
		h.Agent(n, "file_write", "file_list")
		h.Want(200, nil, "PATCH", "/api/agents/"+n, object{"policy": object{"tools": object{"file_write": "ask"}}, "config": object{"rehearsal": object{"output": "done"}}})
	}
}

// One damaged operation holds up nobody else's: it is left out of what is due and of the lists, and the log and the doctor name it.
func TestI09_ADamagedOperationHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		said := &bytes.Buffer{}
		w.cfg.Log = slog.New(slog.NewTextHandler(said, nil))
		h := w.start(t)
		asking(t, h, "hurt", "well")
		damage := map[string]any{"spent": "x", "undo": "{"}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			damage["tries"], damage["created_at"], damage["deferred"], damage["timeout_at"], damage["next_attempt_at"] = "x", "x", "x", "x", "x"
		}
		var bad []string
		for column, value := range damage {
			res := parked(t, h, "hurt", "/shared/"+column)
			h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
			w.exec(t, `UPDATE calls SET `+column+` = $1 WHERE id = $2`, value, res.CallID)
			bad = append(bad, res.CallID)
		}
		late := parked(t, h, "hurt", "/shared/late") // whose approval is over, which is found before anything is taken up
		w.exec(t, `UPDATE approvals SET expires_at = 1 WHERE id = $1`, late.ApprovalID)
		w.exec(t, `UPDATE calls SET spent = 'x' WHERE id = $1`, late.CallID)
		good := parked(t, h, "well", "/shared/well")
		h.Want(200, nil, "POST", "/api/approvals/"+good.ApprovalID+"/decision", object{"decision": "approve"})
		h.Settle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+good.OperationID, nil)); op.State != reeve.Committed {
			t.Errorf("the sound one is %s", op.State)
		}
		list := decode[api.OperationList](t, h.Want(200, nil, "GET", "/api/operations", nil)).Operations
		if len(list) != 1 || list[0].ID != good.OperationID {
			t.Errorf("listed: %+v", list)
		}
		for _, id := range append(bad, late.CallID) {
			if !spoilt(t, h, "calls", id) {
				t.Errorf("the doctor does not name %s: %q", id, ailing(t, h, "rows"))
			}
		}
		h.Stop()
		for _, id := range bad {
			if n := strings.Count(said.String(), "id="+id); n != 1 {
				t.Errorf("the log names %s %d times", id, n)
			}
		}
	})
}

// A page without a damaged row is as long as it would be with it: whoever gets a shorter one takes it for the last.
func TestI09_ADamagedRowDoesNotEndAList(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "clerk")
		var want []string
		for _, path := range []string{"/shared/a", "/shared/b", "/shared/c", "/shared/d", "/shared/e"} {
			res := parked(t, h, "clerk", path)
			if path == "/shared/b" || path == "/shared/d" || path == "/shared/e" {
				w.exec(t, `UPDATE calls SET spent = 'x' WHERE id = $1`, res.CallID)
			} else {
				want = append([]string{res.OperationID}, want...)
			}
		}
		var got []string
		for _, o := range pages(t, h, "/api/operations", func(l api.OperationList) ([]reeve.Operation, string) { return l.Operations, l.Next }) {
			got = append(got, o.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	})
}

// One damaged schedule, or wake, holds up nobody else's. SQLite takes any value in any column.
func TestI09_ADamagedWakeHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	asking(t, h, "hurt", "well")
	schedule := func(agent string) string {
		return decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules", object{"agent": agent, "name": "n", "goal": "g", "cadence_type": "cron", "cadence_value": "0 7 * * *"})).ID
	}
	timers := map[string]string{}
	for _, column := range []string{"next_at", "failures", "missed", "last_at", "created_at"} {
		id := schedule("hurt")
		w.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, id)
		w.exec(t, `UPDATE timers SET `+column+` = 'x' WHERE id = $1`, id)
		timers[column] = id
	}
	wakes := map[string]string{}
	for _, column := range []string{"due_at", "scheduled_at", "created_at"} {
		key := decode[reeve.Wake](t, h.Want(201, nil, "POST", "/api/agents/hurt/wake", object{})).RunKey
		w.exec(t, `UPDATE wakes SET `+column+` = 'x' WHERE run_key = $1`, key)
		wakes[column] = key
	}
	good := schedule("well")
	w.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, good)
	if run := firstRun(t, h, "well"); run.State != reeve.RunCompleted {
		t.Errorf("the sound schedule: %+v", run)
	}
	if list := decode[api.ScheduleList](t, h.Want(200, nil, "GET", "/api/schedules", nil)).Schedules; len(list) != 1 || list[0].ID != good {
		t.Errorf("listed: %+v", list)
	}
	h.Want(200, nil, "GET", "/api/agents/hurt/wakes", nil)
	for column, id := range timers {
		if !spoilt(t, h, "timers", id) {
			t.Errorf("the doctor does not name the schedule whose %s is damaged: %q", column, ailing(t, h, "rows"))
		}
	}
	for column, key := range wakes {
		if !spoilt(t, h, "wakes", key) {
			t.Errorf("the doctor does not name the wake whose %s is damaged: %q", column, ailing(t, h, "rows"))
		}
	}
}

// A run that is damaged is not taken up, and others are.
func TestI09_ADamagedRunHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "hurt", "well")
		for _, agent := range []string{"hurt", "well"} {
			h.Want(201, nil, "POST", "/api/agents/"+agent+"/wake", object{})
			if run := firstRun(t, h, agent); run.State != reeve.RunCompleted {
				t.Fatalf("%+v", run)
			}
		}
		for _, agent := range []string{"hurt", "well"} { // as a server that is gone left them
			run := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent="+agent, nil)).Runs[0]
			w.exec(t, `UPDATE runs SET state = 'running', owner = '', finished_at = 0 WHERE id = $1`, run.ID)
			w.exec(t, `INSERT INTO open_runs (run_id, agent_id, session_id, parent_id, turn, lane, seen) SELECT id, agent_id, session_id, '', 0, '', 0 FROM runs WHERE id = $1`, run.ID)
			if agent == "hurt" {
				w.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, run.ID)
				defer func() {
					if !spoilt(t, h, "runs", run.ID) {
						t.Errorf("the doctor does not name it: %q", ailing(t, h, "rows"))
					}
				}()
			}
		}
		if run := firstRun(t, h, "well"); run.State != reeve.RunCompleted {
			t.Errorf("%+v", run)
		}
		if list := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs; len(list) != 1 {
			t.Errorf("listed: %+v", list)
		}
	})
}

// A run that cannot be read is not said to be none, as a plan or a response either: somebody would plan, or ask, again.
func TestI09_ADamagedRunIsNotSaidToBeGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	plan := furnishAutomation(t, h).plan
	h.Agent("coach")
	c := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "coach"}))
	turn := decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns", object{"content": "hi"}))
	for id, paths := range map[string][]string{plan: {"/api/runs/" + plan, "/api/plans/" + plan}, turn.ID: {"/api/turns/" + turn.ID, "/v1/responses/resp_" + turn.ID}} {
		w.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, id)
		for _, path := range paths {
			h.Want(500, nil, "GET", path, nil)
		}
	}
	r := h.Want(500, nil, "POST", "/v1/responses", object{"model": "coach", "input": "and?", "previous_response_id": "resp_" + turn.ID})
	if strings.Contains(string(r.Body), "previous_response_not_found") {
		t.Errorf("%s", r.Body)
	}
}

// A damaged row is left out of every list that is shown, and hides nothing else.
func TestI09_ADamagedRowIsLeftOutOfLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	asking(t, h, "clerk")
	var c reeve.Category
	h.Want(201, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Gym"})
	for range 2 {
		parked(t, h, "clerk", "/shared/a")
		h.Want(201, nil, "POST", "/api/conversations", object{"agent": "clerk"})
		h.Want(201, nil, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: c.ID, Title: "t"})
		h.Want(201, nil, "POST", "/api/notes", object{"agent": "clerk", "content": "n"})
	}
	for _, c := range []struct{ table, column, path string }{
		{"approvals", "created_at", "/api/approvals"}, {"approvals", "decided_at", "/api/inbox"}, {"approvals", "decided_at", "/api/status"}, {"conversations", "created_at", "/api/conversations"},
		{"tasks", "clock", "/api/journal/tasks"}, {"notes", "created_at", "/api/notes"},
	} {
		w.exec(t, `UPDATE `+c.table+` SET `+c.column+` = 'x' WHERE id = (SELECT min(id) FROM `+c.table+`)`)
		if body := string(h.Want(200, nil, "GET", c.path, nil).Body); !strings.Contains(c.path, "status") && strings.Count(body, `"created_at"`) != 1 {
			t.Errorf("%s: %s", c.path, body)
		}
	}
}

// A token whose row is damaged is not valid: in what is lost may be that it was revoked, or whose it is. Others are, and the doctor names it.
func TestI09_ADamagedTokenIsNotValid(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		damage := map[string]any{"user_name": "", "role": "", "expires_at": -1, "revoked_at": -1}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			damage["expires_at"], damage["revoked_at"] = "x", "x"
		}
		for column, value := range damage {
			bob := person(t, h, "bob", reeve.Member)
			h.Want(200, nil, "GET", "/api/conversations", nil, bob...)
			list := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens
			id := list[slices.IndexFunc(list, func(a reeve.AccessToken) bool { return a.User == "bob" })].ID
			w.exec(t, `UPDATE access_tokens SET `+column+` = $1 WHERE id = $2`, value, id)
			refused(t, h.Do("GET", "/api/conversations", nil, bob...), 401, reeve.Unauthenticated)
			if now := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens; len(now) != len(list)-1 {
				t.Errorf("%s: listed %+v", column, now)
			}
			if !spoilt(t, h, "access_tokens", id) {
				t.Errorf("%s: the doctor says %q", column, ailing(t, h, "rows"))
			}
		}
	})
}

// An approval that shows another call than the one that would run is refused, and can be denied.
func TestG15_AnApprovalThatShowsAnotherCall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "clerk", "other")
		for i, c := range []struct{ query, word string }{
			{`UPDATE approvals SET args = '{"content":"a","path":"/shared/harmless"}' WHERE id = $1`, "arguments"},
			{`UPDATE approvals SET args_hash = 'x' WHERE id = $1`, "arguments"},
			{`UPDATE approvals SET tool = 'file_list' WHERE id = $1`, "tool"},
			{`UPDATE approvals SET agent_id = (SELECT id FROM agents WHERE name = 'other') WHERE id = $1`, "agent"},
			{`UPDATE calls SET args = '{"content":"a","path":"/shared/evil"}' WHERE id = (SELECT call_id FROM approvals WHERE id = $1)`, "arguments"},
		} {
			res := parked(t, h, "clerk", fmt.Sprint("/shared/", i))
			w.exec(t, c.query, res.ApprovalID)
			at := "/api/approvals/" + res.ApprovalID + "/decision"
			if p := refused(t, h.Do("POST", at, object{"decision": "approve"}), 409, reeve.Conflict); !strings.Contains(p.Detail, c.word) || !strings.Contains(p.Hint, "deny") {
				t.Errorf("%s: %+v", c.query, p)
			}
			h.Settle(t.Context())
			if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID, nil)); op.State != reeve.Parked {
				t.Errorf("%s: %s", c.query, op.State)
			}
			h.Want(200, nil, "POST", at, object{"decision": "deny"})
		}
		res := parked(t, h, "clerk", "/shared/as it was")
		h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
		h.Settle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID, nil)); op.State != reeve.Committed {
			t.Errorf("one that nobody changed: %s", op.State)
		}
	})
}

// A profile that is damaged grants nothing, and says so: to the agents of that kind, in the list and to the doctor. Setting it again mends it.
func TestI09_ADamagedProfileGrantsNothing(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		h.Agent("hurt", "file_list")
		h.Agent("well", "file_list")
		h.Want(200, nil, "PATCH", "/api/agents/hurt", object{"kind": "clerk"})
		for _, value := range []string{"x", "", "{}", `["files.read"`, "1"} {
			h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{"files.read"}})
			w.exec(t, `UPDATE profiles SET capabilities = $1 WHERE kind = 'clerk'`, value)
			define(t, h, object{"id": "fresh_" + reeve.Secret(4)}) // has it read again
			if p := refused(t, h.Do("POST", "/api/agents/hurt/calls", object{"tool": "file_list", "args": object{"path": "/"}}), 403, reeve.OutOfScope); !strings.Contains(p.Detail, "clerk") || !strings.Contains(p.Detail, "damaged") ||
				!strings.Contains(p.Hint, "reeve profiles set clerk") {
				t.Errorf("%q: %+v", value, p)
			}
			if res := h.Call("well", "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("%q: another kind: %+v", value, res)
			}
			list := decode[api.ProfileList](t, h.Want(200, nil, "GET", "/api/profiles", nil)).Profiles
			if i := slices.IndexFunc(list, func(p reeve.Profile) bool { return p.Kind == "clerk" }); i < 0 || list[i].Broken == "" {
				t.Errorf("%q: listed %+v", value, list)
			}
			if said := ailing(t, h, "profiles"); len(said) != 1 || !strings.HasPrefix(said[0], "clerk: ") {
				t.Errorf("%q: the doctor says %q", value, said)
			}
		}
		h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{"files.read"}})
		if res := h.Call("hurt", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("mended: %+v", res)
		}
		h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{}}) // which is none, and no damage
		if said := ailing(t, h, "profiles"); said != nil {
			t.Errorf("mended: the doctor says %q", said)
		}
	})
}

// Numbers of a damaged state are as good as its JSON: it says so, the doctor names it, and setting the slots mends it.
func TestI09_ADamagedNumberOfAStateIsSetAgain(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("clerk", "file_list")
		h.Want(200, nil, "PUT", "/api/agents/clerk/state", object{"revision": 0, "slots": object{"primary_goal": "one"}})
		var value any = -1
		if w.cfg.Database == "" { // where a column of numbers takes anything
			value = "x"
		}
		for _, column := range []string{"revision", "counter", "seen"} {
			w.exec(t, `UPDATE agent_states SET `+column+` = $1 WHERE agent_id = $2`, value, a.ID)
			want := "the row of its state in the database is damaged: " + column + " cannot be read"
			is := decode[reeve.AgentState](t, h.Want(200, nil, "GET", "/api/agents/clerk/state", nil))
			if said := ailing(t, h, "agents"); is.Broken != want || !slices.Equal(said, []string{"clerk: " + want}) {
				t.Errorf("it says %q, the doctor %q", is.Broken, said)
			}
			h.Want(200, nil, "PUT", "/api/agents/clerk/state", object{"revision": is.Revision, "slots": object{"primary_goal": "one"}})
			if now := decode[reeve.AgentState](t, h.Want(200, nil, "GET", "/api/agents/clerk/state", nil)); now.Broken != "" || now.Slots.PrimaryGoal != "one" {
				t.Errorf("set again: %+v", now)
			}
		}
		if said := ailing(t, h, "agents"); len(said) > 0 {
			t.Errorf("still broken: %q", said)
		}
	})
}

// A call or a message that cannot be read is left out of its thread, and named.
func TestI09_ADamagedEntryIsLeftOut(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		h.Agent("clerk", "file_list")
		res := h.Call("clerk", "file_list", object{"path": "/"})
		next := h.Call("clerk", "file_list", object{"path": "/"})
		w.exec(t, `UPDATE calls SET request = 'x' WHERE id = $1`, res.CallID)
		for _, limit := range []int{1, 2, 500} {
			var ids []string
			for cursor := ""; ; {
				list := decode[api.MessageList](t, h.Want(200, nil, "GET", fmt.Sprintf("/api/agents/clerk/messages?limit=%d&cursor=%s", limit, cursor), nil))
				for _, m := range list.Messages {
					ids = append(ids, m.ID)
				}
				if cursor = list.Next; cursor == "" {
					break
				}
			}
			if len(ids) != 2 || ids[0] != next.CallID {
				t.Errorf("listed in pages of %d: %q", limit, ids)
			}
		}
		if !spoilt(t, h, "calls", res.CallID) {
			t.Errorf("the doctor says %q", ailing(t, h, "rows"))
		}
	})
}
