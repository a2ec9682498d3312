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

// files watches a database's files: whether the names in the directory still mean the files that SQLite has open. On a
// file that was moved away or replaced, SQLite goes on as if nothing had happened, and what it writes is found by no
// later start.
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

// checkLog refuses a log that is not its database's, before SQLite sees the two. Without a database it would take the
// log for a leftover and delete it, with every change in it; beside another database it would write the log's pages
// into that.
func checkLog(file string) error {
	name := filepath.Base(file)
	again := fmt.Sprintf("put the database file back beside its log, or restore a backup with reeve restore; "+
		"to do without what the log holds, move %s-wal and %s-shm away", name, name)
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		for _, ending := range []string{"-wal", "-shm"} {
			if s, err := os.Stat(file + ending); err == nil && (info == nil || s.Size() > 0) {
				return reeve.Errorf(reeve.Unavailable,
					"the database %s is gone, but %s%s is there, which holds its last changes; nothing was changed",
					file, name, ending).Hintf("%s", again)
			}
		}
		return nil
	}
	if s, err := os.Stat(file + "-wal"); err != nil || s.Size() == 0 {
		return nil
	}
	head, err := header(file)
	if err != nil {
		return err
	}
	why := ""
	switch cut, err := cutOff(file); {
	case err != nil:
		return err
	case string(head[:16]) != "SQLite format 3\x00":
		why = "the file %s is no database, but %s-wal is there, which holds changes of one; nothing was changed"
	case head[18] == 1: // as in every backup: it was never used with a log
		why = "the database %s is another one than that which %s-wal holds changes of; nothing was changed"
	case cut:
		why = "the database file %s was cut off, and %s-wal does not hold what is missing; nothing was changed"
	default:
		return nil
	}
	return reeve.Errorf(reeve.Unavailable, why, file, name).Hintf("%s", again)
}

// header reads the beginning of a file. What is missing is zeros.
func header(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 32)
	_, err = f.ReadAt(head, 0)
	return head, errors.Join(ignoreEOF(err), f.Close())
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
	if cut, err := cutOff(f.name); err != nil {
		return store.Fault{Kind: store.FaultDisk, Err: err}
	} else if cut {
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

// cutOff tells whether pages of a database are neither in its file nor in its log. The file alone may be short: SQLite
// copies the log into it page by page, the first page with the new size before others, and a crash may come between.
func cutOff(file string) (bool, error) {
	info, err := os.Stat(file)
	if err != nil {
		return false, err
	}
	head, err := header(file)
	if err != nil {
		return false, err
	}
	pageSize := pageSizeOf(head)
	if pageSize == 0 { // no database that SQLite has opened
		return true, nil
	}
	if info.Size() >= sizeOf(head) { // SQLite copies page 1 first, so no page that it counts is missing
		return false, nil
	}
	logged, pages, err := logPages(file + "-wal")
	if err != nil {
		return false, err
	}
	if pages == 0 {
		return info.Size() < sizeOf(head), nil
	}
	for page := info.Size()/pageSize + 1; page <= pages; page++ {
		if !logged[page] {
			return true, nil
		}
	}
	return false, nil
}

// logPages reads which pages a database's log holds, and how many pages the database has with its last change; zero if
// it holds no change that was committed. The format is described in "WAL-mode File Format" of SQLite's documentation.
func logPages(log string) (held map[int64]bool, pages int64, err error) {
	f, err := os.Open(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	const logHeader, frameHeader = 32, 24
	head := make([]byte, logHeader)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, 0, ignoreEOF(err)
	}
	salts, pageSize := head[16:24], int64(binary.BigEndian.Uint32(head[8:]))
	held = map[int64]bool{}
	var begun []int64 // pages of a change of which the end was not read yet
	for at, frame := int64(logHeader), make([]byte, frameHeader); ; at += frameHeader + pageSize {
		if _, err := f.ReadAt(frame, at); err != nil {
			return held, pages, ignoreEOF(err)
		}
		if string(frame[8:16]) != string(salts) { // left over from an earlier use of the file
			return held, pages, nil
		}
		begun = append(begun, int64(binary.BigEndian.Uint32(frame)))
		if size := binary.BigEndian.Uint32(frame[4:]); size > 0 { // the last frame of a change
			for _, page := range begun {
				held[page] = true
			}
			pages, begun = int64(size), begun[:0]
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// sizeOf is how many bytes a database has, by its first page.
func sizeOf(head []byte) int64 { return pageSizeOf(head) * int64(binary.BigEndian.Uint32(head[28:])) }

func pageSizeOf(head []byte) int64 {
	if size := int64(binary.BigEndian.Uint16(head[16:])); size != 1 {
		return size
	}
	return 65536 // which two bytes cannot say
}

// diagnose tells a disk that fails from a database that is damaged: SQLite has one code for both when reading fails.
// What it calls damaged is read once more; if that fails, it is the disk. A file that was cut off is told first.
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
