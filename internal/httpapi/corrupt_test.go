package httpapi_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// read reads one value from the database behind Reeve's back.
func (w world) read(t *testing.T, query string, args ...any) (v any) {
	t.Helper()
	db := w.database(t)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// database opens the database that a server uses, as another program would.
func (w world) database(t *testing.T) *sql.DB {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(w.cfg.Dir, "reeve.db")+"?_pragma=busy_timeout(5000)"
	if w.cfg.Database != "" {
		driver, source = "pgx", w.cfg.Database
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// exec changes the database behind Reeve's back, as a failing disk or somebody's editor does.
func (w world) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	db := w.database(t)
	defer db.Close()
	res, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%s changed nothing: %v", query, err)
	}
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
		h.Want(200, nil, "PATCH", "/api/agents/"+n, object{"policy": object{"tools": object{"file_write": "ask"}},
			"config": object{"rehearsal": object{"output": "done"}}})
	}
}

// firstRun waits for an agent's first run to end.
func firstRun(t *testing.T, h *reevetest.Host, agent string) reeve.Run {
	t.Helper()
	for deadline := reeve.Now().Add(30 * time.Second); reeve.Now().Before(deadline); {
		h.RunUntilIdle(t.Context())
		for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent="+agent, nil)).Runs {
			if r.State.IsFinal() {
				return r
			}
		}
	}
	t.Fatal("it did not run")
	return reeve.Run{}
}

// corrupt checks that an answer is the error of a row that cannot be read, and that it names the row and the doctor.
func corrupt(t *testing.T, a reevetest.Reply, table, id string) {
	t.Helper()
	p := refused(t, a, http.StatusInternalServerError, reeve.Corrupt)
	if !strings.Contains(p.Detail, `row "`+id+`" in table `+table+` cannot be read`) ||
		!strings.Contains(p.Hint, "reeve doctor") {
		t.Errorf("problem %+v", p)
	}
}

// corruptRows reads what the doctor says of rows.
func corruptRows(t *testing.T, h *reevetest.Host) string {
	t.Helper()
	return strings.Join(ailing(t, h, "rows"), "; ")
}

// listed checks that the doctor names a row.
func listed(t *testing.T, h *reevetest.Host, table, id string) {
	t.Helper()
	if said := corruptRows(t, h); !strings.Contains(said, `row "`+id+`" in table `+table+` cannot be read`) {
		t.Errorf("the doctor does not name %s of %s: %q", id, table, said)
	}
}

// reread makes the gate read again what it judges calls by.
func reread(t *testing.T, h *reevetest.Host) {
	t.Helper()
	define(t, h, object{"id": "fresh_" + reeve.RandomSecret(4)})
}

