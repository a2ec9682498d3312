package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reeve"
	"reeve/internal/store"
)

// Backup writes a consistent copy while others go on writing. The name is given only to a copy that is whole and on
// disk, and never taken from a file that has it.
func (e *Engine) Backup(ctx context.Context, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return there(file)
	}
	if err := e.files.present(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".reeve-backup-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "nothing can be written beside %s: %w", file, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part")
	if err := e.copy(ctx, part); err != nil {
		return err
	}
	if err := AssignIdentity(ctx, part); err != nil {
		return err
	}
	if err := settle(part); err != nil {
		return err
	}
	// Unlike a rename, a link does not replace. Where the file system has no links, the check above has to do.
	if err := os.Link(part, file); errors.Is(err, os.ErrExist) {
		return there(file)
	} else if err != nil {
		if err := os.Rename(part, file); err != nil {
			return err
		}
	}
	return flush(filepath.Dir(file))
}

// copy uses a connection of its own: the readers' may not write, not even another file.
func (e *Engine) copy(ctx context.Context, part string) (err error) {
	db, err := sql.Open("sqlite", e.dsn())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, "VACUUM INTO $1", part); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var se *driver.Error
		// which only the copy is; a disk that is full has a code of its own
		if errors.As(err, &se) && se.Code() == codes.SQLITE_IOERR_WRITE {
			return reeve.Errorf(reeve.Unavailable, "the copy cannot be written: %w", err).
				Hintf("check the limit on the size of files (ulimit -f) and quotas of the server, and the disk")
		}
		return fault(err)
	}
	return nil
}

// AssignIdentity gives a copy of a database an identity of its own; see [Engine.Identity]. Nobody may have it open.
func AssignIdentity(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	mark := 1 + binary.BigEndian.Uint32(reeve.RandomBytes(4))%math.MaxInt32 // never 0, which is that of no copy
	_, err = db.ExecContext(ctx, "PRAGMA user_version = "+strconv.FormatInt(int64(mark), 10))
	return fault(err)
}

// settle makes the copy private and durable: it holds all that the database holds, and outlives it.
func settle(part string) error {
	if err := os.Chmod(part, 0o600); err != nil {
		return err
	}
	return flush(part)
}

func flush(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func there(file string) error {
	return reeve.Errorf(reeve.AlreadyExists, "%s is there already", file).Hintf("name a new file")
}

var (
	_ store.Engine     = (*Engine)(nil)
	_ store.Identified = (*Engine)(nil)
)
