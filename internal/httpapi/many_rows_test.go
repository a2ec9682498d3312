package httpapi_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// duplicateRow inserts n copies of one row of a table. In the assignments of set, # is the number of the copy.
func duplicateRow(t *testing.T, env testEnv, table string, n int, set string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TEMP TABLE one AS SELECT * FROM %s LIMIT 1;", table)
	for i := range n {
		fmt.Fprintf(&b, "UPDATE one SET %s; INSERT INTO %s SELECT * FROM one;",
			strings.ReplaceAll(set, "#", fmt.Sprintf("%05d", i)), table)
	}
	execSQLite(t, env, b.String())
}

// A member's script jobs are listed even if other users have more jobs than fit on a page.
func TestO11_OwnScriptJobsAmongMany(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	ann := createUserToken(t, h, "ann", reeve.Member)
	h.Want(201, nil, "POST", "/api/automations", object{"name": "mill"})
	h.Want(201, nil, "POST", "/api/automations/mill/plan", object{"request": "grind"}, ann...)
	h.Stop()
	duplicateRow(t, env, "script_jobs", 250, "id = 'z#', run_key = 'z#', user_id = 'bob'")
	h = env.start(t)
	const path = "/api/automations/mill/script-jobs"
	list := decode[api.ScriptJobList](t, h.Want(200, nil, "GET", path, nil, ann...)).ScriptJobs
	if len(list) != 1 || list[0].UserID != "ann" {
		t.Errorf("ann sees %d script jobs", len(list))
	}
}

// The list of models has every agent, even if there are more than fit on a page.
func TestW23_AllAgentsAreListedAsModels(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	h.Agent("coach")
	h.Stop()
	execSQLite(t, env, "DELETE FROM agents WHERE name <> 'coach'")
	duplicateRow(t, env, "agents", 1200, "id = 'z#', name = 'z#'")
	h = env.start(t)
	list := decode[struct{ Data []struct{ ID string } }](t, h.Want(200, nil, "GET", "/v1/models", nil)).Data
	if n := len(list); n < 1201 || list[n-1].ID != "z01199" {
		t.Errorf("%d models", n)
	}
}

// The inbox and the status report when more entries wait than they return.
func TestI10_InboxReportsMore(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t, testTools()...)
	h.Call(h.Agent("a", "lose_outcome").ID, "lose_outcome", nil)
	for i, n := range []int{200, 201} {
		h.Stop()
		duplicateRow(t, env, "calls", []int{199, 1}[i], fmt.Sprintf("id = 'z%d#', operation_id = 'z%d#'", n, n))
		h = env.start(t, testTools()...)
		in := decode[api.Inbox](t, h.Want(200, nil, "GET", "/api/inbox", nil))
		s := decode[api.Status](t, h.Want(200, nil, "GET", "/api/status", nil))
		if want := min(n, 200); len(in.Unknown) != want || s.Waiting != want || in.More != (n > 200) ||
			s.More != (n > 200) {
			t.Errorf("of %d: %d, %v; %d, %v", n, len(in.Unknown), in.More, s.Waiting, s.More)
		}
	}
}

// The memory for a message with many parts grows linearly with its length. An invalid field after the message is still
// reported.
func TestW23_MessageWithManyParts(t *testing.T) {
	h := startServer(t)
	h.Agent("coach")
	var parts []object
	for range 20_000 {
		parts = append(parts, object{"type": "text", "text": strings.Repeat("word ", 20)})
	}
	body, err := json.Marshal(object{"model": "coach", "tool_choice": "nonsense",
		"messages": []object{{"role": "user", "content": parts}}})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := h.Want(400, nil, "POST", "/v1/chat/completions", string(body))
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 || !strings.Contains(string(r.Body), "tool_choice") {
		t.Errorf("it took %d MB: %s", took>>20, r.Body)
	}
}

// The details of a turn have all of its messages, because the last one is the answer.
func TestW14_LongTurnIsComplete(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	h.Agent("coach")
	c := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "coach"}))
	turn := decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "hi"}))
	h.Stop()
	duplicateRow(t, env, "messages", 2100, "id = 'z#'")
	h = env.start(t)
	list := decode[api.TurnDetail](t, h.Want(200, nil, "GET", "/api/turns/"+turn.ID, nil)).Messages
	if len(list) != 2101 || list[2100].ID != "z02099" {
		t.Errorf("%d messages", len(list))
	}
}

// A response can be read after its agent is deleted.
func TestW23_ResponseOutlivesAgent(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	a := h.Agent("coach")
	c := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "coach"}))
	turn := decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "hi"}))
	h.Want(204, nil, "DELETE", "/api/agents/coach", nil)
	got := decode[struct{ ID, Status, Model string }](t, h.Want(200, nil, "GET", "/v1/responses/resp_"+turn.ID, nil))
	if got.ID != "resp_"+turn.ID || got.Status != "failed" || got.Model != a.ID {
		t.Errorf("%+v", got)
	}
}
