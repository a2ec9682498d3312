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

// queryValue reads one value from the database directly, not through the server.
func (env testEnv) queryValue(t *testing.T, query string, args ...any) (v any) {
	t.Helper()
	db := env.openDatabase(t)
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// openDatabase opens a separate connection to the database of the server.
func (env testEnv) openDatabase(t *testing.T) *sql.DB {
	t.Helper()
	driver, source := "sqlite", "file:"+filepath.Join(env.cfg.Dir, "reeve.db")+"?_pragma=busy_timeout(5000)"
	if env.cfg.Database != "" {
		driver, source = "pgx", env.cfg.Database
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// exec changes the database directly, as a failing disk or another program could. It fails the test if no row changes.
func (env testEnv) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	db := env.openDatabase(t)
	defer db.Close()
	res, err := db.ExecContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		t.Fatalf("%s changed nothing: %v", query, err)
	}
}

// parkCall makes a call that waits for approval and returns its result.
func parkCall(t *testing.T, h *reevetest.Host, agent, path string) reeve.Result {
	t.Helper()
	res := h.Call(agent, "file_write", object{"path": path, "content": "a"})
	if res.ApprovalID == "" {
		t.Fatalf("not parked: %+v", res)
	}
	return res
}

func createAskingAgents(t *testing.T, h *reevetest.Host, names ...string) {
	t.Helper()
	for _, n := range names {
		h.Agent(n, "file_write", "file_list")
		h.Want(200, nil, "PATCH", "/api/agents/"+n, object{"policy": object{"tools": object{"file_write": "ask"}},
			"config": object{"rehearsal": object{"output": "done"}}})
	}
}

// waitForFirstRun waits for an agent's first run to end.
func waitForFirstRun(t *testing.T, h *reevetest.Host, agent string) reeve.Run {
	t.Helper()
	for deadline := reeve.Now().Add(30 * time.Second); reeve.Now().Before(deadline); {
		h.RunUntilIdle(t.Context())
		for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent="+agent, nil)).Runs {
			if r.State.IsFinal() {
				return r
			}
		}
	}
	t.Fatal("the agent did not run")
	return reeve.Run{}
}

// wantCorrupt checks that a response is the error of a corrupt row. The error must name the row and refer to reeve
// doctor.
func wantCorrupt(t *testing.T, a reevetest.Reply, table, id string) {
	t.Helper()
	p := wantProblem(t, a, http.StatusInternalServerError, reeve.Corrupt)
	if !strings.Contains(p.Detail, `row "`+id+`" in table `+table+` cannot be read`) ||
		!strings.Contains(p.Hint, "reeve doctor") {
		t.Errorf("problem %+v", p)
	}
}

// getCorruptRows returns the doctor's report on corrupt rows.
func getCorruptRows(t *testing.T, h *reevetest.Host) string {
	t.Helper()
	return strings.Join(getDoctorProblems(t, h, "rows"), "; ")
}

// wantReportedCorrupt checks that the doctor reports a row as corrupt.
func wantReportedCorrupt(t *testing.T, h *reevetest.Host, table, id string) {
	t.Helper()
	if report := getCorruptRows(t, h); !strings.Contains(report, `row "`+id+`" in table `+table+` cannot be read`) {
		t.Errorf("doctor does not report %s of %s: %q", id, table, report)
	}
}

// reloadGate makes the gate reload its cached agents, tools and limits, by defining a tool.
func reloadGate(t *testing.T, h *reevetest.Host) {
	t.Helper()
	defineTool(t, h, object{"id": "fresh_" + reeve.RandomSecret(4)})
}

