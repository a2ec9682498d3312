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
