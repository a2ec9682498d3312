package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Exercise(t, func(t *testing.T) *store.DB {
		file := filepath.Join(t.TempDir(), "reeve.db")
		storetest.SQLiteFile(t, file)
		return open(t, sqlite.Config{File: file})
	})
}

func open(t testing.TB, cfg sqlite.Config) *store.DB {
	t.Helper()
	e, err := sqlite.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), e, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// The end of a context stops an endless query, and the connection then serves the next caller.
func TestStoppedRead(t *testing.T) {
	e, err := sqlite.Open(t.Context(), sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db"), Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	// The driver interrupts once, and in vain if the statement has not yet begun: on a busy machine, one that is
	// prepared for longer than it may take comes to its end, which is some seconds away.
	stopped := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		err := e.View(ctx, func(c store.Conn) error {
			rows, err := c.Query(ctx,
				"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000000) SELECT count(*) "+
					"FROM n")
			if err == nil {
				err = rows.Close()
			}
			return err
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		return err != nil
	}
	for range 3 {
		for tries := 0; !stopped(); tries++ {
			if tries == 5 {
				t.Fatal("it came to its end each time")
			}
		}
		var n int
		if err := e.View(t.Context(), func(c store.Conn) error {
			rows, err := c.Query(t.Context(), "SELECT 7")
			if err != nil {
				return err
			}
			for rows.Next() {
				if err := rows.Scan(&n); err != nil {
					return err
				}
			}
			return errors.Join(rows.Err(), rows.Close())
		}); err != nil || n != 7 {
			t.Fatalf("afterwards: %d, %v", n, err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) *store.DB {
		return open(b, sqlite.Config{File: filepath.Join(b.TempDir(), "reeve.db")})
	})
}

// A corrupt summary is claimed once and then does not block the others.
func TestACorruptSummaryIsNotTakenAgain(t *testing.T) {
	ctx := t.Context()
	e, err := sqlite.Open(ctx, sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(ctx, e, storetest.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var taken store.Summary
	var ok bool
	claim := func(tx *store.Tx) (err error) { taken, ok, err = tx.Chat().ClaimSummary(ctx, "proc_1"); return err }
	if err := db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(ctx, "home", "Home")
		return errors.Join(err, tx.System().RegisterProcess(ctx, "proc_1"),
			tx.Chat().InsertConversation(ctx, reeve.Conversation{ID: "cnv_1", WorkspaceID: "home"}),
			tx.Chat().QueueSummary(ctx, store.Summary{ThreadID: "corrupt", WorkspaceID: "home",
				ConversationID: "cnv_1"}),
			tx.Chat().QueueSummary(ctx, store.Summary{ThreadID: "good", WorkspaceID: "home", ConversationID: "cnv_1"}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Update(ctx, func(c store.Conn) error {
		return c.Exec(ctx, nil, "UPDATE summaries SET due_at = 1.5 WHERE thread_id = 'corrupt'")
	}), db.Update(ctx, claim)); err != nil || ok {
		t.Fatalf("%+v, %v", taken, err)
	}
	if err := db.Update(ctx, claim); err != nil || !ok || taken.ThreadID != "good" {
		t.Errorf("%+v, %v", taken, err)
	}
}