// Reading or listing a corrupt row fails with an error that names the row. The doctor reports the row until it is
// corrected.
func TestI09_CorruptRowIsReported(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		createAskingAgents(t, h, "clerk")
		a := decode[reeve.Agent](t, h.Want(200, nil, "GET", "/api/agents/clerk", nil))
		defineTool(t, h, object{"id": "weather"})
		res := parkCall(t, h, "clerk", "/shared/a")
		h.Want(201, nil, "POST", "/api/agents/clerk/wake", object{})
		run := waitForFirstRun(t, h, "clerk")
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
		if report := getCorruptRows(t, h); report != "" {
			t.Fatalf("doctor reports %q before any change", report)
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
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			cases = append(cases, struct {
				table, key, id, column string
				value                  any
				paths                  []string
			}{"approvals", "id", res.ApprovalID, "created_at", "x", []string{"/api/approvals/" + res.ApprovalID,
				"/api/approvals", "/api/inbox"}})
		}
		for _, c := range cases {
			was := env.queryValue(t, `SELECT `+c.column+` FROM `+c.table+` WHERE `+c.key+` = $1`, c.id)
			set := `UPDATE ` + c.table + ` SET ` + c.column + ` = $1 WHERE ` + c.key + ` = $2`
			env.exec(t, set, c.value, c.id)
			for _, path := range c.paths {
				wantCorrupt(t, h.Do("GET", path, nil), c.table, c.id)
			}
			wantReportedCorrupt(t, h, c.table, c.id)
			env.exec(t, set, was, c.id)
			for _, path := range c.paths {
				h.Want(200, nil, "GET", path, nil)
			}
			if report := getCorruptRows(t, h); report != "" {
				t.Errorf("%s is corrected, but doctor reports %q", c.table, report)
			}
		}
	})
}

// An agent with a corrupt row cannot act, because its row might forbid it. The server starts and other agents act. The
// agent can act again once its row is corrected.
func TestI09_CorruptAgentCannotAct(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		cases := []struct{ column, value string }{{"policy", "{"}, {"policy", ""}, {"policy", "null"},
			{"policy", `{"tool":{"file_list":"deny"}}`},
			{"policy", `{"tools":{"file_list":"never"}}`}, {"policy", `{} {}`}, {"categories", ""},
			{"categories", "{}"}, {"config", ""}, {"config", "[]"},
			{"lifecycle", "zzz"}, {"mode", ""}, {"kind", "Not A Kind"}, {"clock", "{"}}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			cases = append(cases, struct{ column, value string }{"stopped_at", "x"},
				struct{ column, value string }{"throttle_ms", "x"})
		}
		h.Agent("intact", "file_list")
		ids, conversations, before := make([]string, len(cases)), make([]string, len(cases)), make([]any, len(cases))
		name := func(i int) string { return fmt.Sprintf("a%02d", i) }
		for i, c := range cases {
			ids[i] = h.Agent(name(i), "file_list").ID
			h.Want(200, nil, "PATCH", "/api/agents/"+name(i),
				object{"config": object{"rehearsal": object{"output": "it ran"}}})
			conversations[i] = decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations",
				object{"agent": name(i)})).ID
			h.Want(201, nil, "POST", "/api/schedules", object{"agent": name(i), "goal": "g", "cadence_type": "cron",
				"cadence_value": "0 7 1 1 *"})
			before[i] = env.queryValue(t, `SELECT `+c.column+` FROM agents WHERE id = $1`, ids[i])
		}
		for i, c := range cases {
			env.exec(t, `UPDATE agents SET `+c.column+` = $1 WHERE id = $2`, c.value, ids[i])
		}
		h.Stop()
		h = env.start(t, testTools()...)
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		for i := range cases {
			wantCorrupt(t, h.Do("POST", "/api/agents/"+name(i)+"/calls", call), "agents", ids[i])
			wantCorrupt(t, h.Do("POST", "/api/agents/"+name(i)+"/wake", object{}), "agents", ids[i])
			wantCorrupt(t, h.Do("POST", "/api/conversations/"+conversations[i]+"/turns", object{"content": "hello"}),
				"agents",
				ids[i])
			wantReportedCorrupt(t, h, "agents", ids[i])
			env.exec(t, `UPDATE timers SET next_at = 1 WHERE agent_id = $1`, ids[i])
		}
		if res := h.Call("intact", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another agent's call: %+v", res)
		}
		h.Want(201, nil, "POST", "/api/agents/intact/wake", object{})
		waitForFirstRun(t, h, "intact")
		for i, c := range cases {
			env.exec(t, `UPDATE agents SET `+c.column+` = $1 WHERE id = $2`, before[i], ids[i])
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

// A tool with a corrupt row cannot be called. Other tools can. The row of a built-in tool is written again at the next
// start.
func TestI09_CorruptToolIsNotCalled(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		columns := []string{"parameters", "spec", "retry", "config_schema", "identity", "cost"}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			columns = append(columns, "timeout_ms", "previews", "version", "created_at", "async")
		}
		h.Agent("coach", "file_list", "file_read")
		for _, column := range columns {
			defineTool(t, h, object{"id": "bad_" + column, "config_schema": object{"type": "object"}})
			h.Want(201, nil, "POST", "/api/agents/coach/tools", object{"tool_id": "bad_" + column})
			env.exec(t, `UPDATE tools SET `+column+` = '{"type": ' WHERE id = $1`, "bad_"+column)
		}
		env.exec(t, `UPDATE tools SET retry = '{' WHERE id = 'file_read'`)
		wantReportedCorrupt(t, h, "tools", "file_read")
		h.Stop()
		h = env.start(t)
		for _, column := range columns {
			wantReportedCorrupt(t, h, "tools", "bad_"+column)
			wantProblem(t, h.Do("POST", "/api/agents/coach/calls",
				object{"tool": "bad_" + column, "args": object{"place": "here"}}), 404, reeve.NotFound)
			wantCorrupt(t, h.Do("GET", "/api/tools/bad_"+column, nil), "tools", "bad_"+column)
		}
		if res := h.Call("coach", "file_list", object{"path": "/"}); res.IsError {
			t.Errorf("another tool: %+v", res)
		}
		if report := getCorruptRows(t, h); strings.Contains(report, "file_read") {
			t.Errorf("a built-in tool: %q", report)
		}
		for _, column := range columns {
			h.Want(204, nil, "DELETE", "/api/tools/bad_"+column, nil)
		}
		h.Want(200, nil, "GET", "/api/tools", nil)
	})
}

