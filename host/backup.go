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

// openBackup makes a copy of the database and returns it as a file. The file has no name, so it disappears when it is
// closed.
func (h *Host) openBackup(ctx context.Context) (backup io.ReadCloser, err error) {
	dir, err := os.MkdirTemp(h.cfg.Dir, backupPrefix)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot write the copy to the data directory: %w", err).
			Hintf("check its permissions and free space")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "copy")
	if err := h.db.Backup(ctx, file); err != nil {
		return nil, err
	}
	return os.Open(file)
}

// Backup writes a copy of the database to a file while the server runs.
func (h *Host) Backup(ctx context.Context, file string) error {
	if err := CheckTarget(file, h.cfg.Dir); err != nil {
		return err
	}
	return h.db.Backup(ctx, file)
}

// CheckTarget fails with Validation if a backup must not be written to a file. The file may not be one that a server
// needs, in its own directory or in one of dirs, even through a link. It may not be a device, pipe or folder either. A
// server whose database file is replaced would continue to write to the old file.
func CheckTarget(file string, dirs ...string) error {
	if file == "" {
		return reeve.Errorf(reeve.Validation, "the file name of the backup is empty; nothing was written").
			Hintf("set a file name such as reeve-monday.db")
	}
	target, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	parent, name := filepath.Split(target)
	dirs = append(dirs, filepath.Clean(parent))
	if linked, err := filepath.EvalSymlinks(target); err == nil {
		dirs = append(dirs, filepath.Dir(linked))
	}
	info, statErr := os.Stat(target)
	for _, dir := range dirs {
		for _, own := range ownFiles {
			s, err := os.Stat(filepath.Join(dir, own))
			isSame := err == nil && statErr == nil && os.SameFile(s, info)
			// The name counts even if there is no such file: SQLite creates and removes its files, and folders are
			// created on demand.
			if (isSame || name == own && isSameDir(dir, parent)) && isDataDir(dir) {
				return reeve.Errorf(reeve.Validation,
					"%s is the file %s of the data directory %s, which a backup must not replace; nothing was written",
					file,
					own, dir).
					Hintf("choose another file name; to restore a backup, stop the server, then run "+
						"reeve restore FILE --dir %s", dir)
			}
		}
	}
	if what := describeNonFile(file); what != "" {
		return reeve.Errorf(reeve.Validation, "%s is %s, which a backup must not replace; nothing was written", file,
			what).Hintf("choose a file name such as %s", filepath.Join(getFolder(file), "reeve-monday.db"))
	}
	if s, err := os.Stat(getFolder(file)); err != nil || !s.IsDir() {
		return reeve.Errorf(reeve.Validation, "the directory %s does not exist; nothing was written",
			getFolder(file)).Hintf("create the directory, or choose another")
	}
	return nil
}

// getFolder returns the directory of a path, or the path itself if it is a directory or ends with a separator.
func getFolder(file string) string {
	if s, err := os.Stat(file); err == nil && s.IsDir() || os.IsPathSeparator(file[len(file)-1]) {
		return filepath.Clean(file)
	}
	return filepath.Dir(file)
}

// describeNonFile follows links and returns what a path is, such as a folder. For a regular or missing file it returns
// an empty string. Renaming a file over a device or a pipe would remove it for all its users.
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

