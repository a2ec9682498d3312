package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"reeve"
	"reeve/internal/store"
	"reeve/internal/store/sqlite"
)

// openBackup gives a whole copy of the database, in a file that has no name any more and is gone when it is closed.
func (h *Host) openBackup(ctx context.Context) (copied io.ReadCloser, err error) {
	dir, err := os.MkdirTemp(h.cfg.Dir, backupPrefix)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the copy cannot be written to the data directory: %w", err).
			Hintf("check its permissions and free space")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "copy")
	if err := h.db.Backup(ctx, file); err != nil {
		return nil, err
	}
	return os.Open(file)
}

// Backup writes a copy of the store to a new file while it is in use.
func (h *Host) Backup(ctx context.Context, file string) error {
	if err := CheckTarget(file, h.cfg.Dir); err != nil {
		return err
	}
	return h.db.Backup(ctx, file)
}

// CheckTarget refuses a name that a backup must not take: one that a server lives on, in its own directory or in one of
// dirs, under whatever name, and one of what is no file. A server whose database is replaced under it goes on writing
// to the one that is gone.
func CheckTarget(file string, dirs ...string) error {
	if file == "" {
		return reeve.Errorf(reeve.Validation, "the backup has an empty name; nothing was written").
			Hintf("name the file that it is written to, such as reeve-monday.db")
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	beside, name := filepath.Split(whole)
	dirs = append(dirs, filepath.Clean(beside))
	if linked, err := filepath.EvalSymlinks(whole); err == nil {
		dirs = append(dirs, filepath.Dir(linked))
	}
	there, missing := os.Stat(whole)
	for _, dir := range dirs {
		for _, own := range ownFiles {
			s, err := os.Stat(filepath.Join(dir, own))
			same := err == nil && missing == nil && os.SameFile(s, there)
			// one that is not there may be next: SQLite's own come and go, and folders are made when they are needed
			if (same || name == own && isSameDir(dir, beside)) && isDataDir(dir) {
				return reeve.Errorf(reeve.Validation,
					"%s is %s of the data directory %s, which a backup must not replace; nothing was written", file,
					own, dir).
					Hintf("name another file; to put a backup in place, stop the server, then: reeve restore FILE "+
						"--dir %s", dir)
			}
		}
	}
	if what := describeNonFile(file); what != "" {
		return reeve.Errorf(reeve.Validation, "%s is %s, which a backup must not replace; nothing was written", file,
			what).Hintf("name a file, such as %s", filepath.Join(getFolder(file), "reeve-monday.db"))
	}
	if s, err := os.Stat(getFolder(file)); err != nil || !s.IsDir() {
		return reeve.Errorf(reeve.Validation, "there is no folder %s for the backup; nothing was written",
			getFolder(file)).Hintf("make it first, or name a file in another")
	}
	return nil
}

// getFolder gives the folder that a name says: itself, if it is one or ends like one.
func getFolder(file string) string {
	if s, err := os.Stat(file); err == nil && s.IsDir() || os.IsPathSeparator(file[len(file)-1]) {
		return filepath.Clean(file)
	}
	return filepath.Dir(file)
}

// describeNonFile says what has a name, if it is something and no file, or a link to such a thing. Renaming a file over a
// device or a pipe takes it away from all who use it.
func describeNonFile(name string) string {
	s, err := os.Stat(name)
	switch {
	case err != nil || s.Mode().IsRegular():
		return ""
	case s.IsDir():
		return "a folder"
	case s.Mode()&os.ModeNamedPipe != 0:
		return "a pipe"
	case s.Mode()&os.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

func isSameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Restore puts a copy made by Backup in the place of the SQLite database of a stopped server. The replaced file, if
// there was one, is kept beside it, under the name that is given back. A server that starts on it is held until a
// person resumes it.
func Restore(ctx context.Context, cfg Config, file string) (kept string, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return "", err
	}
	if cfg.Database != "" {
		return "", newManualRestoreError("a PostgreSQL database is not restored by Reeve")
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if isDump(file) {
		return "", newManualRestoreError("%s is a backup of a PostgreSQL database", file)
	}
	if err := checkBackup(ctx, file); err != nil {
		return "", err
	}
	target := filepath.Join(cfg.Dir, databaseFile)
	part := filepath.Join(cfg.Dir, partFile)
	if err := sqlite.FinishReplace(target); err != nil {
		return "", reeve.Errorf(reeve.Unavailable, "an earlier restore that was interrupted cannot be ended: %w", err).
			Hintf("check the permissions of the data directory and its disk")
	}
	for _, name := range []string{target, part} {
		if what := describeNonFile(name); what != "" {
			return "", reeve.Errorf(reeve.Conflict, "%s is %s, and not a database; nothing was changed", name, what).
				Hintf("look whose it is, and move it away")
		}
	}
	if err := copyFile(file, part); err != nil {
		_ = os.Remove(part) // the next start does, if this cannot
		return "", reeve.Errorf(reeve.Unavailable,
			"the backup cannot be copied into the data directory: %w; nothing was changed", err).
			Hintf("check its permissions, its free space and the limit on the size of files (ulimit -f)")
	}
	// so that the server that opens it knows that it was restored
	if err := sqlite.AssignIdentity(ctx, part); err != nil {
		_ = os.Remove(part)
		return "", store.UserError(err)
	}
	return sqlite.Replace(target, part, cfg.OnFault.Before)
}

// checkBackup refuses what is no whole backup of a SQLite database, and one that this Reeve could not start with.
func checkBackup(ctx context.Context, file string) error {
	bad := func(why string) error {
		return reeve.Errorf(reeve.Validation, "%s is not a backup of Reeve: %s; nothing was changed", file, why).
			Hintf("reeve backup FILE makes one, of a server that runs")
	}
	if what := describeNonFile(file); what != "" { // to open a pipe waits for who writes into it
		return bad("it is " + what)
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return reeve.Errorf(reeve.NotFound, "there is no file %s; nothing was changed", file)
	} else if err != nil {
		return reeve.Errorf(reeve.Unavailable, "%s cannot be read: %w; nothing was changed", file, errors.Unwrap(err))
	}
	info, err := f.Stat()
	whole, cut := sqlite.IsComplete(f)
	if err := errors.Join(err, cut, f.Close()); err != nil {
		return err
	}
	if info.Size() == 0 { // which SQLite takes for a database that holds nothing
		return bad("it is empty")
	}
	var broken store.Fault
	version, err := sqlite.Check(ctx, file)
	switch told := reeve.AsError(err); {
	case err == nil:
	case told.Code == reeve.Validation:
		return bad("it is a database, but not one of Reeve's")
	case errors.As(err, &broken) && broken.Kind == store.FaultCorrupt:
		return bad(told.Message)
	default:
		return err
	}
	if s, err := os.Stat(file + "-wal"); err == nil && s.Size() > 0 { // and would be left behind
		return bad("a server has it open, and its latest changes are in " + file + "-wal")
	}
	if !whole {
		return bad("it is damaged: its size is not what its header says, as of a file that was cut off")
	}
	oldest, newest, err := store.Versions()
	switch {
	case err != nil:
		return err
	case version > 0 && version < oldest:
		return reeve.Errorf(reeve.Unsupported,
			"%s cannot be restored: its schema version %d is from before the first release; nothing was changed", file,
			version).
			Hintf("restore it with the Reeve that made it")
	case version > newest:
		return reeve.Errorf(reeve.Unsupported,
			"%s cannot be restored: its schema version %d is of a newer Reeve; this one knows up to %d; nothing was "+
				"changed", file, version, newest).
			Hintf("restore it with the Reeve that made it, or a newer one")
	}
	why, err := sqlite.CheckSchema(ctx, file, version)
	if err == nil && why != "" {
		return bad(why)
	}
	return err
}

// newManualRestoreError says how a PostgreSQL database is restored. The database must be empty: a table that a newer Reeve made would
// be in the way of the one that upgrades the copy.
func newManualRestoreError(format string, args ...any) error {
	return reeve.Errorf(reeve.Unsupported, format+"; nothing was changed", args...).
		Hintf("make an empty database, pg_restore --no-owner --dbname=URL FILE, then reeve serve --database URL")
}

// isDump tells whether a file is one that pg_dump wrote for us.
func isDump(file string) bool {
	if describeNonFile(file) != "" {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false // whoever reads it next says why
	}
	defer f.Close()
	head := make([]byte, len("PGDMP"))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "PGDMP"
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		return errors.Join(err, dst.Close())
	}
	return errors.Join(dst.Sync(), dst.Close())
}
