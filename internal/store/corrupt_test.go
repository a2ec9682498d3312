package store_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

func open(t *testing.T) (*store.DB, store.Engine) {
	t.Helper()
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), e, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, e
}

func exec(t *testing.T, e store.Engine, query string) {
	t.Helper()
	if err := e.Update(t.Context(), func(c store.Conn) error { return c.Exec(t.Context(), nil, query) }); err != nil {
		t.Fatal(err)
	}
}

// The doctor reads every table of the schema: one that is added needs a check.
func TestCorruptRowsReadsEveryTable(t *testing.T) {
	t.Parallel()
	db, e := open(t)
	var tables []string
	if err := e.View(t.Context(), func(c store.Conn) error {
		rows, err := c.Query(t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			index := strings.HasPrefix(name, "emails_") || strings.HasPrefix(name, "notes_words")
			if !index && !strings.HasPrefix(name, "sqlite_") && name != "goose_db_version" {
				tables = append(tables, name)
			}
		}
		return rows.Err()
	}); err != nil {
		t.Fatal(err)
	}
	if checked := slices.Sorted(slices.Values(store.CheckedTables())); !slices.Equal(checked, tables) {
		t.Errorf("checked: %q\ntables:  %q", checked, tables)
	}
	if rows, err := db.CorruptRows(t.Context()); err != nil || len(rows) != 0 {
		t.Errorf("a new database: %v, %v", rows, err)
	}
}

// An error names the row and the column, and never says what the column holds.
func TestErrCorruptRow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, e := open(t)
	if err := db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(ctx, "home", "Home")
		for _, id := range []string{"agt_1", "agt_2", "agt_3"} {
			err = errors.Join(err, tx.Agents().InsertAgent(ctx, reeve.Agent{ID: id, WorkspaceID: "home", Name: id,
				Kind: "assistant", Lifecycle: reeve.AgentActive, CreatedAt: tx.Now()}))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	exec(t, e, `UPDATE agents SET policy = '{"hunter2' WHERE id = 'agt_1'`)
	exec(t, e, `UPDATE agents SET throttle_ms = 'hunter2' WHERE id = 'agt_2'`)
	for id, why := range map[string]string{"agt_1": "policy is not the JSON that was stored",
		"agt_2": "a column has a value of the wrong type"} {
		err := db.View(ctx, func(s *store.Snap) error { _, err := s.Agents().GetAgent(ctx, "home", id); return err })
		row, ok := store.AsCorruptRow(err)
		if !ok || row.Table != "agents" || row.ID != id || row.Err == nil {
			t.Fatalf("%s: %v", id, err)
		}
		told := reeve.AsError(err)
		if told.Code != reeve.Corrupt || told.Message != `row "`+id+`" in table agents cannot be read: `+why ||
			!strings.Contains(told.Hint, "reeve doctor") {
			t.Errorf("%s: %+v", id, told)
		}
	}
	if err := db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().ListAgents(ctx, "home", "", 10)
		return err
	}); reeve.CodeOf(err) != reeve.Corrupt {
		t.Errorf("a list: %v", err)
	}
	if err := db.View(ctx, func(s *store.Snap) error {
		_, err := s.Agents().GetAgent(ctx, "home", "agt_3")
		return err
	}); err != nil {
		t.Errorf("another row: %v", err)
	}
	rows, err := db.CorruptRows(ctx)
	if err != nil || len(rows) != 2 || rows[0].ID != "agt_1" || rows[1].ID != "agt_2" {
		t.Errorf("found %v, %v", rows, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.View(gone, func(s *store.Snap) error {
		_, err := s.Agents().GetAgent(gone, "home", "agt_3")
		return err
	}); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("a caller that went away: %v", err)
	}
}

// A query that works for everybody skips a row that cannot be read, and logs it once.
func TestSkippedRowsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, e := open(t)
	var said strings.Builder
	db.SetLogger(slog.New(slog.NewTextHandler(&said, nil)))
	if err := db.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.Agents().PutTool(ctx, reeve.Tool{ID: "bad"}),
			tx.Agents().PutTool(ctx, reeve.Tool{ID: "good"}))
	}); err != nil {
		t.Fatal(err)
	}
	exec(t, e, `UPDATE tools SET retry = '{' WHERE id = 'bad'`)
	for range 3 {
		if err := db.View(ctx, func(s *store.Snap) error {
			list, err := s.Agents().Catalogue(ctx, "home")
			if len(list) != 1 || list[0].ID != "good" {
				t.Errorf("the catalogue has %+v", list)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), "table=tools id=bad"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, said.String())
	}
}
