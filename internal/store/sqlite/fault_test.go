package sqlite_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
	"reeve/internal/store/storetest"
)

func wantCode(t *testing.T, err error, code reeve.Code, words ...string) {
	t.Helper()
	if got := reeve.CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
	told := reeve.AsError(err)
	for _, w := range words {
		if !strings.Contains(told.Message, w) {
			t.Fatalf("%q does not say %q", told.Message, w)
		}
	}
	if told.Hint == "" {
		t.Fatalf("%q has no hint", told.Message)
	}
}

// put stores a payload and returns its address.
func put(db *store.DB, body []byte) (hash string, err error) {
	ctx := context.Background()
	err = db.Update(ctx, func(tx *store.Tx) (err error) {
		hash, err = tx.Ledger().PutPayload(ctx, "ws", store.OutputPayload, body)
		return err
	})
	return hash, err
}

func has(t *testing.T, db *store.DB, hash string) bool {
	t.Helper()
	err := db.View(t.Context(), func(s *store.Snap) error {
		_, err := s.Ledger().GetPayload(t.Context(), "ws", store.OutputPayload, hash, 0, 1)
		return err
	})
	if err != nil && reeve.CodeOf(err) != reeve.NotFound {
		t.Fatal(err)
	}
	return err == nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// fill writes from several goroutines until all writes fail for lack of space. It checks that exactly the writes that
// were reported as successful are stored.
func fill(t *testing.T, db *store.DB) {
	t.Helper()
	var mu sync.Mutex
	stored, refused := []string{}, []string{}
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for failures := 0; failures < 3; {
				body := random(20_000)
				hash, err := put(db, body)
				mu.Lock()
				if err == nil {
					stored = append(stored, hash)
				} else {
					refused = append(refused, reeve.Hash(body))
					failures++
					if told := reeve.AsError(err); told.Code != reeve.Unavailable ||
						!strings.Contains(told.Message, "disk") || !strings.Contains(told.Message, "full") {
						t.Errorf("got %v, want UNAVAILABLE, disk full", err)
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(stored) == 0 {
		t.Fatal("nothing was stored at all")
	}
	for _, h := range stored {
		if !has(t, db, h) {
			t.Fatal("lost what was reported as stored")
		}
	}
	for _, h := range refused {
		if has(t, db, h) {
			t.Fatal("found what was reported as refused")
		}
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=5m"); err != nil {
		t.Fatalf("a small disk cannot be mounted (%v): run the tests as root on Linux", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	db := open(t, sqlite.Config{File: filepath.Join(dir, "reeve.db")})
	fill(t, db)
	err := db.Backup(t.Context(), filepath.Join(dir, "copy"))
	wantCode(t, err, reeve.Unavailable, "disk", "full")
	if left, _ := filepath.Glob(filepath.Join(dir, "*copy*")); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	hash, err := put(db, random(20_000))
	if err != nil || !has(t, db, hash) {
		t.Fatalf("after space was made: %v", err)
	}
}

// This test does not run in parallel, because the limit applies to the whole process.
func TestBackupOverTheLimitOfFiles(t *testing.T) {
	dir := t.TempDir()
	db := open(t, sqlite.Config{File: filepath.Join(dir, "reeve.db")})
	if _, err := put(db, random(1<<20)); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100_000, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	err := db.Backup(t.Context(), filepath.Join(dir, "copy"))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	wantCode(t, err, reeve.Unavailable, "copy cannot be written")
	if left, _ := filepath.Glob(filepath.Join(dir, "*copy*")); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for d := base; d != "/" && strings.HasPrefix(d, os.TempDir()) && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := func(name string, prepare func(file string)) string {
		d := filepath.Join(base, name)
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		prepare(filepath.Join(d, "reeve.db"))
		if err := os.Chmod(d, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(d, 0o755) })
		return filepath.Join(d, "reeve.db")
	}
	made := func(mode os.FileMode) func(string) {
		return func(file string) {
			e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
			if err != nil {
				t.Fatal(err)
			}
			db, err := store.Open(t.Context(), e, storetest.Key)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Close(), os.Chmod(file, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, file := range map[string]string{
		"no file, and none can be made": dir("a", func(string) {}),
		"file":                          dir("b", made(0o444)),
		"directory":                     dir("c", made(0o666)),
		"no directory":                  filepath.Join(base, "none", "reeve.db"),
	} {
		err := unprivileged(func() error {
			e, err := sqlite.Open(context.Background(), sqlite.Config{File: file})
			if err != nil {
				return err
			}
			defer func() { _ = e.Close() }()
			_, err = store.Open(context.Background(), e, storetest.Key)
			return err
		})
		if reeve.CodeOf(err) != reeve.Unavailable || reeve.AsError(err).Hint == "" {
			t.Errorf("%s: got %v, want UNAVAILABLE with a hint", name, err)
		}
	}
}

// unprivileged runs f on a thread with the file permissions of the user nobody, because root may write everywhere.
func unprivileged(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with us
		if os.Getuid() == 0 {
			_ = syscall.Setfsuid(65534)
		}
		done <- f()
	}()
	return <-done
}

func TestBusy(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	db := open(t, sqlite.Config{File: file, Busy: 50 * time.Millisecond})
	other, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	c, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	_, err = put(db, []byte("x"))
	wantCode(t, err, reeve.Unavailable, "busy")
	if has(t, db, reeve.Hash([]byte("x"))) {
		t.Fatal("written past the lock")
	}
	if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if _, err = put(db, []byte("x")); err != nil {
		t.Fatal(err)
	}
}

func TestNotADatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "reeve.db")
	text := bytes.Repeat([]byte("this is a letter, not a database\n"), 200)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
	wantCode(t, err, reeve.Unavailable, "not a database")
	_, err = sqlite.Check(t.Context(), file)
	wantCode(t, err, reeve.Unavailable, "not a database")
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
		t.Fatal("the file was changed")
	}
	_, err = sqlite.Open(t.Context(), sqlite.Config{File: dir})
	wantCode(t, err, reeve.Unavailable)
	if _, err := sqlite.Check(t.Context(), filepath.Join(dir, "none")); reeve.CodeOf(err) != reeve.NotFound {
		t.Fatalf("got %v, want NOT_FOUND", err)
	}
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "a?b=c.db", "a#b.db", "100%25.db", "ünï'q\".db", "a;b&c.db",
		"file:x.db"} {
		file := filepath.Join(t.TempDir(), name)
		db := open(t, sqlite.Config{File: file})
		if _, err := put(db, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := db.Backup(t.Context(), file+".copy"); err != nil {
			t.Fatal(err)
		}
		if v, err := sqlite.Check(t.Context(), file+".copy"); err != nil || v < 1 {
			t.Fatal(v, err)
		}
		if s, err := os.Stat(file); err != nil || s.Mode().Perm() != 0o600 {
			t.Fatal(s, err)
		}
	}
}

func TestSecretsAreSealed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	db := open(t, sqlite.Config{File: file})
	ctx := t.Context()
	if err := db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Agents().InsertWorkspace(ctx, "ws", "w"); err != nil {
			return err
		}
		return tx.Agents().PutSecret(ctx, "ws", "findable-name", "unfindable-value")
	}); err != nil {
		t.Fatal(err)
	}
	var bytesOnDisk []byte
	files, _ := filepath.Glob(file + "*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		bytesOnDisk = append(bytesOnDisk, b...)
	}
	if !bytes.Contains(bytesOnDisk, []byte("findable-name")) ||
		bytes.Contains(bytesOnDisk, []byte("unfindable-value")) {
		t.Fatal("the value is on disk as it is, or nothing is")
	}
}

func TestBackupUnderWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, sqlite.Config{File: filepath.Join(dir, "reeve.db")})
	ctx := t.Context()
	if err := db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Agents().InsertWorkspace(ctx, "ws", "w")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := 0; !stop.Load(); n++ { // two calls, always both
				thread := fmt.Sprintf("th_%d_%d", i, n)
				if err := db.Update(ctx, func(tx *store.Tx) error {
					for range 2 {
						c := store.Call{Operation: reeve.Operation{CallID: tx.NewID("msg"), WorkspaceID: "ws",
							ThreadID: "th"}, Args: thread, Request: []byte("{}")}
						if err := tx.Ledger().InsertCall(ctx, c, store.Preconditions{Revision: 1}); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	last := 0
	for i := range 4 {
		file := filepath.Join(dir, fmt.Sprint("copy", i))
		if err := db.Backup(ctx, file); err != nil {
			t.Fatal(err)
		}
		copied := open(t, sqlite.Config{File: file})
		var list []reeve.Message
		if err := copied.View(ctx, func(s *store.Snap) (err error) {
			list, err = s.Ledger().ListMessages(ctx, "ws", "th", "", 1<<30)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for n, m := range list {
			if n > 0 && m.PrevID != list[n-1].ID {
				t.Fatalf("copy %d is not of one moment: message %d is %+v", i, n, m)
			}
		}
		if len(list)%2 != 0 || len(list) < last {
			t.Fatalf("copy %d has %d messages, the one before had %d", i, len(list), last)
		}
		last = len(list)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := db.Backup(ended, filepath.Join(dir, "never")); reeve.CodeOf(err) != reeve.Canceled {
		t.Errorf("got %v, want CANCELED", err)
	}
	stop.Store(true)
	writers.Wait()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.Contains(e.Name(), "never") || strings.HasPrefix(e.Name(), ".") {
			t.Fatalf("left behind: %s", e.Name())
		}
	}
}

func TestMigration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	storetest.Migration(t, func(t *testing.T) store.Engine {
		e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
		if err != nil {
			t.Error(err)
		}
		return e
	})
}

func TestOccupied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "reeve.db")
	storetest.Occupied(t, func(t *testing.T) store.Engine {
		e, err := sqlite.Open(t.Context(), sqlite.Config{File: file})
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}