// A corrupt limit of an agent (tool settings, profile or budget) denies the calls that need it. Other agents can still
// make calls.
func TestI09_CorruptLimitDeniesCalls(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		damaged := h.Agent("damaged", "file_list")
		h.Agent("intact", "file_list")
		h.Want(200, nil, "PUT", "/api/profiles/clerk", object{"capabilities": []string{"files.read"}})
		h.Want(200, nil, "PATCH", "/api/agents/damaged", object{"kind": "clerk"})
		h.Want(200, nil, "PUT", "/api/budgets/agent:damaged", object{"limit": object{"calls": 1000}})
		cases := []struct {
			table, column, key, id, named string
			values                        []any
		}{
			{"agent_tools", "config", "agent_id", damaged.ID, damaged.ID + "/file_list",
				[]any{`{"a`, "null", "[]", "1", " "}},
			{"profiles", "capabilities", "kind", "clerk", "clerk", []any{"x", "", "{}", `["files.read"`, "1"}},
			{"budgets", "limit_calls", "subject", "agent:" + damaged.ID, "agent:" + damaged.ID, []any{-1}},
			{"budgets", "used_calls", "subject", "agent:" + damaged.ID, "agent:" + damaged.ID,
				[]any{-9000000000000000000}},
		}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			cases[2].values = append(cases[2].values, "x", 1.5)
			cases[3].values = append(cases[3].values, "x", []byte{0})
		}
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		for _, c := range cases {
			was := env.queryValue(t, `SELECT `+c.column+` FROM `+c.table+` WHERE `+c.key+` = $1`, c.id)
			set := `UPDATE ` + c.table + ` SET ` + c.column + ` = $1 WHERE ` + c.key + ` = $2`
			for _, value := range c.values {
				env.exec(t, set, value, c.id)
				reloadGate(t, h)
				wantCorrupt(t, h.Do("POST", "/api/agents/damaged/calls", call), c.table, c.named)
				wantReportedCorrupt(t, h, c.table, c.named)
				if res := h.Call("intact", "file_list", object{"path": "/"}); res.IsError {
					t.Errorf("%s of %v: another agent's call: %+v", c.column, value, res)
				}
			}
			env.exec(t, set, was, c.id)
			reloadGate(t, h)
			if res := h.Call("damaged", "file_list", object{"path": "/"}); res.IsError {
				t.Errorf("%s, corrected: %+v", c.column, res)
			}
		}
	})
}

