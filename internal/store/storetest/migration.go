package storetest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// Migration tests what happens to a database that is opened again: by the same Reeve, by several at once, by an older
// one, and with another key. Each engine that open gives is on the same database, which is new.
func Migration(t *testing.T, open func(t *testing.T) store.Engine) {
	ctx := t.Context()
	first := open(t)
	atOnce := 4
	if first.SingleProcess() {
		atOnce = 1
	}
	must(t, first.Close())
	opened := race(atOnce, func(int) error {
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
	must(t, firstOf(opened))

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
	told := wantCode(t, db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().
			GetSecret(ctx, ws, "key")
		return err
	}), reeve.Unavailable)
	if told.Hint == "" || bytes.Contains([]byte(told.Error()), []byte("value")) {
		t.Fatalf("not told what to do: %v", told)
	}
	// What cannot be opened can be stored again.
	update(t, db, func(tx *store.Tx) error { return tx.Agents().PutSecret(ctx, ws, "key", "value") })
	equal(t, view(t, db, func(s *store.Snap) (string, error) { return s.Agents().GetSecret(ctx, ws, "key") }), "value",
		"stored again")
	was := revision(t, db, ws)
	must(t, db.Close())

	e = open(t)
	// from before the first release
	must(t, raw(ctx, e, "UPDATE goose_db_version SET version_id = version_id - 60 WHERE version_id >= 100"))
	_, err = store.Open(ctx, e, Key)
	if told := wantCode(t, err, reeve.Unsupported); !strings.Contains(told.Message, "schema version 41") ||
		!strings.Contains(told.Hint, "empty") {
		t.Fatal(told)
	}
	must(t, raw(ctx, e, "UPDATE goose_db_version SET version_id = version_id + 60 WHERE version_id >= 40"))

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

// Occupied tests that a database of somebody else's that holds one of our names is refused whole, and that a migration
// that fails says why. Each engine that open gives is on the same database, which is new.
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
	// another's, which has come to its seventh
	must(t, raw(ctx, e, "CREATE TABLE goose_db_version (id BIGINT, version_id BIGINT, is_applied BOOLEAN)"))
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
	if !strings.Contains(told.Message, "00100_initial.sql") || !strings.Contains(told.Message, "workspaces") ||
		!strings.Contains(told.Message, "already exists") {
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
