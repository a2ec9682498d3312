package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"reeve"
	"reeve/internal/store"
)

// files watches a database's files: whether the names in the directory still mean the files that SQLite has open. On a file that
// was moved away or replaced, SQLite goes on as if nothing had happened, and what it writes is found by no later start.
type files struct {
	name string
	db   *os.File // open for as long as SQLite has the file: closing it earlier would drop SQLite's locks on it
	was  os.FileInfo

	mu     sync.Mutex
	log    os.FileInfo // the -wal as it was first seen; nil until then
	probed time.Time   // when the disk was last tried; see diagnose
	bad    error       // what that said
}

// watch begins to watch the files of a database that SQLite has just opened.
func watch(name string) (*files, error) {
	db, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	was, err := db.Stat()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &files{name: name, db: db, was: was}, nil
}

// checkLog refuses a log that is not its database's, before SQLite sees the two. Without a database it would take the log for a
// leftover and delete it, with every change in it; beside another database it would write the log's pages into that.
func checkLog(file string) error {
	name := filepath.Base(file)
	again := fmt.Sprintf("put the database file back beside its log, or restore a backup with reeve restore; "+
		"to do without what the log holds, move %s-wal and %s-shm away", name, name)
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		for _, ending := range []string{"-wal", "-shm"} {
			if s, err := os.Stat(file + ending); err == nil && (info == nil || s.Size() > 0) {
				return reeve.Errorf(reeve.Unavailable, "the database %s is gone, but %s%s is there, which holds its last changes; nothing was changed",
					file, name, ending).Hintf("%s", again)
			}
		}
		return nil
	}
	if s, err := os.Stat(file + "-wal"); err != nil || s.Size() == 0 {
		return nil
	}
	head, err := header(file)
	if err == nil && head[18] == 1 && string(head[:16]) == "SQLite format 3\x00" { // as in every backup: it was never used with a log
		err = reeve.Errorf(reeve.Unavailable, "the database %s is another one than that which %s-wal holds changes of; nothing was changed", file, name).
			Hintf("%s", again)
	}
	return err
}

// header reads the beginning of a file. What is missing is zeros.
func header(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 32)
	_, err = f.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, errors.Join(err, f.Close())
}

func (f *files) close() error { return f.db.Close() }

// forgetLog lets the next look take whatever log is there for the right one.
func (f *files) forgetLog() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = nil
}

// present refuses with [store.FaultGone] when a file is missing, another one, or shorter than it says.
func (f *files) present() error {
	info, err := os.Stat(f.name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return gone("the database file %s is gone from its place", f.name)
	case err != nil:
		return store.Fault{Kind: store.FaultDisk, Err: err}
	case !os.SameFile(info, f.was):
		return gone("the database file %s is another one than the server opened", f.name)
	}
	if whole, err := wholeFile(f.db, info.Size()); err != nil {
		return store.Fault{Kind: store.FaultDisk, Err: err}
	} else if !whole {
		return gone("the database file %s was cut off", f.name)
	}
	return f.presentLog()
}

func (f *files) presentLog() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name + "-wal")
	switch {
	case f.log == nil && err == nil:
		f.log = info
	case f.log == nil: // SQLite makes it with the first change
	case errors.Is(err, os.ErrNotExist):
		return gone("the database's log %s-wal is gone from its place", f.name)
	case err != nil:
		return store.Fault{Kind: store.FaultDisk, Err: err}
	case !os.SameFile(info, f.log):
		return gone("the database's log %s-wal is another one than the server opened", f.name)
	}
	return nil
}

func gone(format string, args ...any) error {
	return store.Fault{Kind: store.FaultGone, Err: fmt.Errorf(format, args...)}
}

// wholeFile tells whether a database file of some size is at least as long as its first page says. An empty one is not: a
// database that SQLite has opened has a first page.
func wholeFile(f *os.File, size int64) (bool, error) {
	head := make([]byte, 32)
	if _, err := f.ReadAt(head, 0); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return size >= sizeOf(head), nil
}

// sizeOf is how many bytes a database has, by its first page.
func sizeOf(head []byte) int64 {
	page, pages := int64(binary.BigEndian.Uint16(head[16:])), int64(binary.BigEndian.Uint32(head[28:]))
	if page == 1 { // which two bytes cannot say
		page = 65536
	}
	return page * pages
}

// diagnose tells a disk that fails from a database that is damaged: SQLite has one code for both when reading fails. What it calls
// damaged is read once more; if that fails, it is the disk. A file that was cut off is told first.
func (f *files) diagnose(err error) error {
	var was store.Fault
	if !errors.As(err, &was) || was.Kind != store.FaultCorrupt {
		return err
	}
	if err := f.present(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := reeve.Now(); now.Sub(f.probed) > time.Minute { // reading it all may take long
		f.probed, f.bad = now, errors.Join(readable(f.db), readableName(f.name+"-wal"))
	}
	if f.bad != nil {
		return store.Fault{Kind: store.FaultDisk, Err: f.bad}
	}
	return err
}

// diagnose is [files.diagnose] for a file that nobody has open.
func diagnose(name string, err error) error {
	var was store.Fault
	if !errors.As(err, &was) || was.Kind != store.FaultCorrupt {
		return err
	}
	if bad := errors.Join(readableName(name), readableName(name+"-wal")); bad != nil {
		return store.Fault{Kind: store.FaultDisk, Err: bad}
	}
	return err
}

// readFor is how long a file is read to find out whether it can be.
const readFor = 2 * time.Second

// readable reads a file to its end, or as far as it gets in a moment.
func readable(f *os.File) error {
	began, buf := reeve.Monotonic(), make([]byte, 1<<20)
	for at := int64(0); reeve.Since(began) < readFor; {
		n, err := f.ReadAt(buf, at)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// readableName is readable for a file by its name. One that is not there is fine.
func readableName(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(readable(f), f.Close())
}