// A budget whose use has reached the largest integer has nothing left.
func TestG17_BudgetUseAtMaximum(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		a := h.Agent("a", "file_list")
		h.Want(200, nil, "PUT", "/api/budgets/agent:a", object{"limit": object{"calls": 2}})
		call := object{"tool": "file_list", "args": object{"path": "/"}}
		env.exec(t, `UPDATE budgets SET used_calls = 9223372036854775807 WHERE subject = $1`, "agent:"+a.ID)
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

// The value of a secret is redacted even if another column of its row is corrupt.
func TestI09_SecretInCorruptRowIsRedacted(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t, newTool("leak", reeve.Read, "", alwaysReturn("the word is opensesame-4711-xyz", nil)))
	h.Agent("a", "leak")
	h.Want(204, nil, "PUT", "/api/secrets/WORD", object{"value": "opensesame-4711-xyz"})
	env.exec(t, `UPDATE secrets SET updated_at = 'x'`)
	reloadGate(t, h)
	if res := h.Call("a", "leak", nil); res.IsError || strings.Contains(res.Content, "opensesame") {
		t.Errorf("%+v", res)
	}
	wantCorrupt(t, h.Do("GET", "/api/secrets", nil), "secrets", "WORD")
}

// An operation with a corrupt row is not executed and does not block others. The log names the row once. The doctor
// reports it until it is corrected.
func TestI09_CorruptOperationDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		logs := &bytes.Buffer{}
		env.cfg.Log = slog.New(slog.NewTextHandler(logs, nil))
		h := env.start(t)
		createAskingAgents(t, h, "damaged", "intact")
		values := map[string]any{"spent": "x", "undo": "{"}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			values["tries"], values["created_at"], values["deferred"], values["timeout_at"],
				values["next_attempt_at"] = "x", "x", "x", "x", "x"
		}
		var bad []string
		for column, value := range values {
			res := parkCall(t, h, "damaged", "/shared/"+column)
			h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
			env.exec(t, `UPDATE calls SET `+column+` = $1 WHERE id = $2`, value, res.CallID)
			bad = append(bad, res.CallID)
		}
		// The approval of this call has expired.
		late := parkCall(t, h, "damaged", "/shared/late")
		env.exec(t, `UPDATE approvals SET expires_at = 1 WHERE id = $1`, late.ApprovalID)
		env.exec(t, `UPDATE calls SET spent = 'x' WHERE id = $1`, late.CallID)
		good := parkCall(t, h, "intact", "/shared/intact")
		h.Want(200, nil, "POST", "/api/approvals/"+good.ApprovalID+"/decision", object{"decision": "approve"})
		h.RunUntilIdle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+good.OperationID, nil)); op.State != reeve.Committed {
			t.Errorf("operation of the intact agent is %s", op.State)
		}
		for _, id := range append(bad, late.CallID) {
			wantReportedCorrupt(t, h, "calls", id)
			if state := env.queryValue(t, `SELECT state FROM calls WHERE id = $1`, id); state != "prepared" &&
				state != "parked" {
				t.Errorf("%s is %v", id, state)
			}
		}
		h.Stop()
		for _, id := range bad {
			if n := strings.Count(logs.String(), "id="+id); n != 1 {
				t.Errorf("log names %s %d times, want 1", id, n)
			}
		}
	})
}

// A corrupt schedule is disabled and a corrupt wake is skipped. Neither blocks others.
func TestI09_CorruptWakeDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		createAskingAgents(t, h, "damaged", "intact")
		schedule := func(agent string) string {
			return decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
				object{"agent": agent, "name": "n", "goal": "g", "cadence_type": "cron",
					"cadence_value": "0 7 * * *"})).ID
		}
		columns := map[string][]string{"timers": {"on_behalf_of"}, "wakes": {"on_behalf_of"}}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			columns["timers"] = append(columns["timers"], "next_at", "failures", "missed", "last_at", "created_at")
			columns["wakes"] = append(columns["wakes"], "due_at", "scheduled_at", "created_at")
		}
		bad := map[string][]string{}
		for _, column := range columns["timers"] {
			id := schedule("damaged")
			env.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, id)
			env.exec(t, `UPDATE timers SET `+column+` = 'x' WHERE id = $1`, id)
			bad["timers"] = append(bad["timers"], id)
		}
		for _, column := range columns["wakes"] {
			key := decode[reeve.Wake](t, h.Want(201, nil, "POST", "/api/agents/damaged/wake", object{})).RunKey
			env.exec(t, `UPDATE wakes SET `+column+` = 'x' WHERE run_key = $1`, key)
			bad["wakes"] = append(bad["wakes"], key)
		}
		env.exec(t, `UPDATE timers SET next_at = 1 WHERE id = $1`, schedule("intact"))
		if run := waitForFirstRun(t, h, "intact"); run.State != reeve.RunCompleted {
			t.Errorf("schedule of the intact agent: %+v", run)
		}
		for table, ids := range bad {
			for _, id := range ids {
				wantReportedCorrupt(t, h, table, id)
			}
		}
		runs := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent=damaged", nil)).Runs
		if len(runs) != 0 {
			t.Errorf("the damaged agent ran: %+v", runs)
		}
		if state := env.queryValue(t, `SELECT state FROM timers WHERE id = $1`, bad["timers"][0]); state != "disabled" {
			t.Errorf("the schedule is %v", state)
		}
		if state := env.queryValue(t, `SELECT state FROM wakes WHERE run_key = $1`, bad["wakes"][0]); state != "skipped" {
			t.Errorf("the wake is %v", state)
		}
	})
}