// A single read and a list of a row that cannot be read fail and name the row; the doctor lists it, and says nothing of
// it once it is corrected.
func TestI09_ACorruptRowIsNamed(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "clerk")
		a := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/clerk", nil))
		define(t, h, object{"id": "weather"})
		res := parked(t, h, "clerk", "/shared/a")
		h.Want(201, nil, "POST", "/api/agents/clerk/wake", object{})
		run := firstRun(t, h, "clerk")
		h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{"files.read"}})
		h.Want(200, nil, "PUT", "/api/budgets/agent:clerk", object{"limit": object{"calls": 1000}})
		h.Want(200, nil, "PUT", "/api/agents/clerk/state",
			object{"revision": 0, "slots": object{"primary_goal": "one"}})
		category := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories",
			reeve.CategoryRequest{Name: "Gym"}))
		task := decode[reeve.Task](t, h.Want(201, nil, "POST", "/api/journal/tasks",
			reeve.TaskDraft{CategoryID: category.ID, Title: "t"}))
		schedule := decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
			object{"agent": "clerk", "name": "n", "goal": "g", "cadence_type": "cron", "cadence_value": "0 7 1 1 *"}))
		if said := corruptRows(t, h); said != "" {
			t.Fatalf("before anything is changed, the doctor says %q", said)
		}
		cases := []struct {
			table, key, id, column string
			value                  any
			paths                  []string
		}{
			{"agents", "id", a.ID, "policy", "{", []string{"/api/agents/clerk", "/api/agents"}},
			{"tools", "id", "weather", "parameters", "{", []string{"/api/tools/weather", "/api/tools", "/api/status"}},
			{"calls", "id", res.CallID, "spent", "x", []string{"/api/operations/" + res.OperationID,
				"/api/operations"}},
			{"calls", "id", res.CallID, "request", "x", []string{"/api/agents/clerk/messages"}},
			{"runs", "id", run.ID, "issues", "x", []string{"/api/runs/" + run.ID, "/api/runs"}},
			{"profiles", "kind", "clerk", "capabilities", "", []string{"/api/profiles"}},
			{"budgets", "subject", "agent:" + a.ID, "limit_calls", -1, []string{"/api/budgets"}},
			{"agent_states", "agent_id", a.ID, "slots", "{", []string{"/api/agents/clerk/state"}},
			{"tasks", "id", task.ID, "clock", "{", []string{"/api/journal/tasks/" + task.ID, "/api/journal/tasks"}},
			{"timers", "id", schedule.ID, "on_behalf_of", "{", []string{"/api/schedules/" + schedule.ID,
				"/api/schedules"}},
		}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			cases = append(cases, struct {
				table, key, id, column string
				value                  any
				paths                  []string
			}{"approvals", "id", res.ApprovalID, "created_at", "x", []string{"/api/approvals/" + res.ApprovalID,
				"/api/approvals", "/api/inbox"}})
		}
		for _, c := range cases {
			was := w.read(t, `SELECT `+c.column+` FROM `+c.table+` WHERE `+c.key+` = $1`, c.id)
			set := `UPDATE ` + c.table + ` SET ` + c.column + ` = $1 WHERE ` + c.key + ` = $2`
			w.exec(t, set, c.value, c.id)
			for _, path := range c.paths {
				corrupt(t, h.Do("GET", path, nil), c.table, c.id)
			}
			listed(t, h, c.table, c.id)
			w.exec(t, set, was, c.id)
			for _, path := range c.paths {
				h.Want(200, nil, "GET", path, nil)
			}
			if said := corruptRows(t, h); said != "" {
				t.Errorf("%s is corrected, and the doctor says %q", c.table, said)
			}
		}
	})
}

// An agent whose row cannot be read does nothing, whatever the row may have allowed. The server starts, other agents
// act, and so does this one once its row is corrected.
func TestI09_CorruptAgentCannotAct(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		cases := []struct{ column, value string }{{"policy", "{"}, {"policy", ""}, {"policy", "null"},
			{"policy", `{"tool":{"file_list":"deny"}}`},
			{"policy", `{"tools":{"file_list":"never"}}`}, {"policy", `{} {}`}, {"categories", ""},
			{"categories", "{}"}, {"config", ""}, {"config", "[]"},
			{"lifecycle", "zzz"}, {"mode", ""}, {"kind", "Not A Kind"}, {"clock", "{"}}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			cases = append(cases, struct{ column, value string }{"stopped_at", "x"},
				struct{ column, value string }{"throttle_ms", "x"})
		}
		h.Agent("well", "file_list")
		ids, talks, before := make([]string, len(cases)), make([]string, len(cases)), make([]any, len(cases))
		name := func(i int) string { return fmt.Sprintf("a%02d", i) }
		for i, c := range cases {
			ids[i] = h.Agent(name(i), "file_list").ID
			h.Want(200, nil, "PATCH", "/api/agents/"+name(i),
				object{"config": object{"rehearsal": object{"output": "it ran"}}})
			talks[i] = decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations",
				object{"agent": name(i)})).ID
			h.Want(201, nil, "POST", "/api/schedules", object{"agent": name(i), "goal": "g", "cadence_type": "cron",
				"cadence_value": "0 7 1 1 *"})
			before[i] = w.read(t, `SELECT `+c.column+` FROM agents WHERE id = $1`, ids[i])
		}
		for i, c := range cases {
			w.exec(t, `UPDATE agents SET `+c.column+` = $1 WHERE id = $2`, c.value, ids[i])
		}
		h.Stop()
		h = w.start(t, tricks()...)
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		for i := range cases {
			corrupt(t, h.Do("POST", "/api/agents/"+name(i)+"/calls", call), "agents", ids[i])
			corrupt(t, h.Do("POST", "/api/agents/"+name(i)+"/wake", object{}), "agents", ids[i])
			corrupt(t, h.Do("POST", "/api/conversations/"+talks[i]+"/turns", object{"content": "hello"}), "agents",
				ids[i])
			listed(t, h, "agents", ids[i])
			w.exec(t, `UPDATE timers SET next_at = 1 WHERE agent_id = $1`, ids[i])
		}
		if res := h.Call("well", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another agent's call: %+v", res)
		}
		h.Want(201, nil, "POST", "/api/agents/well/wake", object{})
		firstRun(t, h, "well")
		for i, c := range cases {
			w.exec(t, `UPDATE agents SET `+c.column+` = $1 WHERE id = $2`, before[i], ids[i])
			for _, run := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent="+ids[i], nil)).Runs {
				if run.State != reeve.RunFailed || run.Code != reeve.Corrupt {
					t.Errorf("%s of %q: its schedule ran: %+v", c.column, c.value, run)
				}
			}
			if res := h.Call(name(i), "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("%s of %q, corrected: %+v", c.column, c.value, res)
			}
		}
	})
}

