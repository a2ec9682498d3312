package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// A transaction that is larger than SQLite's cache sees its own changes. Other transactions see none of the changes
// before the commit. After the commit they see all of them, and after a rollback none.
func TestTransactionLargerThanCache(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	openFile := func(t *testing.T) *store.DB { return open(t, sqlite.Config{File: file}) }
	const many, size = 700, 60_000 // three times the cache
	bodies := make([][]byte, many)
	for i := range bodies {
		bodies[i] = randomBytes(size)
	}
	count := func(s *store.Snap, session string) (n int) {
		for i, want := range bodies {
			got, ok, err := s.Chat().GetSessionFile(t.Context(), "ws", session, fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if ok && string(got) != string(want) {
				t.Fatalf("file %d of %s is not what was written", i, session)
			}
			if ok {
				n++
			}
		}
		return n
	}
	countVisible := func(db *store.DB, session string) (n int) {
		if err := db.View(t.Context(), func(s *store.Snap) error { n = count(s, session); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(db *store.DB, session string, result error) error {
		return db.Update(t.Context(), func(tx *store.Tx) error {
			for i, b := range bodies {
				if err := tx.Chat().PutSessionFile(t.Context(), "ws", session, fmt.Sprint(i), b); err != nil {
					return err
				}
			}
			if n := count(&tx.Snap, session); n != many {
				t.Errorf("the transaction reads %d of its files, want %d", n, many)
			}
			if n := countVisible(db, session); n != 0 {
				t.Errorf("another transaction reads %d uncommitted files", n)
			}
			return result
		})
	}
	t.Run("write", func(t *testing.T) {
		db := openFile(t)
		if err := write(db, "committed", nil); err != nil {
			t.Fatal(err)
		}
		if err := write(db, "rolled back", os.ErrClosed); !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		if n, m := countVisible(db, "committed"), countVisible(db, "rolled back"); n != many || m != 0 {
			t.Errorf("%d committed files, want %d; %d files of the rollback, want 0", n, many, m)
		}
	})
	db := openFile(t)
	if n, m := countVisible(db, "committed"), countVisible(db, "rolled back"); n != many || m != 0 {
		t.Errorf("after reopening: %d committed files, want %d; %d files of the rollback, want 0", n, many, m)
	}
}