// A run with a corrupt row is not resumed. Other runs are resumed.
func TestI09_CorruptRunDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		createAskingAgents(t, h, "damaged", "intact")
		ids := map[string]string{}
		for _, agent := range []string{"damaged", "intact"} {
			h.Want(201, nil, "POST", "/api/agents/"+agent+"/wake", object{})
			ids[agent] = waitForFirstRun(t, h, agent).ID
		}
		h.Stop()
		for _, agent := range []string{"damaged", "intact"} { // as a killed server leaves them
			env.exec(t, `UPDATE runs SET state = 'running', owner = '', finished_at = 0 WHERE id = $1`, ids[agent])
			env.exec(t, `INSERT INTO open_runs (run_id, agent_id, session_id, parent_id, turn, lane, seen)
				SELECT id, agent_id, session_id, '', 0, '', 0 FROM runs WHERE id = $1`, ids[agent])
		}
		env.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, ids["damaged"])
		h = env.start(t)
		if run := waitForFirstRun(t, h, "intact"); run.State != reeve.RunCompleted {
			t.Errorf("%+v", run)
		}
		wantReportedCorrupt(t, h, "runs", ids["damaged"])
		wantCorrupt(t, h.Do("GET", "/api/runs", nil), "runs", ids["damaged"])
	})
}

// A run can be cancelled even if one of its messages is corrupt.
func TestI09_RunEndsDespiteCorruptMessage(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		createAskingAgents(t, h, "clerk")
		h.Want(200, nil, "PATCH", "/api/agents/clerk", object{"config": object{"rehearsal": object{
			"steps":  []object{{"tool": "file_write", "args": object{"path": "/shared/a", "content": "a"}}},
			"output": "done"}}})
		h.Want(201, nil, "POST", "/api/agents/clerk/wake", object{})
		h.RunUntilIdle(t.Context())
		a := decode[api.ApprovalList](t, h.Want(200, nil, "GET", "/api/approvals", nil)).Approvals[0]
		run := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?agent=clerk", nil)).Runs[0]
		env.exec(t, `
			INSERT INTO messages
				(id, workspace_id, thread_id, agent_id, run_id, kind, content, metadata, created_at)
			SELECT 'msg_corrupt', workspace_id, 'elsewhere', agent_id, id, 'thought', '', '{', 1
			FROM runs WHERE id = $1`, run.ID)
		h.Want(200, nil, "POST", "/api/runs/"+run.ID+"/cancel", object{})
		if now := waitForFirstRun(t, h, "clerk"); now.State != reeve.RunCancelled {
			t.Errorf("%+v of approval %s", now, a.ID)
		}
		wantReportedCorrupt(t, h, "messages", "msg_corrupt")
	})
}

// A server starts with a corrupt workspace. Nothing runs in that workspace. Other workspaces work.
func TestI09_CorruptWorkspaceIsStopped(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "other", "name": "Other"})
	h.Agent("clerk", "file_list")
	h.Stop()
	env.exec(t, `UPDATE workspaces SET revision = 'x' WHERE id = 'other'`)
	h = env.start(t)
	if res := h.Call("clerk", "file_list", object{"path": "/"}); res.IsError {
		t.Errorf("%+v", res)
	}
	wantReportedCorrupt(t, h, "workspaces", "other")
	wantCorrupt(t, h.Do("GET", "/api/tools", nil, "X-Workspace-Id", "other"), "workspaces", "other")
	h.Stop()
	env.exec(t, `UPDATE workspaces SET stopped_at = 'x' WHERE id = 'default'`)
	h = env.start(t)
	wantCorrupt(t, h.Do("POST", "/api/agents/clerk/calls", object{"tool": "file_list", "args": object{"path": "/"}}),
		"workspaces", "default")
	wantReportedCorrupt(t, h, "workspaces", "default")
}

