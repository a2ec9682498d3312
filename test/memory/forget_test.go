package memory_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// forgotten is a text with characters that JSON and previews change. mark occurs nowhere else.
const (
	mark      = "Zebraquagga"
	forgotten = "My \"front door\" opens with the code <" + mark + ">,\nand the back door opens with the code " + mark + "."
)

// tablesWith returns the tables of a database that contain a text.
func tablesWith(t *testing.T, cfg host.Config, text string) (list []string) {
	t.Helper()
	driver, source, tables, row := "sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db")+"?mode=ro",
		`SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`, ""
	if cfg.Database != "" {
		driver, source, tables, row = "pgx", cfg.Database,
			`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`, "::text"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, table := range readStrings(t, db, tables) {
		columns := "*"
		if row != "" {
			columns = "t" + row
		}
		for _, line := range readStrings(t, db, "SELECT "+columns+" FROM "+table+" t") {
			lower := strings.ToLower(line)
			if strings.Contains(lower, strings.ToLower(text)) || strings.Contains(lower, fmt.Sprintf("%x", text)) {
				list = append(list, table)
				break
			}
		}
	}
	return list
}

// readStrings returns the rows of a query, each as one text.
func readStrings(t *testing.T, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, dest := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		list = append(list, string(bytes.Join(slices.Collect(func(yield func([]byte) bool) {
			for _, v := range values {
				if !yield(v) {
					return
				}
			}
		}), []byte(" "))))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// A forgotten text is in no table any more, except where the answer says so. The model does not see it again.
func TestN09_AForgottenTextIsNowhere(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, `answers:
- {when: {tool: memory_search}, text: I know the code}
- {when: {said: /which code/}, calls: [{name: memory_search, args: {query: door code}}]}
- {when: {said: /third/}, text: no}
- {when: {said: /./}, text: fine}
`)
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", kit.Object{"config": kit.Object{"instructions": "I am bot.", "notes": false}},
			append([]any{"memory_get", "memory_list", "scratchpad_write", "agent_state_update", "schedule_create",
				"write_file"}, memoryTools...)...)
		key := []string{"Idempotency-Key", "k1"}
		var n reeve.Note
		h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": forgotten}, key...)
		c := h.StartConversation("bot").ID
		for _, text := range []string{forgotten, "which code opens the door?"} {
			kit.WaitForTurn(h, kit.StartTurn(h, c, text).ID)
		}
		call(h, "memory_list", kit.Object{})
		long := strings.Repeat("A long line about "+mark+", ", 20)
		write(h, "memory_update", kit.Object{"note_id": n.ID, "content": long})
		call(h, "memory_list", kit.Object{})
		h.Want(http.StatusOK, nil, "PATCH", "/api/conversations/"+c, kit.Object{"title": forgotten[:90]})
		for tool, args := range map[string]kit.Object{
			"write_file":         {"path": "/code.txt", "content": "It says:\n" + forgotten},
			"scratchpad_write":   {"items": []string{forgotten}},
			"agent_state_update": {"primary_goal": "Remember: " + forgotten},
			"schedule_create":    {"goal": forgotten, "cadence_type": "interval", "cadence_value": "24h"},
		} {
			if res := call(h, tool, args); res.IsError {
				t.Errorf("%s: %+v", tool, res)
			}
		}
		home := kit.NewCategory(h, "Home")
		var task reeve.Task
		h.Want(http.StatusCreated, &task, "POST", "/api/journal/tasks",
			kit.Object{"category_id": home, "title": "Change the code", "description": forgotten})
		kit.WaitUntilIdle(h)
		var e reeve.NoteErasure
		h.Want(http.StatusOK, &e, "POST", "/api/notes/"+n.ID+"/forget", kit.Object{})
		for _, table := range []string{"agent_states", "calls", "frames", "messages", "model_requests", "requests", "runs",
			"scratchpads", "session_files", "timers"} {
			if e.Erased[table] == 0 {
				t.Errorf("nothing was erased in %s: %v", table, e.Erased)
			}
		}
		if !slices.Contains(e.NotReached, "task "+task.ID) {
			t.Errorf("the task is not named: %q", e.NotReached)
		}
		if got := tablesWith(t, cfg, mark); !slices.Equal(got, []string{"tasks"}) {
			t.Errorf("after %v the text is in %v", e.Erased, got)
		}
		third := kit.StartTurn(h, c, "third")
		kit.WaitForTurn(h, third.ID)
		var asked api.AskedRequestList
		h.Want(http.StatusOK, &asked, "GET", "/api/runs/"+third.ID+"/requests", nil)
		if len(asked.Requests) != 1 || strings.Contains(string(asked.Requests[0].Request), mark) ||
			!strings.Contains(string(asked.Requests[0].Request), "[forgotten]") {
			t.Errorf("the third turn was asked %+v", asked.Requests)
		}
		if r := h.Do("POST", "/api/notes", kit.Object{"content": forgotten}, key...); r.Status != http.StatusCreated ||
			strings.Contains(string(r.Body), mark) {
			t.Errorf("the repeated request was answered with %d %s", r.Status, r.Body)
		}
		if r := h.Do("GET", "/api/doctor", nil); r.Status != http.StatusOK || strings.Contains(string(r.Body), "cannot be read") {
			t.Errorf("damaged rows: %s", r.Body)
		}
	})
}

