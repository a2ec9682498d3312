package storetest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Migration tests opening a database several times: by several processes concurrently, with another key, after a
// version from before the first release, and after a newer version. Every call of open returns an engine on the same
// database, which is empty at first.
func Migration(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	first := open(t)
	processes := 4
	if first.SingleProcess() {
		processes = 1
	}
	must(t, first.Close())
	errs := runConcurrently(processes, func(int) error {
		e := open(t)
		db, err := store.Open(ctx, e, Key)
		if err == nil {
			err = db.View(ctx, func(s *store.Snap) error { _, err := s.Agents().ListWorkspaces(ctx); return err })
		}
		if err != nil {
			return err
		}
		return db.Close()
	})
	must(t, firstError(errs))

	e := open(t)
	db, err := store.Open(ctx, e, Key)
	must(t, err)
	setUp(t, db)
	update(t, db, func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, ws, "key", "value") })
	must(t, db.Close())

	e = open(t)
	for _, key := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte("x"), 16)} {
		_, err := store.Open(ctx, e, key)
		wantCode(t, err, reeve.Validation)
	}
	db, err = store.Open(ctx, e, bytes.Repeat([]byte("x"), 32))
	must(t, err)
	readErr := wantCode(t, db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().GetSecret(ctx, ws, "key")
		return err
	}), reeve.Unavailable)
	if readErr.Hint == "" || bytes.Contains([]byte(readErr.Error()), []byte("value")) {
		t.Fatalf("no hint, or the error contains the secret: %v", readErr)
	}
	// A secret that cannot be decrypted can be replaced.
	update(t, db, func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, ws, "key", "value") })
	equal(t, view(t, db, func(s *store.Snap) (string, error) { return s.Agents().GetSecret(ctx, ws, "key") }), "value",
		"secret after it was stored again")
	before := getRevision(t, db, ws)
	must(t, db.Close())

	e = open(t)
	// a version from before the first release
	must(t, execSQL(ctx, e, "UPDATE goose_db_version SET version_id = version_id - 99 WHERE version_id >= 100"))
	_, err = store.Open(ctx, e, Key)
	if e := wantCode(t, err, reeve.Unsupported); !strings.Contains(e.Message, "of an unreleased Reeve") ||
		!strings.Contains(e.Hint, "empty") {
		t.Fatal(e)
	}
	must(t, execSQL(ctx, e, "UPDATE goose_db_version SET version_id = version_id + 99 WHERE version_id >= 1"))

	e = open(t)
	must(t, execSQL(ctx, e, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)"))
	must(t, execSQL(ctx, e, "DROP TABLE session_files")) // a newer version may have dropped a table
	_, err = store.Open(ctx, e, Key)
	wantCode(t, err, reeve.Unsupported)
	if err := execSQL(ctx, e, "SELECT count(*) FROM session_files"); err == nil {
		t.Fatal("a newer database was changed")
	}
	must(t, execSQL(ctx, e, "DELETE FROM goose_db_version WHERE version_id = 99999"))
	db, err = store.Open(ctx, e, Key)
	must(t, err)
	equal(t, getRevision(t, db, ws), before, "revision")
	must(t, db.Close())
}

// ForeignTables tests that a database of another program is refused and stays unchanged if it has a table with the name
// of one of Reeve's tables. It also tests that the error of a failed migration names the cause. Every call of open
// returns an engine on the same database, which is empty at first.
func ForeignTables(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	e := open(t)
	defer func() { must(t, e.Close()) }()
	must(t, execSQL(ctx, e, "CREATE TABLE tasks (id BIGINT)"))
	for range 2 { // the first refusal must leave nothing behind that changes the second
		_, err := store.Open(ctx, e, Key)
		e := wantCode(t, err, reeve.AlreadyExists)
		if !strings.Contains(e.Message, ": tasks;") || !strings.Contains(e.Hint, "empty database") {
			t.Fatalf("the error lacks the name of the table or the hint: %v; %s", e, e.Hint)
		}
	}
	for _, table := range []string{"workspaces", "goose_db_version"} {
		if err := execSQL(ctx, e, "SELECT count(*) FROM "+table); err == nil {
			t.Fatalf("%s was left behind", table)
		}
	}
	must(t, execSQL(ctx, e, "DROP TABLE tasks"))
	// the version table of another program, at version 7
	must(t, execSQL(ctx, e, "CREATE TABLE goose_db_version (id BIGINT, version_id BIGINT, is_applied BOOLEAN)"))
	must(t, execSQL(ctx, e,
		"INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, true), (2, 7, true)"))
	_, err := store.Open(ctx, e, Key)
	if e := wantCode(t, err, reeve.AlreadyExists); !strings.Contains(e.Message, "goose_db_version") {
		t.Fatal(e)
	}
	if err := execSQL(ctx, e, "SELECT count(*) FROM workspaces"); err == nil {
		t.Fatal("tables were created in the database of another program")
	}
	must(t, execSQL(ctx, e, "DROP TABLE goose_db_version"))
	must(t, execSQL(ctx, e, "CREATE TABLE things (id BIGINT)")) // a table with another name is allowed
	db, err := store.Open(ctx, e, Key)
	must(t, err)
	must(t, db.Close())

	e = open(t)
	must(t, execSQL(ctx, e, "DELETE FROM goose_db_version WHERE version_id > 0"))
	_, err = store.Open(ctx, e, Key)
	failed := wantCode(t, err, reeve.Unsupported)
	if !strings.Contains(failed.Message, "00100_initial.sql") || !strings.Contains(failed.Message, "workspaces") ||
		!strings.Contains(failed.Message, "already exists") {
		t.Fatalf("the error does not name the cause of the failed migration: %v", failed)
	}
}

// execSQL executes a query directly on the database.
func execSQL(ctx context.Context, e store.Engine, query string) error {
	h, _, err := e.Migrator(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	_, err = h.ExecContext(ctx, query)
	return err
}