// A tool whose row cannot be read is not called, and every other tool is. The row of a built-in tool is written anew at
// the next start.
func TestI09_ACorruptToolIsNotCalled(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		columns := []string{"parameters", "spec", "retry", "config_schema", "identity", "cost"}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			columns = append(columns, "timeout_ms", "previews", "version", "created_at", "async")
		}
		h.Agent("coach", "file_list", "file_read")
		for _, column := range columns {
			define(t, h, object{"id": "bad_" + column, "config_schema": object{"type": "object"}})
			h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "bad_" + column})
			w.exec(t, `UPDATE tools SET `+column+` = '{"type": ' WHERE id = $1`, "bad_"+column)
		}
		w.exec(t, `UPDATE tools SET retry = '{' WHERE id = 'file_read'`)
		listed(t, h, "tools", "file_read")
		h.Stop()
		h = w.start(t)
		for _, column := range columns {
			listed(t, h, "tools", "bad_"+column)
			refused(t, h.Do("POST", "/api/agents/coach/calls",
				object{"tool": "bad_" + column, "args": object{"place": "here"}}), 404, reeve.NotFound)
			corrupt(t, h.Do("GET", "/api/tools/bad_"+column, nil), "tools", "bad_"+column)
		}
		if res := h.Call("coach", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another tool: %+v", res)
		}
		if said := corruptRows(t, h); strings.Contains(said, "file_read") {
			t.Errorf("a built-in tool: %q", said)
		}
		for _, column := range columns {
			h.Want(204, nil, "DELETE", "/api/tools/bad_"+column, nil)
		}
		h.Want(200, nil, "GET", "/api/tools", nil)
	})
}

// A corrupt limit of an agent (tool settings, profile or budget) forbids the calls that need it. Other calls still
// work.
func TestI09_ACorruptLimitForbids(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		hurt := h.Agent("hurt", "file_list")
		h.Agent("well", "file_list")
		h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{"files.read"}})
		h.Want(200, nil, "PATCH", "/api/agents/hurt", object{"kind": "clerk"})
		h.Want(200, nil, "PUT", "/api/budgets/agent:hurt", object{"limit": object{"calls": 1000}})
		cases := []struct {
			table, column, key, id, named string
			values                        []any
		}{
			{"agent_tools", "config", "agent_id", hurt.ID, hurt.ID + "/file_list",
				[]any{`{"a`, "null", "[]", "1", " "}},
			{"profiles", "capabilities", "kind", "clerk", "clerk", []any{"x", "", "{}", `["files.read"`, "1"}},
			{"budgets", "limit_calls", "subject", "agent:" + hurt.ID, "agent:" + hurt.ID, []any{-1}},
			{"budgets", "used_calls", "subject", "agent:" + hurt.ID, "agent:" + hurt.ID, []any{-9000000000000000000}},
		}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			cases[2].values = append(cases[2].values, "x", 1.5)
			cases[3].values = append(cases[3].values, "x", []byte{0})
		}
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		for _, c := range cases {
			was := w.read(t, `SELECT `+c.column+` FROM `+c.table+` WHERE `+c.key+` = $1`, c.id)
			set := `UPDATE ` + c.table + ` SET ` + c.column + ` = $1 WHERE ` + c.key + ` = $2`
			for _, value := range c.values {
				w.exec(t, set, value, c.id)
				reread(t, h)
				corrupt(t, h.Do("POST", "/api/agents/hurt/calls", call), c.table, c.named)
				listed(t, h, c.table, c.named)
				if res := h.Call("well", "file_list", object{"path": "/"}); res.IsError {
					t.Errorf("%s of %v: another agent's call: %+v", c.column, value, res)
				}
			}
			w.exec(t, set, was, c.id)
			reread(t, h)
			if res := h.Call("hurt", "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("%s, corrected: %+v", c.column, res)
			}
		}
	})
}