// Forgetting a merged note names the notes that it replaced.
func TestN09_ReplacedNotesAreNamed(t *testing.T) {
	runOnBothDatabases(t, func(t *testing.T, h *reevetest.Host) {
		a := write(h, "memory_save", kit.Object{"content": "Ann likes strong coffee"}).NoteID
		b := write(h, "memory_save", kit.Object{"content": "Ann likes hot coffee"}).NoteID
		merged := write(h, "memory_merge", kit.Object{"note_ids": []string{a, b},
			"content": "Ann likes strong, hot coffee"}).NoteID
		var e reeve.NoteErasure
		h.Want(http.StatusOK, &e, "POST", "/api/notes/"+merged+"/forget", kit.Object{})
		for _, id := range []string{a, b} {
			if !slices.Contains(e.NotReached, "note "+id+", which it replaced") {
				t.Errorf("note %s is not named: %q", id, e.NotReached)
			}
		}
	})
}

// The files of the database keep no word of a forgotten note, neither in the index nor in free pages.
func TestN09_TheDatabaseFileKeepsNoWord(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	h := reevetest.Run(t, cfg)
	kit.NewPersona(h, "bot", nil, memoryTools...)
	id := write(h, "memory_save", kit.Object{"content": strings.Repeat("A long story about the "+mark+". ", 200)}).NoteID
	write(h, "memory_save", kit.Object{"content": "Another note, about zebras"})
	write(h, "memory_update", kit.Object{"note_id": id, "content": "The " + mark + " is gone"})
	search(h, kit.Object{"query": "long story"})
	h.Want(http.StatusOK, nil, "POST", "/api/notes/"+id+"/forget", kit.Object{})
	h.Stop()
	files, err := filepath.Glob(filepath.Join(cfg.Dir, "reeve.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{mark, strings.ToLower(mark)} { // as written, and as in the index
			if i := bytes.Index(b, []byte(word)); i >= 0 {
				t.Errorf("%s has %q at %d: %q", filepath.Base(file), word, i, b[max(0, i-60):min(len(b), i+60)])
			}
		}
	}
}

// What belongs to another user keeps a text that a user forgets, and the answer does not say whether it has the text.
func TestN09_N11_ForgettingChangesNothingOfOthers(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: fine}\n")
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", kit.Object{"policy": kit.Object{"tools": kit.Object{"schedule_create": "ask"}}},
			append([]any{"write_file", "scratchpad_write", "schedule_create"}, memoryTools...)...)
		ann, ben := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ben", "member")
		for tool, args := range map[string]kit.Object{
			"write_file":       {"path": "/code.txt", "content": "It says: " + forgotten},
			"scratchpad_write": {"items": []string{forgotten}},
			"memory_save":      {"content": "Remember: " + forgotten},
			"schedule_create":  {"goal": forgotten, "cadence_type": "interval", "cadence_value": "24h"},
		} {
			if res := call(h, tool, args, ann...); res.IsError {
				t.Errorf("%s: %+v", tool, res)
			}
		}
		var c reeve.Conversation
		h.Want(http.StatusCreated, &c, "POST", "/api/conversations", kit.Object{"agent": "bot", "title": forgotten[:90]},
			ann...)
		var turn reeve.Turn
		h.Want(http.StatusCreated, &turn, "POST", "/api/conversations/"+c.ID+"/turns", kit.Object{"content": forgotten},
			append(ann, "Idempotency-Key", "k1")...)
		h.Want(http.StatusCreated, nil, "POST", "/api/schedules", kit.Object{"agent": "bot", "goal": forgotten,
			"cadence_type": "interval", "cadence_value": "24h"}, append(ann, "Idempotency-Key", "k2")...)
		kit.WaitUntilIdle(h)
		before := tablesWith(t, cfg, mark)
		for _, table := range []string{"approvals", "calls", "conversations", "frames", "messages", "notes", "payloads",
			"requests", "runs", "scratchpads", "session_files", "timers"} {
			if !slices.Contains(before, table) && table != "payloads" {
				t.Errorf("the text is not in %s, but in %v", table, before)
			}
		}
		var n reeve.Note
		h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": forgotten}, ben...)
		var e reeve.NoteErasure
		h.Want(http.StatusOK, &e, "POST", "/api/notes/"+n.ID+"/forget", kit.Object{}, ben...)
		if len(e.Erased) != 0 {
			t.Errorf("it erased %v", e.Erased)
		}
		if after := tablesWith(t, cfg, mark); !slices.Equal(after, before) {
			t.Errorf("the text was in %v and is in %v", before, after)
		}
		if all := strings.Join(e.NotReached, "\n"); strings.Contains(all, "run_") || strings.Contains(all, "hash") {
			t.Errorf("the answer names rows of others: %s", all)
		}
	})
}

