package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// writes counts the writes that this process has made.
func writes(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "syscw: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A commit of several pages is written to the log at once. Not beside others, who write too.
func TestACommitIsWrittenAtOnce(t *testing.T) {
	db := open(t, sqlite.Config{File: filepath.Join(t.TempDir(), "reeve.db")})
	commit := func(i int) {
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			for j := range 4 {
				if err := tx.PutSessionFile(t.Context(), "ws", fmt.Sprint(i), fmt.Sprint(j), random(5000)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	commit(0)
	before := writes(t)
	for i := range 20 {
		commit(i + 1)
	}
	if n := writes(t) - before; n > 20*4 {
		t.Errorf("20 commits took %d writes", n)
	}
}

// A change that is larger than what is kept of it is read by whoever makes it, seen by nobody else before it is made, and whole or not there.
func TestAChangeLargerThanTheCache(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	const many, size = 400, 60_000 // twice the cache
	bodies := make([][]byte, many)
	for i := range bodies {
		bodies[i] = random(size)
	}
	count := func(s *store.Snap, session string) (n int) {
		for i, want := range bodies {
			got, ok, err := s.GetSessionFile(t.Context(), "ws", session, fmt.Sprint(i))
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
				if err := tx.PutSessionFile(t.Context(), "ws", session, fmt.Sprint(i), b); err != nil {
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
		db := open(t, sqlite.Config{File: file})
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
	db := open(t, sqlite.Config{File: file})
	if n, m := seen(db, "made"), seen(db, "taken back"); n != many || m != 0 {
		t.Errorf("opened again: %d are there of what was made, %d of what was taken back", n, m)
	}
}
