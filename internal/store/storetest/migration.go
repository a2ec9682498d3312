package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Migration tests what happens to a database that is opened again: by the same Reeve, by several at once, by an older one, and
// with another key. Each engine that open gives is on the same database, which is new.
func Migration(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	first := open(t)
	atOnce := 4
	if first.Alone() {
		atOnce = 1
	}
	must(t, first.Close())
	opened := race(atOnce, func(int) error {
		e := open(t)
		db, err := store.Open(ctx, e, Key)
		if err == nil {
			err = db.View(ctx, func(s *store.Snap) error { _, err := s.ListWorkspaces(ctx); return err })
		}
		if err != nil {
			return err
		}
		return db.Close()
	})
	must(t, firstOf(opened))

	e := open(t)
	db, err := store.Open(ctx, e, Key)
	must(t, err)
	setUp(t, db)
	update(t, db, func(tx *store.Tx) error { return tx.PutSecret(ctx, ws, "key", "value") })
	must(t, db.Close())

	e = open(t)
	for _, key := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte("x"), 16)} {
		_, err := store.Open(ctx, e, key)
		wantCode(t, err, reeve.Validation)
	}
	db, err = store.Open(ctx, e, bytes.Repeat([]byte("x"), 32))
	must(t, err)
	told := wantCode(t, db.View(ctx, func(s *store.Snap) error { _, err := s.GetSecret(ctx, ws, "key"); return err }), reeve.Unavailable)
	if told.Hint == "" || bytes.Contains([]byte(told.Error()), []byte("value")) {
		t.Fatalf("not told what to do: %v", told)
	}
	// What cannot be opened can be stored again.
	update(t, db, func(tx *store.Tx) error { return tx.PutSecret(ctx, ws, "key", "value") })
	equal(t, view(t, db, func(s *store.Snap) (string, error) { return s.GetSecret(ctx, ws, "key") }), "value", "stored again")
	was := revision(t, db, ws)
	must(t, db.Close())

	runUnderWay(t, open)

	e = open(t)
	must(t, raw(ctx, e, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"))
	must(t, raw(ctx, e, "DROP TABLE session_files")) // what a newer Reeve may have done
	_, err = store.Open(ctx, e, Key)
	wantCode(t, err, reeve.Unsupported)
	if err := raw(ctx, e, "SELECT count(*) FROM session_files"); err == nil {
		t.Fatal("a newer database was changed")
	}
	must(t, raw(ctx, e, "DELETE FROM goose_db_version WHERE version_id = 99999"))
	db, err = store.Open(ctx, e, Key)
	must(t, err)
	equal(t, revision(t, db, ws), was, "what was there")
	must(t, db.Close())
}

// runUnderWay brings a database up to date that was written when runs under way were told by their state alone: it goes on, and its agent is not free. What was kept by then, when
// nobody said what for, can be read as before.
func runUnderWay(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	db, err := store.Open(ctx, open(t), Key)
	must(t, err)
	queue(t, db, reeve.Wake{RunKey: "under way", Reason: reeve.ReasonManual, SessionID: "manual:1"})
	started(t, db, store.Caller{AgentID: "agt_one", WorkspaceID: ws, SessionID: "manual:1"}, "run_under_way", "proc_1")
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.PutPayload(ctx, ws, store.Undo, []byte("kept before"))
		return err
	})
	must(t, db.Close())
	e := open(t)
	unwritten := []string{"ALTER TABLE emails DROP COLUMN written", "DROP FUNCTION reeve_fold", "DROP FUNCTION reeve_lower"}
	if e.Name() == "sqlite" {
		unwritten = []string{"DROP TRIGGER emails_written_inserted", "DROP TRIGGER emails_written_deleted",
			"DROP TRIGGER emails_written_updated", "DROP TABLE emails_written"}
	}
	for _, query := range append(unwritten, []string{
		"CREATE INDEX runs_children ON runs (parent_id) WHERE parent_id <> '' AND state IN ('running', 'parked')",
		"CREATE INDEX runs_talking ON runs (session_id, id) WHERE reason = 'user_initiated' AND state IN ('running', 'parked')",
		"CREATE UNIQUE INDEX runs_lane ON runs (agent_id, session_id) WHERE state IN ('running', 'parked') AND reason <> 'user_initiated'",
		"CREATE INDEX runs_open ON runs (state) WHERE state IN ('running', 'parked')",
		"ALTER TABLE access_tokens DROP COLUMN server", "ALTER TABLE agents DROP COLUMN own_tools",
		"DROP TABLE open_runs",
		"DROP TABLE database_state",
		"DROP INDEX payloads_age",
		"DROP INDEX operations_workspace", "CREATE INDEX operations_workspace ON operations (workspace_id, created_at, id)", "CREATE INDEX operations_agent ON operations (agent_id, created_at, id)",
		"DROP INDEX operations_thread", "DROP INDEX operations_turn", "DROP TABLE trails",
		"ALTER TABLE operations DROP COLUMN trail", "ALTER TABLE operations DROP COLUMN asked", "ALTER TABLE operations DROP COLUMN asked_info",
		"ALTER TABLE operations DROP COLUMN answer", "ALTER TABLE operations DROP COLUMN answer_info",
		"ALTER TABLE operations DROP COLUMN in_flight_until", "ALTER TABLE requests DROP COLUMN process", "ALTER TABLE requests DROP COLUMN claim",
		"ALTER TABLE runs RENAME COLUMN results TO seen_at",
		"ALTER TABLE payloads DROP COLUMN uses",
		"ALTER TABLE subscriptions DROP COLUMN user_id",
		"DROP INDEX IF EXISTS wakes_order",
		"DROP INDEX events_operation", "DROP INDEX wakes_history", "DROP INDEX script_runs_version", "DROP INDEX approvals_pending",
		"ALTER TABLE agent_runtimes ADD COLUMN seen BIGINT NOT NULL DEFAULT 0",
		"ALTER TABLE agent_runtimes ADD COLUMN active_run TEXT NOT NULL DEFAULT ''",
		"UPDATE agent_runtimes SET active_run = 'run_under_way', seen = 7 WHERE agent_id = 'agt_one'",
		"ALTER TABLE timers DROP COLUMN on_behalf_of", "ALTER TABLE wakes DROP COLUMN on_behalf_of",
		"ALTER TABLE runs DROP COLUMN on_behalf_of", "ALTER TABLE scripts DROP COLUMN on_behalf_of",
		"DROP INDEX items_newest", "DROP INDEX items_waiting", "DROP INDEX errands_asking", "ALTER TABLE items DROP COLUMN entry_id",
		"CREATE INDEX items_newest ON items (agent_id, created_at, item_id)",
		"INSERT INTO automations (agent_id, workspace_id, script_id, paused_at, paused_run, owner, created_at, updated_at) VALUES ('agt_one', '" + ws + "', '', 0, '', '', 1, 1)",
		"UPDATE runs SET thread_id = 'agt_one:run:run_under_way' WHERE id = 'run_under_way'",
		"INSERT INTO session_files (workspace_id, session_id, path, size, body, created_at, updated_at) VALUES ('" + ws + "', 'agt_one:run:run_under_way', '/old.md', 3, 'old', 1, 1)",
		"DELETE FROM goose_db_version WHERE version_id >= 27",
	}...) {
		must(t, raw(ctx, e, query))
	}
	db, err = store.Open(ctx, e, Key)
	must(t, err)
	mine := view(t, db, func(s *store.Snap) ([]reeve.Run, error) { return s.RunsOf(ctx, "proc_1") })
	equal(t, ids(mine, func(r reeve.Run) string { return r.ID }), "run_under_way", "under way")
	update(t, db, func(tx *store.Tx) error {
		ok, err := tx.InsertRun(ctx, reeve.Run{ID: "run_beside", Key: "beside", WorkspaceID: ws, AgentID: "agt_one", SessionID: "manual:2", Reason: reeve.ReasonManual, ThreadID: "th"})
		equal(t, ok, false, "a second run at a time")
		return err
	})
	file := view(t, db, func(s *store.Snap) (string, error) {
		b, _, err := s.GetSessionFile(ctx, ws, reeve.SessionThread("agt_one", reeve.AutomationSession), "/old.md")
		return string(b), err
	})
	equal(t, file, "old", "what an automation's run wrote")
	must(t, ended(t, db, "run_under_way", reeve.RunCompleted))
	state := view(t, db, func(s *store.Snap) (reeve.AgentState, error) { return s.AgentState(ctx, "agt_one") })
	equal(t, fmt.Sprint(slices.Collect(maps.Values(state.Processed))), "[7]", "what it had seen when it began")
	for _, use := range []store.Use{store.Output, store.Undo, store.Talk} {
		got := view(t, db, func(s *store.Snap) (store.Slice, error) {
			return s.GetPayload(ctx, ws, use, reeve.Hash([]byte("kept before")), 0, -1)
		})
		equal(t, string(got.Body), "kept before", "what was kept, as %d", use)
	}
	must(t, db.Close())
}

