//go:build unix

package sqlite_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// checkVariable names the database whose locks a second process of this test checks.
const checkVariable = "REEVE_TEST_LOCKS"

func TestMain(m *testing.M) {
	if file := os.Getenv(checkVariable); file != "" {
		if err := printLock(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// printLock prints "locked" if another process holds SQLite's shared lock on a database. See "File Locking" in SQLite's
// documentation for the bytes.
func printLock(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: 0x40000002, Len: 510}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return err
	}
	if lock.Type != syscall.F_UNLCK {
		fmt.Print("locked")
	}
	return nil
}

// Programs with another version of SQLite, such as its shell, delete the log when they close a database that nobody
// has locked. So the server keeps its locks, also after it has checked its files.
func TestDatabaseStaysLocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reeve.db")
	db := open(t, sqlite.Config{File: file, Readers: 2})
	ctx := t.Context()
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.IncrementRevision(ctx, "default") }); err != nil {
		t.Fatal(err)
	}
	if err := db.View(ctx, func(s *store.Snap) error { // its connection is new, so the files are checked
		_, err := s.Agents().AgentsByID(ctx, []string{"none"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), checkVariable+"="+file)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "locked" {
		t.Errorf("another process finds %q, %v; want a lock", out, err)
	}
}
