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

// watchedFiles checks whether the names of a database's files still refer to the files that SQLite has open. SQLite
// does not notice when a file is moved or replaced, and a later start would not find what it writes.
type watchedFiles struct {
	name   string
	db     *os.File // stays open while SQLite has the file open; closing it would drop SQLite's locks
	opened os.FileInfo

	mu       sync.Mutex
	wal      os.FileInfo // the -wal file when it was first seen; nil until then
	probed   time.Time   // when the disk was last probed; see diagnose
	probeErr error       // the result of the probe
}

// watchFiles begins to watch the files of a database that SQLite has just opened.
func watchFiles(name string) (*watchedFiles, error) {
	db, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	was, err := db.Stat()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &watchedFiles{name: name, db: db, opened: was}, nil
}

// checkWAL refuses a log that does not belong to the database file, before SQLite opens them. Without a database,
// SQLite would delete the log and all changes in it. Beside another database, it would write the log's pages into that
// database.
func checkWAL(file string) error {
	name := filepath.Base(file)
	hint := fmt.Sprintf("put the database file back beside its log, or restore a backup with reeve restore; "+
		"to discard the changes in the log, move %s-wal and %s-shm away", name, name)
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		for _, ending := range []string{"-wal", "-shm"} {
			if s, err := os.Stat(file + ending); err == nil && (info == nil || s.Size() > 0) {
				return reeve.Errorf(reeve.Unavailable,
					"database %s is missing, but %s%s exists and contains its last changes; nothing was changed",
					file, name, ending).Hintf("%s", hint)
			}
		}
		return nil
	}
	if s, err := os.Stat(file + "-wal"); err != nil || s.Size() == 0 {
		return nil
	}
	db, err := os.Open(file)
	if err != nil {
		return err
	}
	defer db.Close() // SQLite has not opened the file yet, so there are no locks to drop
	head, err := readHeader(db)
	if err != nil {
		return err
	}
	message := ""
	switch cut, err := isTruncated(db, file+"-wal"); {
	case err != nil:
		return err
	case string(head[:16]) != "SQLite format 3\x00":
		message = "file %s is not a database, but %s-wal exists and contains changes of one; nothing was changed"
	case head[18] == 1: // not in WAL mode, like every backup
		message = "database %s is not the one whose changes %s-wal contains; nothing was changed"
	case cut:
		message = "database file %s was truncated, and %s-wal does not contain what is missing; nothing was changed"
	default:
		return nil
	}
	return reeve.Errorf(reeve.Unavailable, message, file, name).Hintf("%s", hint)
}

// readHeader returns the first 32 bytes of a file. Missing bytes are zero.
func readHeader(f *os.File) ([]byte, error) {
	head := make([]byte, 32)
	_, err := f.ReadAt(head, 0)
	return head, ignoreEOF(err)
}

func (f *watchedFiles) close() error { return f.db.Close() }

// forgetWAL makes the next check accept any log file as the right one.
func (f *watchedFiles) forgetWAL() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wal = nil
}

// checkPresent returns a [store.FaultGone] if a file is missing, was replaced or is shorter than its header states.
func (f *watchedFiles) checkPresent() error {
	info, err := os.Stat(f.name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return goneFault("database file %s is missing", f.name)
	case err != nil:
		return store.Fault{Kind: store.FaultDisk, Err: err}
	case !os.SameFile(info, f.opened):
		return goneFault("database file %s is not the one that the server opened", f.name)
	}
	if cut, err := isTruncated(f.db, f.name+"-wal"); err != nil {
		return store.Fault{Kind: store.FaultDisk, Err: err}
	} else if cut {
		return goneFault("database file %s was truncated", f.name)
	}
	return f.checkWALPresent()
}

// checkWALPresent returns a [store.FaultGone] if the log is missing or was replaced.
func (f *watchedFiles) checkWALPresent() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.name + "-wal")
	switch {
	case f.wal == nil && err == nil:
		f.wal = info
	case f.wal == nil: // SQLite creates it with the first change
	case errors.Is(err, os.ErrNotExist):
		return goneFault("log %s-wal of the database is missing", f.name)
	case err != nil:
		return store.Fault{Kind: store.FaultDisk, Err: err}
	case !os.SameFile(info, f.wal):
		return goneFault("log %s-wal of the database is not the one that the server opened", f.name)
	}
	return nil
}

