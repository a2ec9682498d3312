package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// counted is how often this process has read ("syscr") or written ("syscw").
func counted(t *testing.T, what string) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), what+": ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// both runs a test of a database whose log is written past the system's cache, and of one whose log is not.
func both(t *testing.T, f func(t *testing.T, opened func(*testing.T) *store.DB)) {
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "reeve.db")
			f(t, func(t *testing.T) *store.DB {
				db := open(t, sqlite.Config{File: file})
				if _, err := put(db, random(1)); err != nil {
					t.Fatal(err)
				}
				if fd, err := syscall.Open(file+"-wal", syscall.O_RDONLY|syscall.O_DIRECT, 0); err == nil {
					_ = syscall.Close(fd)
					if direct && !sqlite.Directed(file) {
						t.Error("the log could be written past the system's cache, and is not")
					}
				}
				if !direct && !sqlite.Undirected(file) {
					t.Fatal("the layer does not know the file")
				}
				return db
			})
		})
	}
}

// A commit of several pages is written to the log at once, and read from memory. Not beside others, who write too.
func TestACommitIsWrittenAtOnce(t *testing.T) {
	both(t, func(t *testing.T, opened func(*testing.T) *store.DB) {
		db := opened(t)
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
		read := func(i int) {
			err := db.View(t.Context(), func(s *store.Snap) error {
				for j := range 4 {
					if b, ok, err := s.GetSessionFile(t.Context(), "ws", fmt.Sprint(i), fmt.Sprint(j)); err != nil || !ok || len(b) != 5000 {
						return fmt.Errorf("%d bytes (%v, %w)", len(b), ok, err)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		commit(0)
		read(0)
		before := counted(t, "syscw")
		for i := range 20 {
			commit(i + 1)
		}
		if n := counted(t, "syscw") - before; n > 20*4 {
			t.Errorf("20 commits took %d writes", n)
		}
		before = counted(t, "syscr")
		for i := range 20 {
			read(i + 1)
		}
		if n := counted(t, "syscr") - before; n > 20 {
			t.Errorf("reading them took %d reads", n)
		}
	})
}

// A change that is larger than what is kept of it is read by whoever makes it, seen by nobody else before it is made, and whole or not there.
func TestAChangeLargerThanTheCache(t *testing.T) {
	t.Parallel()
	both(t, larger)
}

func larger(t *testing.T, opened func(*testing.T) *store.DB) {
	const many, size = 700, 60_000 // thrice the cache, and more than there is of a log in memory
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

// What was taken back is written over nothing that somebody else has written since. Not beside others: how much SQLite keeps depends on them.
func TestWhatWasTakenBackIsNotWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reeve.db")
	one, other := open(t, sqlite.Config{File: file}), open(t, sqlite.Config{File: file})
	put := func(db *store.DB, session string, many int, made error) error {
		return db.Update(t.Context(), func(tx *store.Tx) error {
			for i := range many {
				if err := tx.PutSessionFile(t.Context(), "ws", session, fmt.Sprint(i), random(60_000)); err != nil {
					return err
				}
			}
			return made
		})
	}
	raw, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := put(one, "taken back", 400, os.ErrClosed); !errors.Is(err, os.ErrClosed) { // twice the cache
		t.Fatal(err)
	}
	const many = 205 // as much as was taken back, and no more than the log holds
	for i := range many {
		if err := put(other, fmt.Sprint("made ", i), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(one, "made", 1, nil); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		err := other.View(t.Context(), func(s *store.Snap) error {
			_, ok, err := s.GetSessionFile(t.Context(), "ws", fmt.Sprint("made ", i), "0")
			if err == nil && !ok {
				err = fmt.Errorf("what was made %d is gone", i)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sqlite.Check(t.Context(), file); err != nil {
		t.Fatal(err)
	}
}

// What SQLite was told is written is, also when the disk was full meanwhile. Not beside others: how much SQLite keeps depends on them.
func TestFullDiskWithinAChange(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatalf("a small disk cannot be mounted (%v): run the tests as root on Linux", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	open(t, sqlite.Config{File: filepath.Join(dir, "reeve.db")}) // the layer is there from now on
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "other.db")+"?_pragma=synchronous(FULL)&_pragma=journal_mode(WAL)&_pragma=cache_size(10)&vfs=reeve")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do := func(q string) error { _, err := c.ExecContext(t.Context(), q); return err }
	must := func(q string) {
		t.Helper()
		if err := do(q); err != nil {
			t.Fatal(q, err)
		}
	}
	must("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, b BLOB)")
	must("BEGIN IMMEDIATE")
	for i := range 50 {
		must(fmt.Sprintf("INSERT INTO t VALUES (%d, %d, randomblob(3900))", i, i))
	}
	must("SAVEPOINT s")
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	f.Close()
	err = do("UPDATE t SET n = -n - 1 WHERE id < 10")
	if err == nil {
		t.Fatal("the disk is not full")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	want := 50
	if err := errors.Join(do("ROLLBACK TO s"), do("COMMIT")); err != nil {
		t.Log("all of it was taken back:", err)
		want = 0
	}
	other, err := sql.Open("sqlite", filepath.Join(dir, "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var n int
	var verdict string
	if err := other.QueryRow("SELECT count(b) FROM t").Scan(&n); err != nil || n != want {
		t.Errorf("%d of %d are there (%v)", n, want, err)
	}
	if err := other.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("%s (%v)", verdict, err)
	}
}
