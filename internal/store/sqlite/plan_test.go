package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

// growing are the tables that grow without limit. Queries on them must use an index.
var growing = []string{"approvals", "calls", "checklist_items", "checklists", "emails", "events", "items", "links",
	"messages",
	"notifications", "payloads", "plan_blocks",
	"plan_pins", "ratings", "runs", "script_runs", "session_files", "tasks", "time_entries", "wakes"}

// keys matches conditions on columns of which few rows have the same value.
var keys = regexp.MustCompile(
	`\b(id|agent_id|call_id|item_id|operation_id|reason_id|run_id|run_key|session_id|task_id|thread_id|set_id) (= |IN \()\$`)

// The query plans of all statements in the store's source and in the conformance suite use an index. None may scan a
// growing table, or read all rows of a workspace if it selects fewer.
func TestNothingIsFoundByReadingAll(t *testing.T) {
	texts := &recorder{seen: map[string]bool{}}
	t.Run("suite", func(t *testing.T) {
		storetest.Exercise(t, func(t *testing.T) *store.DB {
			e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
			if err != nil {
				t.Fatal(err)
			}
			db, err := store.Open(t.Context(), watched{e, texts}, storetest.Key)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return db
		})
	})
	file := filepath.Join(t.TempDir(), "reeve.db")
	open(t, sqlite.Config{File: file})
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	raw, _, err := e.Migrator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	found := written(t)
	maps.DeleteFunc(found, func(text string, _ bool) bool { // which makes no sense without what is put into it
		_, err := plan(t.Context(), raw, text)
		return err != nil
	})
	if len(found) < 250 || len(texts.seen) < 200 {
		t.Fatalf("only %d statements were found, and %d seen", len(found), len(texts.seen))
	}
	maps.Copy(found, texts.seen)
	for _, text := range slices.Sorted(maps.Keys(found)) {
		lines, err := plan(t.Context(), raw, text)
		if err != nil {
			t.Errorf("%v\n\t%s", err, text)
		}
		for _, line := range lines {
			if why := slow(text, line); why != "" {
				t.Errorf("%s: %s\n\t%s", why, line, text)
			}
		}
	}
}

// The number of different statement texts does not depend on the number of ids, because engines cache prepared
// statements by text.
func TestAnyNumberOfIDsIsOfFewTexts(t *testing.T) {
	texts := &recorder{seen: map[string]bool{}}
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), watched{e, texts}, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ids := make([]string, 64)
	for i := range ids {
		ids[i] = fmt.Sprint("id_", i)
	}
	mails := make([]reeve.Email, len(ids))
	for i, id := range ids {
		mails[i] = reeve.Email{MessageID: id, Inbox: "box"}
	}
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		w, err := tx.JournalWriter(t.Context(), store.JournalScope{Workspace: "ws", All: true})
		if err != nil {
			return err
		}
		c, err := w.CreateCategory(t.Context(), reeve.CategoryRequest{Name: "c"})
		for range ids {
			if err == nil {
				_, err = w.CreateTask(t.Context(), reeve.TaskDraft{CategoryID: c.ID, Title: "t"})
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, ask := range map[string]func(tx *store.Tx, n int) error{
		"last frames": func(tx *store.Tx, n int) error {
			_, err := tx.Chat().LastFrames(t.Context(), ids[:n])
			return err
		},
		"labels": func(tx *store.Tx, n int) error {
			_, err := tx.Journal(store.JournalScope{Workspace: "ws", All: true}).
				Tasks(t.Context(), store.TaskFilter{Limit: n})
			return err
		},
		"categories": func(tx *store.Tx, n int) error {
			_, err := tx.Journal(store.JournalScope{Workspace: "ws", Categories: ids[:n]}).
				Tasks(t.Context(), store.TaskFilter{Limit: 1})
			return err
		},
		"mails": func(tx *store.Tx, n int) error {
			_, err := tx.Mail().AddMail(t.Context(), "ws", "", mails[:n], false)
			return err
		},
	} {
		clear(texts.seen)
		for n := 1; n <= len(ids); n++ {
			if err := db.Update(t.Context(), func(tx *store.Tx) error { return ask(tx, n) }); err != nil {
				t.Fatal(err)
			}
		}
		if len(texts.seen) > 20 {
			t.Errorf("%s: %d texts for up to %d ids", name, len(texts.seen), len(ids))
		}
	}
}

// line is one line of a query plan.
var line = regexp.MustCompile(`^(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?(?: \((.*)\))?`)

// slow returns what is wrong with a line of a query plan, or "".
func slow(text, of string) string {
	m := line.FindStringSubmatch(of)
	if m == nil || strings.Contains(of, "VIRTUAL TABLE") {
		return ""
	}
	table := m[2]
	if a := regexp.MustCompile(`(?:FROM|JOIN|UPDATE) (\w+) (?:AS )?` + table + `\b`).
		FindStringSubmatch(text); a != nil {
		table = a[1]
	}
	switch {
	case !slices.Contains(growing, table):
	case m[1] == "SCAN" && m[3] == "":
		return "reads all of " + table
	case m[4] == "workspace_id=?" && keys.MatchString(text):
		return "reads all of a workspace's " + table
	}
	return ""
}

var parameter = regexp.MustCompile(`\$\d+|\?`)

func plan(ctx context.Context, db *sql.DB, text string) (lines []string, err error) {
	args := make([]any, len(parameter.FindAllString(text, -1)))
	rows, err := db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+parameter.ReplaceAllString(text, "?"), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		lines = append(lines, detail)
	}
	return lines, rows.Err()
}

// recorder collects the texts of statements.
type recorder struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (r *recorder) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[strings.Join(strings.Fields(text), " ")] = true
}

// watched is an engine that records its statements.
type watched struct {
	store.Engine
	*recorder
}

func (w watched) Update(ctx context.Context, f func(store.Conn) error) error {
	return w.Engine.Update(ctx, func(c store.Conn) error { return f(noted{c, w.recorder}) })
}

func (w watched) View(ctx context.Context, f func(store.Conn) error) error {
	return w.Engine.View(ctx, func(c store.Conn) error { return f(noted{c, w.recorder}) })
}

type noted struct {
	store.Conn
	*recorder
}

func (n noted) Exec(ctx context.Context, refused func(store.Fault) error, text string, args ...any) error {
	n.note(text)
	return n.Conn.Exec(ctx, refused, text, args...)
}

func (n noted) ExecCount(ctx context.Context, text string, args ...any) (int64, error) {
	n.note(text)
	return n.Conn.ExecCount(ctx, text, args...)
}

func (n noted) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	n.note(text)
	return n.Conn.Query(ctx, text, args...)
}

func (n noted) QueueQuery(ctx context.Context, read func(store.Rows) error, text string, args ...any) error {
	n.note(text)
	return n.Conn.QueueQuery(ctx, read, text, args...)
}