func goneFault(format string, args ...any) error {
	return store.Fault{Kind: store.FaultGone, Err: fmt.Errorf(format, args...)}
}

// isTruncated reports whether pages of a database are missing from both its file and its log. The file alone may be
// short after a crash: SQLite copies the log into the file page by page, and the first page has the new size. It takes
// an open file, because closing another handle of a file that SQLite has open drops SQLite's locks.
func isTruncated(db *os.File, wal string) (bool, error) {
	info, err := db.Stat()
	if err != nil {
		return false, err
	}
	head, err := readHeader(db)
	if err != nil {
		return false, err
	}
	pageSize := headerPageSize(head)
	if pageSize == 0 { // not a database that SQLite has opened
		return true, nil
	}
	if info.Size() >= headerDatabaseSize(head) { // the file contains every page that its header counts
		return false, nil
	}
	logged, pages, err := readWALPages(wal)
	if err != nil {
		return false, err
	}
	if pages == 0 {
		return info.Size() < headerDatabaseSize(head), nil
	}
	for page := info.Size()/pageSize + 1; page <= pages; page++ {
		if !logged[page] {
			return true, nil
		}
	}
	return false, nil
}

// readWALPages returns the pages in a database's log, and the number of pages of the database after its last commit, or
// 0 if the log has no commit. The format is described in "WAL-mode File Format" of SQLite's documentation.
func readWALPages(log string) (logged map[int64]bool, pages int64, err error) {
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
	logged = map[int64]bool{}
	var pending []int64 // pages of a transaction whose end was not read yet
	for at, frame := int64(logHeader), make([]byte, frameHeader); ; at += frameHeader + pageSize {
		if _, err := f.ReadAt(frame, at); err != nil {
			return logged, pages, ignoreEOF(err)
		}
		if string(frame[8:16]) != string(salts) { // left over from an earlier use of the file
			return logged, pages, nil
		}
		pending = append(pending, int64(binary.BigEndian.Uint32(frame)))
		if size := binary.BigEndian.Uint32(frame[4:]); size > 0 { // the last frame of a transaction
			for _, page := range pending {
				logged[page] = true
			}
			pages, pending = int64(size), pending[:0]
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// headerDatabaseSize returns the size of a database in bytes, according to its header.
func headerDatabaseSize(head []byte) int64 {
	return headerPageSize(head) * int64(binary.BigEndian.Uint32(head[28:]))
}

func headerPageSize(head []byte) int64 {
	if size := int64(binary.BigEndian.Uint16(head[16:])); size != 1 {
		return size
	}
	return 65536 // stored as 1, because it does not fit into two bytes
}

// diagnose distinguishes a failing disk from a damaged database, for which SQLite uses the same code when reading
// fails. It reads the files again. If that fails, it returns a FaultDisk. It reports a truncated file first.
func (f *watchedFiles) diagnose(err error) error {
	var was store.Fault
	if !errors.As(err, &was) || was.Kind != store.FaultCorrupt {
		return err
	}
	if err := f.checkPresent(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := reeve.Now(); now.Sub(f.probed) > time.Minute { // at most once a minute, because reading takes time
		f.probed, f.probeErr = now, errors.Join(probeRead(f.db), probeReadFile(f.name+"-wal"))
	}
	if f.probeErr != nil {
		return store.Fault{Kind: store.FaultDisk, Err: f.probeErr}
	}
	return err
}

// diagnose is like [watchedFiles.diagnose] for a file that is not open.
func diagnose(name string, err error) error {
	var was store.Fault
	if !errors.As(err, &was) || was.Kind != store.FaultCorrupt {
		return err
	}
	if bad := errors.Join(probeReadFile(name), probeReadFile(name+"-wal")); bad != nil {
		return store.Fault{Kind: store.FaultDisk, Err: bad}
	}
	return err
}

// probeTime is the maximum time for which a file is read to find out whether it is readable.
const probeTime = 2 * time.Second

// probeRead reads a file to its end, or for probeTime.
func probeRead(f *os.File) error {
	began, buf := reeve.Monotonic(), make([]byte, 1<<20)
	for at := int64(0); reeve.Since(began) < probeTime; {
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

// probeReadFile is probeRead for a file by name. A missing file is not an error.
func probeReadFile(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(probeRead(f), f.Close())
}
