package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"reeve"
	"reeve/internal/store/sqlite"
)

// snapshot gives a whole copy of the database, in a file that has no name any more and is gone when it is closed.
func (h *Host) snapshot(ctx context.Context) (copied io.ReadCloser, err error) {
	dir, err := os.MkdirTemp(h.cfg.Dir, ".backup-*")
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the copy cannot be written to the data directory: %w", err).Hintf("check its permissions and free space")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "copy")
	if err := h.db.Backup(ctx, file); err != nil {
		return nil, err
	}
	return os.Open(file)
}

// Backup writes a copy of the store to a new file while it is in use.
func (h *Host) Backup(ctx context.Context, file string) error { return h.db.Backup(ctx, file) }

// Restore puts a copy made by Backup in the place of the SQLite database of a stopped server. The replaced file is kept beside
// it, under the name that is given back.
func Restore(ctx context.Context, cfg Config, file string) (kept string, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return "", err
	}
	if cfg.Database != "" {
		return "", byHand("a PostgreSQL database is not restored by Reeve")
	}
	unlock, err := lockDir(cfg.Dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if isDump(file) {
		return "", byHand("%s is a backup of a PostgreSQL database", file)
	}
	if _, err := sqlite.Check(ctx, file); err != nil {
		return "", reeve.Errorf(reeve.Validation, "%s is not a sound backup of Reeve: %v", file, err).Hintf("nothing was changed")
	}
	target := filepath.Join(cfg.Dir, databaseFile)
	part := target + ".part"
	if err := copyFile(file, part); err != nil {
		return "", errors.Join(err, os.Remove(part))
	}
	return sqlite.Replace(target, part)
}

// byHand says how a PostgreSQL database is restored. The database must be empty: a table that a newer Reeve made would be in the way of the one that upgrades the copy.
func byHand(format string, args ...any) error {
	return reeve.Errorf(reeve.Unsupported, format+"; nothing was changed", args...).
		Hintf("make an empty database, pg_restore --no-owner --dbname=URL FILE, then reeve serve --database URL")
}

// isDump tells whether a file is one that pg_dump wrote for us.
func isDump(file string) bool {
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