// Restore replaces the SQLite database of a stopped server by a copy made with Backup. It returns the name under which
// it has kept the replaced file, if there was one. A server that starts on the restored database is held until a person
// resumes it.
func Restore(ctx context.Context, cfg Config, file string) (kept string, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return "", err
	}
	if cfg.Database != "" {
		return "", newManualRestoreError("Reeve cannot restore a PostgreSQL database")
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
		return "", reeve.Errorf(reeve.Unavailable, "an earlier, interrupted restore cannot be completed: %w", err).
			Hintf("check the permissions and the disk of the data directory")
	}
	for _, name := range []string{target, part} {
		if what := describeNonFile(name); what != "" {
			return "", reeve.Errorf(reeve.Conflict, "%s is %s, not a database; nothing was changed", name, what).
				Hintf("move it away")
		}
	}
	if err := copyFile(file, part); err != nil {
		_ = os.Remove(part) // otherwise the next start removes it
		return "", reeve.Errorf(reeve.Unavailable,
			"cannot copy the backup into the data directory: %w; nothing was changed", err).
			Hintf("check the permissions, the free space and the file size limit (ulimit -f)")
	}
	// The new identity tells the server that opens the database that it was restored.
	if err := sqlite.AssignIdentity(ctx, part); err != nil {
		_ = os.Remove(part)
		return "", store.UserError(err)
	}
	return sqlite.Replace(target, part, cfg.OnFault.Before)
}

// checkBackup fails if a file is not a complete backup of a SQLite database, or if this version of Reeve cannot use it.
func checkBackup(ctx context.Context, file string) error {
	invalid := func(reason string) error {
		return reeve.Errorf(reeve.Validation, "%s is not a backup of Reeve: %s; nothing was changed", file, reason).
			Hintf("create one with reeve backup FILE while the server is running")
	}
	if what := describeNonFile(file); what != "" { // checked first, because opening a pipe blocks until it has a writer
		return invalid("it is " + what)
	}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return reeve.Errorf(reeve.NotFound, "the file %s does not exist; nothing was changed", file)
	} else if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot read %s: %w; nothing was changed", file, errors.Unwrap(err))
	}
	info, err := f.Stat()
	isComplete, readErr := sqlite.IsComplete(f)
	if err := errors.Join(err, readErr, f.Close()); err != nil {
		return err
	}
	if info.Size() == 0 { // SQLite accepts an empty file as an empty database
		return invalid("it is empty")
	}
	var fault store.Fault
	version, err := sqlite.Check(ctx, file)
	switch e := reeve.AsError(err); {
	case err == nil:
	case e.Code == reeve.Validation:
		return invalid("it is the database of another program")
	case errors.As(err, &fault) && fault.Kind == store.FaultCorrupt:
		return invalid(e.Message)
	default:
		return err
	}
	if s, err := os.Stat(file + "-wal"); err == nil && s.Size() > 0 { // the copy would lack these changes
		return invalid("a server has it open, and its latest changes are in " + file + "-wal")
	}
	if !isComplete {
		return invalid("it is damaged: its size differs from the size in its header, so it may be truncated")
	}
	oldest, newest, err := store.Versions()
	switch {
	case err != nil:
		return err
	case version > 0 && version < oldest:
		return reeve.Errorf(reeve.Unsupported,
			"%s cannot be restored: its schema version %d is from before the first release; nothing was changed", file,
			version).
			Hintf("restore it with the version of Reeve that made it")
	case version > newest:
		return reeve.Errorf(reeve.Unsupported,
			"%s cannot be restored: its schema version %d is newer than the latest of this Reeve, which is %d; "+
				"nothing was "+
				"changed", file, version, newest).
			Hintf("restore it with the version of Reeve that made it, or a newer one")
	}
	reason, err := sqlite.CheckSchema(ctx, file, version)
	if err == nil && reason != "" {
		return invalid(reason)
	}
	return err
}

// newManualRestoreError returns an error with instructions for restoring a PostgreSQL database. The target database
// must be empty, because a table of a newer version would conflict with the migration of the restored copy.
func newManualRestoreError(format string, args ...any) error {
	return reeve.Errorf(reeve.Unsupported, format+"; nothing was changed", args...).
		Hintf("create an empty database, run pg_restore --no-owner --dbname=URL FILE, then reeve serve --database URL")
}

// isDump reports whether a file is a dump of pg_dump.
func isDump(file string) bool {
	if describeNonFile(file) != "" {
		return false
	}
	f, err := os.Open(file)
	if err != nil {
		return false // the next read of the file reports the error
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
