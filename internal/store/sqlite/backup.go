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

// Backup writes a consistent copy while others write. The copy gets its name when it is complete and on disk. An
// existing file is never replaced.
func (e *Engine) Backup(ctx context.Context, file string) (err error) {
	if _, err := os.Lstat(file); err == nil {
		return fileExistsError(file)
	}
	if err := e.files.checkPresent(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".reeve-backup-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot write to the directory of %s: %w", file, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part")
	if err := e.vacuumInto(ctx, part); err != nil {
		return err
	}
	if err := AssignIdentity(ctx, part); err != nil {
		return err
	}
	if err := secureCopy(part); err != nil {
		return err
	}
	// Unlike a rename, a link never replaces a file. Without support for links, the check above must suffice.
	if err := os.Link(part, file); errors.Is(err, os.ErrExist) {
		return fileExistsError(file)
	} else if err != nil {
		if err := os.Rename(part, file); err != nil {
			return err
		}
	}
	return syncPath(filepath.Dir(file))
}

// vacuumInto copies the database to a new file. It uses a connection of its own, because the readers' connections
// cannot write to any file.
func (e *Engine) vacuumInto(ctx context.Context, part string) (err error) {
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
		// only the copy is written; a full disk has another code
		if errors.As(err, &se) && se.Code() == codes.SQLITE_IOERR_WRITE {
			return reeve.Errorf(reeve.Unavailable, "copy cannot be written: %w", err).
				Hintf("check the server's file size limit (ulimit -f), its quotas and the disk")
		}
		return toFault(err)
	}
	return nil
}

// AssignIdentity gives a copy of a database a new random identity; see [Engine.Identity]. The copy must not be open.
func AssignIdentity(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// never 0, which marks a database that is not a copy
	identity := 1 + binary.BigEndian.Uint32(reeve.RandomBytes(4))%math.MaxInt32
	_, err = db.ExecContext(ctx, "PRAGMA user_version = "+strconv.FormatInt(int64(identity), 10))
	return toFault(err)
}

// secureCopy makes the copy readable for its owner only and syncs it to disk.
func secureCopy(part string) error {
	if err := os.Chmod(part, 0o600); err != nil {
		return err
	}
	return syncPath(part)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func fileExistsError(file string) error {
	return reeve.Errorf(reeve.AlreadyExists, "%s already exists", file).Hintf("choose the name of a new file")
}

var (
	_ store.Engine     = (*Engine)(nil)
	_ store.Identified = (*Engine)(nil)
)