// A budget whose use has reached the largest integer has nothing left.
func TestG17_BudgetUseAtMaximum(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		a := h.Agent("a", "file_list")
		h.Want(200, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 2}})
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		w.exec(t, `UPDATE budgets SET used_calls = 9223372036854775807 WHERE subject = $1`, "agent:"+a.ID)
		h.Want(http.StatusPaymentRequired, nil, "POST", "/api/agents/a/calls", call)
		h.Want(200, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"tokens": 5}})
		h.Want(200, nil, "POST", "/api/agents/a/calls", call)
		for _, b := range decode[api.BudgetList](t, h.Want(200, nil, "GET", "/api/budgets", nil)).Budgets {
			if b.Used.Calls != math.MaxInt64 {
				t.Errorf("%d calls are used", b.Used.Calls)
			}
		}
	})
}

// A secret is taken out of what is shown, also when something else of its row cannot be read.
func TestI09_ASecretOfACorruptRowIsScrubbed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t, trick("leak", reeve.Read, "", says("the word is opensesame-4711-xyz", nil)))
	h.Agent("a", "leak")
	h.Want(204, nil, "PUT", "/api/secrets/WORD", object{"value": "opensesame-4711-xyz"})
	w.exec(t, `UPDATE secrets SET updated_at = 'x'`)
	reread(t, h)
	if res := h.Call("a", "leak", nil); res.IsError || strings.Contains(res.Content, "opensesame") {
		t.Errorf("%+v", res)
	}
	corrupt(t, h.Do("GET", "/api/secrets", nil), "secrets", "WORD")
}