// A note with a text that occurs in the server's own formats breaks none of them when it is forgotten.
func TestN09_FragmentsOfJSONBreakNothing(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, `answers:
- {when: {tool: memory_save}, text: saved}
- {when: {said: /tea/}, calls: [{name: memory_save, args: {content: I like tea}}]}
`)
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", nil, append([]any{"agent_state_update"}, memoryTools...)...)
		if res := call(h, "agent_state_update", kit.Object{"primary_goal": "Buy tea"}); res.IsError {
			t.Fatalf("%+v", res)
		}
		c := h.StartConversation("bot").ID
		kit.WaitForTurn(h, kit.StartTurn(h, c, "I like tea").ID)
		at := "/api/conversations/" + c
		read := func() (shown string) {
			for _, path := range []string{at + "/messages", at + "/frames?after=0", "/api/agents/bot/messages"} {
				shown += string(h.Want(http.StatusOK, nil, "GET", path, nil).Body)
			}
			return shown
		}
		before := read()
		for _, text := range []string{`"type":"text"`, `{"content":"`, `"role":"user"`, "model_request", "tool_started",
			"turn_complete", "primary_goal", `","content":`, "conversation", `\",\"content\":\"`, "agent_state_update"} {
			var n reeve.Note
			h.Want(http.StatusCreated, &n, "POST", "/api/notes", kit.Object{"content": text})
			h.Want(http.StatusOK, nil, "POST", "/api/notes/"+n.ID+"/forget", kit.Object{})
		}
		if r := h.Do("GET", "/api/doctor", nil); r.Status != http.StatusOK ||
			strings.Contains(string(r.Body), "cannot be read") {
			t.Errorf("damaged rows: %s", r.Body)
		}
		kit.Equal(t, read(), before, "the conversation and the agent's thread")
		var s reeve.AgentState
		h.Want(http.StatusOK, &s, "GET", "/api/agents/bot/state", nil)
		kit.Equal(t, s.Slots.PrimaryGoal, "Buy tea", "the goal")
		if d := kit.WaitForTurn(h, kit.StartTurn(h, c, "more tea").ID); d.State != reeve.RunCompleted {
			t.Errorf("the next turn: %+v", d.Turn)
		}
	})
}

// Quotes are found in every way in which JSON may write a character, also in JSON within other texts.
func TestN09_EscapedQuotesAreErased(t *testing.T) {
	t.Parallel()
	kit.OnBothDatabases(t, func(t *testing.T, cfg host.Config) {
		cfg.Model = kit.ScriptedModel(t, "answers:\n- {when: {said: /./}, text: fine}\n")
		h := reevetest.Run(t, cfg)
		kit.NewPersona(h, "bot", nil, append([]any{"write_file"}, memoryTools...)...)
		c := h.StartConversation("bot").ID
		var n, m reeve.Note
		h.Want(http.StatusCreated, &n, "POST", "/api/notes",
			kit.Object{"content": "Café — the code of http://door/ is \U0001F600 " + mark})
		h.Want(http.StatusCreated, &m, "POST", "/api/notes", kit.Object{"content": "Код двери — " + mark})
		for _, text := range []string{
			`save {"content":"Caf\u00e9 \u2014 the code of http:\/\/door\/ is \ud83d\ude00 ` + mark + `"}`,
			`{"content":"Café \u2014 the code of http:\/\/door/ is \uD83D\uDE00 ` + mark + `"}`,
			`{"input":"{\"content\":\"Caf\\u00E9 — the code of http://door/ is \\ud83d\\ude00 ` + mark + `\"}"}`,
			`save {"content":"\u041a\u043e\u0434 \u0434\u0432\u0435\u0440\u0438 \u2014 ` + mark + `"}`,
			`save {"content":"\u041A\u043E\u0434 \u0434\u0432\u0435\u0440\u0438 \u2014 ` + mark + `"}`,
		} {
			kit.WaitForTurn(h, kit.StartTurn(h, c, text).ID)
			call(h, "write_file", kit.Object{"path": "/x.json", "content": text})
		}
		for _, id := range []string{n.ID, m.ID} {
			h.Want(http.StatusOK, nil, "POST", "/api/notes/"+id+"/forget", kit.Object{})
		}
		if got := tablesWith(t, cfg, mark); len(got) != 0 {
			t.Errorf("the text is in %v", got)
		}
	})
}