// A token with a corrupt row is not valid, because it may be revoked. Other tokens stay valid, and the doctor names the
// row.
func TestI09_CorruptTokenIsInvalid(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		values := map[string]any{"user_name": "", "role": ""}
		if env.cfg.Database == "" { // SQLite stores text in integer columns
			values["expires_at"], values["revoked_at"] = "x", "x"
		}
		for column, value := range values {
			bob := createUserToken(t, h, "bob", reeve.Member)
			h.Want(200, nil, "GET", "/api/conversations", nil, bob...)
			list := decode[api.TokenList](t, h.Want(200, nil, "GET", "/api/tokens", nil)).Tokens
			id := list[slices.IndexFunc(list, func(a reeve.AccessToken) bool { return a.User == "bob" })].ID
			env.exec(t, `UPDATE access_tokens SET `+column+` = $1 WHERE id = $2`, value, id)
			wantProblem(t, h.Do("GET", "/api/conversations", nil, bob...), 401, reeve.Unauthenticated)
			wantCorrupt(t, h.Do("GET", "/api/tokens", nil), "access_tokens", id)
			wantReportedCorrupt(t, h, "access_tokens", id)
			env.exec(t, `DELETE FROM access_tokens WHERE id = $1`, id)
		}
	})
}

// A corrupt run, plan or response is reported as an error, not as missing. A client would repeat a missing one.
func TestI09_CorruptRunIsNotReportedMissing(t *testing.T) {
	t.Parallel()
	env := newTestEnv(t)
	h := env.start(t)
	plan := createAutomationFixture(t, h).plan
	h.Agent("coach")
	c := decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations", object{"agent": "coach"}))
	turn := decode[reeve.Turn](t, h.Want(201, nil, "POST", "/api/conversations/"+c.ID+"/turns",
		object{"content": "hi"}))
	for id, paths := range map[string][]string{plan: {"/api/runs/" + plan, "/api/plans/" + plan},
		turn.ID: {"/api/turns/" + turn.ID, "/v1/responses/resp_" + turn.ID}} {
		env.exec(t, `UPDATE runs SET issues = 'x' WHERE id = $1`, id)
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

// An approval whose stored call differs from the call that would run cannot be granted. It can be denied.
func TestG15_ApprovalMustMatchItsCall(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		createAskingAgents(t, h, "clerk", "other")
		for i, c := range []struct{ query, word string }{
			{`UPDATE approvals SET args = '{"content":"a","path":"/shared/harmless"}' WHERE id = $1`, "arguments"},
			{`UPDATE approvals SET args_hash = 'x' WHERE id = $1`, "arguments"},
			{`UPDATE approvals SET tool = 'file_list' WHERE id = $1`, "tool"},
			{`UPDATE approvals SET agent_id = (SELECT id FROM agents WHERE name = 'other') WHERE id = $1`, "agent"},
			{`UPDATE calls SET args = '{"content":"a","path":"/shared/evil"}'
				WHERE id = (SELECT call_id FROM approvals WHERE id = $1)`, "arguments"},
		} {
			res := parkCall(t, h, "clerk", fmt.Sprint("/shared/", i))
			env.exec(t, c.query, res.ApprovalID)
			at := "/api/approvals/" + res.ApprovalID + "/decision"
			if p := wantProblem(t, h.Do("POST", at, object{"decision": "approve"}), 409, reeve.Conflict); !strings.Contains(p.Detail, c.word) || !strings.Contains(p.Hint, "deny") {
				t.Errorf("%s: %+v", c.query, p)
			}
			h.RunUntilIdle(t.Context())
			if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID, nil)); op.State != reeve.Parked {
				t.Errorf("%s: %s", c.query, op.State)
			}
			h.Want(200, nil, "POST", at, object{"decision": "deny"})
		}
		res := parkCall(t, h, "clerk", "/shared/as it was")
		h.Want(200, nil, "POST", "/api/approvals/"+res.ApprovalID+"/decision", object{"decision": "approve"})
		h.RunUntilIdle(t.Context())
		if op := decode[reeve.Operation](t, h.Want(200, nil, "GET", "/api/operations/"+res.OperationID, nil)); op.State != reeve.Committed {
			t.Errorf("unchanged approval: operation is %s", op.State)
		}
	})
}