// An operation that cannot be read is not carried out, and holds up no other. The log names it once, the doctor as long
// as it is so.
func TestI09_CorruptOperationDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		said := &bytes.Buffer{}
		w.cfg.Log = slog.New(slog.NewTextHandler(said, nil))
		h := w.start(t)
		asking(t, h, "hurt", "well")
		values := map[string]any{"spent": "x", "undo": "{"}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			values["tries"], values["created_at"], values["deferred"], values["timeout_at"],
				values["next_attempt_at"] = "x", "x", "x", "x", "x"
		}
		var bad []string
		for column, value := range values {
			res := parked(t, h, "hurt", "/shared/"+column)
			h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
			w.exec(t, `UPDATE calls SET `+column+` = $1 WHERE id = $2`, value, res.CallID)
			bad = append(bad, res.CallID)
		}
		// whose approval is over, which is found before anything is taken up
		late := parked(t, h, "hurt", "/shared/late")
		w.exec(t, `UPDATE approvals SET expires_at = 1 WHERE id = $1`, late.ApprovalID)
		w.exec(t, `UPDATE calls SET spent = 'x' WHERE id = $1`, late.CallID)
		good := parked(t, h, "well", "/shared/well")
		h.Want(200, nil, "POST", "/api/approvals/"+good.ApprovalID+"/decision", object{"decision": "approve"})
		h.RunUntilIdle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+good.OperationID,
			nil)); op.State != reeve.Committed {
			t.Errorf("the other one is %s", op.State)
		}
		for _, id := range append(bad, late.CallID) {
			listed(t, h, "calls", id)
			if state := w.read(t, `SELECT state FROM calls WHERE id = $1`, id); state != "prepared" &&
				state != "parked" {
				t.Errorf("%s is %v", id, state)
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

// A schedule or a wake that cannot be read is disabled or skipped, and holds up no other.
func TestI09_CorruptWakeDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "hurt", "well")
		schedule := func(agent string) string {
			return decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
				object{"agent": agent, "name": "n", "goal": "g", "cadence_type": "cron",
					"cadence_value": "0 7 * * *"})).ID
		}
		columns := map[string][]string{"timers": {"on_behalf_of"}, "wakes": {"on_behalf_of"}}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			columns["timers"] = append(columns["timers"], "next_at", "failures", "missed", "last_at", "created_at")
			columns["wakes"] = append(columns["wakes"], "due_at", "scheduled_at", "created_at")
		}
		bad := map[string][]string{}
		for _, column := range columns["timers"] {
			id := schedule("hurt")
			w.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, id)
			w.exec(t, `UPDATE timers SET `+column+` = 'x' WHERE id = $1`, id)
			bad["timers"] = append(bad["timers"], id)
		}
		for _, column := range columns["wakes"] {
			key := decode[reeve.Wake](t, h.Want(201, nil, "POST", "/api/agents/hurt/wake", object{})).RunKey
			w.exec(t, `UPDATE wakes SET `+column+` = 'x' WHERE run_key = $1`, key)
			bad["wakes"] = append(bad["wakes"], key)
		}
		w.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, schedule("well"))
		if run := firstRun(t, h, "well"); run.State != reeve.RunCompleted {
			t.Errorf("the other schedule: %+v", run)
		}
		for table, ids := range bad {
			for _, id := range ids {
				listed(t, h, table, id)
			}
		}
		if runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent=hurt", nil)).Runs; len(runs) != 0 {
			t.Errorf("it ran: %+v", runs)
		}
		if state := w.read(t, `SELECT state FROM timers WHERE id = $1`, bad["timers"][0]); state != "disabled" {
			t.Errorf("the schedule is %v", state)
		}
		if state := w.read(t, `SELECT state FROM wakes WHERE run_key = $1`, bad["wakes"][0]); state != "skipped" {
			t.Errorf("the wake is %v", state)
		}
	})
}

// A run with a corrupt row is not resumed. Other runs are.
func TestI09_CorruptRunDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "hurt", "well")
		ids := map[string]string{}
		for _, agent := range []string{"hurt", "well"} {
			h.Want(201, nil, "POST", "/api/agents/"+agent+"/wake", object{})
			ids[agent] = firstRun(t, h, agent).ID
		}
		h.Stop()
		for _, agent := range []string{"hurt", "well"} { // as a server that is gone left them
			w.exec(t, `UPDATE runs SET state = 'running', owner = '', finished_at = 0 WHERE id = $1`, ids[agent])
			w.exec(t, `INSERT INTO open_runs (run_id, agent_id, session_id, parent_id, turn, lane, seen)
				SELECT id, agent_id, session_id, '', 0, '', 0 FROM runs WHERE id = $1`, ids[agent])
		}
		w.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, ids["hurt"])
		h = w.start(t)
		if run := firstRun(t, h, "well"); run.State != reeve.RunCompleted {
			t.Errorf("%+v", run)
		}
		listed(t, h, "runs", ids["hurt"])
		corrupt(t, h.Do("GET", "/api/runs", nil), "runs", ids["hurt"])
	})
}

// A run ends also when what it spent cannot be read.
func TestI09_ARunEndsDespiteACorruptCall(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		asking(t, h, "clerk")
		h.Want(200, nil, "PATCH", "/api/agents/clerk", object{"config": object{"rehearsal": object{
			"steps":  []object{{"tool": "file_write", "args": object{"path": "/shared/a", "content": "a"}}},
			"output": "done"}}})
		h.Want(201, nil, "POST", "/api/agents/clerk/wake", object{})
		h.RunUntilIdle(t.Context())
		a := decode[api.ApprovalList](t, h.Want(200, nil, "GET", "/api/approvals", nil)).Approvals[0]
		run := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent=clerk", nil)).Runs[0]
		w.exec(t, `INSERT INTO messages (id, workspace_id, thread_id, agent_id, run_id, kind, content, metadata, created_at)
			SELECT 'msg_corrupt', workspace_id, 'elsewhere', agent_id, id, 'thought', '', '{', 1 FROM runs WHERE id = $1`, run.ID)
		h.Want(200, nil, "POST", "/api/runs/"+run.ID+"/cancel", object{})
		if now := firstRun(t, h, "clerk"); now.State != reeve.RunCancelled {
			t.Errorf("%+v of approval %s", now, a.ID)
		}
		listed(t, h, "messages", "msg_corrupt")
	})
}