// Occupied tests that a database of somebody else's that holds one of our names is refused whole, and that a migration that fails says why. Each engine that open gives is on the
// same database, which is new.
func Occupied(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	e := open(t)
	defer func() { must(t, e.Close()) }()
	must(t, raw(ctx, e, "CREATE TABLE tasks (id BIGINT)"))
	for range 2 { // the first refusal left nothing that the second would stumble over, or take for ours
		_, err := store.Open(ctx, e, Key)
		told := wantCode(t, err, reeve.AlreadyExists)
		if !strings.Contains(told.Message, ": tasks;") || !strings.Contains(told.Hint, "empty database") {
			t.Fatalf("not told what is in the way and what to do: %v; %s", told, told.Hint)
		}
	}
	for _, table := range []string{"workspaces", "goose_db_version"} {
		if err := raw(ctx, e, "SELECT count(*) FROM "+table); err == nil {
			t.Fatalf("%s was left behind", table)
		}
	}
	must(t, raw(ctx, e, "DROP TABLE tasks"))
	must(t, raw(ctx, e, "CREATE TABLE goose_db_version (id BIGINT, version_id BIGINT, is_applied BOOLEAN)")) // another's, which has come to its seventh
	must(t, raw(ctx, e, "INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, true), (2, 7, true)"))
	_, err := store.Open(ctx, e, Key)
	if told := wantCode(t, err, reeve.AlreadyExists); !strings.Contains(told.Message, "goose_db_version") {
		t.Fatal(told)
	}
	if err := raw(ctx, e, "SELECT count(*) FROM workspaces"); err == nil {
		t.Fatal("our tables were put beside another's")
	}
	must(t, raw(ctx, e, "DROP TABLE goose_db_version"))
	must(t, raw(ctx, e, "CREATE TABLE things (id BIGINT)")) // what is not in the way may stay
	db, err := store.Open(ctx, e, Key)
	must(t, err)
	must(t, db.Close())

	e = open(t)
	must(t, raw(ctx, e, "DELETE FROM goose_db_version WHERE version_id > 0"))
	_, err = store.Open(ctx, e, Key)
	told := wantCode(t, err, reeve.Unsupported)
	if !strings.Contains(told.Message, "00001_foundation.sql") || !strings.Contains(told.Message, "workspaces") || !strings.Contains(told.Message, "already exists") {
		t.Fatalf("a migration that failed does not say why: %v", told)
	}
}

func raw(ctx context.Context, e store.Engine, query string) error {
	h, _, err := e.Migrator(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	_, err = h.ExecContext(ctx, query)
	return err
}
