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

// A transaction that is larger than SQLite's cache sees its own changes. Others see none of them before the commit, and
// all or none of them afterwards.
func TestAChangeLargerThanTheCache(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	opened := func(t *testing.T) *store.DB { return open(t, sqlite.Config{File: file}) }
	const many, size = 700, 60_000 // three times the cache
	bodies := make([][]byte, many)
	for i := range bodies {
		bodies[i] = random(size)
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
	seen := func(db *store.DB, session string) (n int) {
		if err := db.View(t.Context(), func(s *store.Snap) error { n = count(s, session); return nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	write := func(db *store.DB, session string, made error) error {
		return db.Update(t.Context(), func(tx *store.Tx) error {
			for i, b := range bodies {
				if err := tx.Chat().PutSessionFile(t.Context(), "ws", session, fmt.Sprint(i), b); err != nil {
					return err
				}
			}
			if n := count(&tx.Snap, session); n != many {
				t.Errorf("it reads %d of its own", n)
			}
			if n := seen(db, session); n != 0 {
				t.Errorf("somebody else sees %d", n)
			}
			return made
		})
	}
	t.Run("made", func(t *testing.T) {
		db := opened(t)
		if err := write(db, "made", nil); err != nil {
			t.Fatal(err)
		}
		if err := write(db, "taken back", os.ErrClosed); !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		if n, m := seen(db, "made"), seen(db, "taken back"); n != many || m != 0 {
			t.Errorf("%d are there of what was made, %d of what was taken back", n, m)
		}
	})
	db := opened(t)
	if n, m := seen(db, "made"), seen(db, "taken back"); n != many || m != 0 {
		t.Errorf("opened again: %d are there of what was made, %d of what was taken back", n, m)
	}
}