// A server starts with a workspace that cannot be read. Nothing in it goes on; the others do.
func TestI09_CorruptWorkspaceIsStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "other", "name": "Other"})
	h.Agent("clerk", "file_list")
	h.Stop()
	w.exec(t, `UPDATE workspaces SET revision = 'x' WHERE id = 'other'`)
	h = w.start(t)
	if res := h.Call("clerk", "file_list", object{"path": "/"}); res.IsError {
		t.Errorf("%+v", res)
	}
	listed(t, h, "workspaces", "other")
	corrupt(t, h.Do("GET", "/api/tools", nil, "X-Workspace-Id", "other"), "workspaces", "other")
	h.Stop()
	w.exec(t, `UPDATE workspaces SET stopped_at = 'x' WHERE id = 'default'`)
	h = w.start(t)
	corrupt(t, h.Do("POST", "/api/agents/clerk/calls", object{"tool": "file_list", "args": object{"path": "/"}}),
		"workspaces", "default")
	listed(t, h, "workspaces", "default")
}

// A token with a corrupt row is not valid, because it may be revoked. Other tokens stay valid, and the doctor names the
// row.
func TestI09_ACorruptTokenIsNotValid(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		values := map[string]any{"user_name": "", "role": ""}
		if w.cfg.Database == "" { // where a column of numbers takes anything
			values["expires_at"], values["revoked_at"] = "x", "x"
		}
		for column, value := range values {
			bob := person(t, h, "bob", reeve.Member)
			h.Want(200, nil, "GET", "/api/conversations", nil, bob...)
			list := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens
			id := list[slices.IndexFunc(list, func(a reeve.AccessToken) bool { return a.User == "bob" })].ID
			w.exec(t, `UPDATE access_tokens SET `+column+` = $1 WHERE id = $2`, value, id)
			refused(t, h.Do("GET", "/api/conversations", nil, bob...), 401, reeve.Unauthenticated)
			corrupt(t, h.Do("GET", "/api/tokens", nil), "access_tokens", id)
			listed(t, h, "access_tokens", id)
			w.exec(t, `DELETE FROM access_tokens WHERE id = $1`, id)
		}
	})
}

// A run that cannot be read is not said to be gone, as a plan or a response either: somebody would plan, or ask, again.
func TestI09_CorruptRunIsNotReportedMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.start(t)
	plan := furnishAutomation(t, h).plan
	h.Agent("coach")
	c := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "coach"}))
	turn := decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "hi"}))
	for id, paths := range map[string][]string{plan: {"/api/runs/" + plan, "/api/plans/" + plan},
		turn.ID: {"/api/turns/" + turn.ID, "/v1/responses/resp_" + turn.ID}} {
		w.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, id)
		for _, path := range paths {
			h.Want(500, nil, "GET", path, nil)
		}
	}
	r := h.Want(500, nil, "POST", "/v1/responses", object{"model": "coach", "input": "and?",
		"previous_response_id": "resp_" + turn.ID})
	if strings.Contains(string(r.Body), "previous_response_not_found") {
		t.Errorf("%s", r.Body)
	}
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
			if p := refused(t, h.Do("POST", at, object{"decision": "approve"}), 409,
				reeve.Conflict); !strings.Contains(p.Detail, c.word) || !strings.Contains(p.Hint, "deny") {
				t.Errorf("%s: %+v", c.query, p)
			}
			h.RunUntilIdle(t.Context())
			if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID,
				nil)); op.State != reeve.Parked {
				t.Errorf("%s: %s", c.query, op.State)
			}
			h.Want(200, nil, "POST", at, object{"decision": "deny"})
		}
		res := parked(t, h, "clerk", "/shared/as it was")
		h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
		h.RunUntilIdle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID,
			nil)); op.State != reeve.Committed {
			t.Errorf("one that nobody changed: %s", op.State)
		}
	})
}
