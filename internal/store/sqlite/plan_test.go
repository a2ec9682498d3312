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

// growingTables are the tables that grow without limit. Queries on them must use an index.
var growingTables = []string{"approvals", "calls", "changes", "checklist_items", "checklists", "emails", "events",
	"items", "links", "messages", "notifications", "payloads", "plan_blocks", "plan_pins", "ratings", "runs",
	"script_runs", "session_files", "tasks", "time_entries", "wakes"}

// selectiveColumns matches conditions on columns of which few rows have the same value.
var selectiveColumns = regexp.MustCompile(
	`\b(id|agent_id|call_id|item_id|operation_id|reason_id|run_id|run_key|session_id|task_id|thread_id|set_id) (= |IN \()\$`)

// notesByID matches conditions on the ids of notes.
var notesByID = regexp.MustCompile(`\b(o\.id|v\.note_id) IN \([$?]`)

// The query plans of all statements in the store's source and in the conformance suite use an index. None may scan a
// growing table, or read all rows of a workspace if it selects fewer.
func TestStatementsUseIndexes(t *testing.T) {
	texts := &recorder{seen: map[string]bool{}}
	t.Run("suite", func(t *testing.T) {
		storetest.Conformance(t, func(t *testing.T) *store.DB {
			e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
			if err != nil {
				t.Fatal(err)
			}
			db, err := store.Open(t.Context(), recordingEngine{e, texts}, storetest.Key)
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
	found := sourceStatements(t)
	maps.DeleteFunc(found, func(text string, _ bool) bool { // incomplete without the parts inserted at run time
		_, err := explain(t.Context(), raw, text)
		return err != nil
	})
	if len(found) < 250 || len(texts.seen) < 200 {
		t.Fatalf("found only %d statements in the source and %d in the suite", len(found), len(texts.seen))
	}
	maps.Copy(found, texts.seen)
	for _, text := range slices.Sorted(maps.Keys(found)) {
		lines, err := explain(t.Context(), raw, text)
		if err != nil {
			t.Errorf("%v\n\t%s", err, text)
		}
		for _, line := range lines {
			if reason := slowReason(text, line); reason != "" {
				t.Errorf("%s: %s\n\t%s", reason, line, text)
			}
		}
	}
}

// The number of different statement texts does not depend on the number of ids, because engines cache prepared
// statements by text.
func TestStatementTextsDoNotGrowWithIDs(t *testing.T) {
	texts := &recorder{seen: map[string]bool{}}
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), recordingEngine{e, texts}, storetest.Key)
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
	for name, query := range map[string]func(tx *store.Tx, n int) error{
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
			if err := db.Update(t.Context(), func(tx *store.Tx) error { return query(tx, n) }); err != nil {
				t.Fatal(err)
			}
		}
		if len(texts.seen) > 20 {
			t.Errorf("%s: %d texts for up to %d ids", name, len(texts.seen), len(ids))
		}
	}
}

// planLine matches a line of a query plan.
var planLine = regexp.MustCompile(`^(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?(?: \((.*)\))?`)

// slowReason returns why a line of a query plan is too slow, or "".
func slowReason(text, line string) string {
	m := planLine.FindStringSubmatch(line)
	if m == nil || strings.Contains(line, "VIRTUAL TABLE") {
		return ""
	}
	table := m[2]
	if a := regexp.MustCompile(`(?:FROM|JOIN|UPDATE) (\w+) (?:AS )?` + table + `\b`).FindStringSubmatch(text); a != nil {
		table = a[1]
	}
	switch {
	case strings.HasPrefix(table, "note") && strings.HasPrefix(m[4], "owner=?") && !strings.Contains(m[4], "slot=?") &&
		notesByID.MatchString(text):
		return "visits all notes of a user in " + table
	case !slices.Contains(growingTables, table):
	case m[1] == "SCAN" && m[3] == "":
		return "scans all of " + table
	case m[4] == "workspace_id=?" && selectiveColumns.MatchString(text):
		return "scans all rows of a workspace in " + table
	}
	return ""
}

var parameter = regexp.MustCompile(`\$\d+|\?`)

// explain returns the lines of the query plan of a statement, with many ids where it takes a list.
func explain(ctx context.Context, db *sql.DB, text string) (lines []string, err error) {
	text = strings.ReplaceAll(text, "IN (?)", "IN (?"+strings.Repeat(", ?", 63)+")")
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

func (r *recorder) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[strings.Join(strings.Fields(text), " ")] = true
}

// recordingEngine is an engine that records its statements.
type recordingEngine struct {
	store.Engine
	*recorder
}

func (w recordingEngine) Update(ctx context.Context, f func(store.Conn) error) error {
	return w.Engine.Update(ctx, func(c store.Conn) error { return f(recordingConn{c, w.recorder}) })
}

func (w recordingEngine) View(ctx context.Context, f func(store.Conn) error) error {
	return w.Engine.View(ctx, func(c store.Conn) error { return f(recordingConn{c, w.recorder}) })
}

// recordingConn is a connection that records its statements.
type recordingConn struct {
	store.Conn
	*recorder
}

func (n recordingConn) Exec(ctx context.Context, refused func(store.Fault) error, text string, args ...any) error {
	n.add(text)
	return n.Conn.Exec(ctx, refused, text, args...)
}

func (n recordingConn) ExecCount(ctx context.Context, text string, args ...any) (int64, error) {
	n.add(text)
	return n.Conn.ExecCount(ctx, text, args...)
}

func (n recordingConn) Query(ctx context.Context, text string, args ...any) (store.Rows, error) {
	n.add(text)
	return n.Conn.Query(ctx, text, args...)
}

func (n recordingConn) QueueQuery(ctx context.Context, read func(store.Rows) error, text string, args ...any) error {
	n.add(text)
	return n.Conn.QueueQuery(ctx, read, text, args...)
}
