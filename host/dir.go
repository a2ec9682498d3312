package host

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"reeve"
	"reeve/internal/httpapi"
	"reeve/internal/sandbox/confine"
	"reeve/internal/store"
)

const (
	databaseFile = "reeve.db"
	partFile     = databaseFile + ".part" // a copy that is being restored
	tokenFile    = "owner.token"
	keyFile      = "secret.key"
	lockFile     = "reeve.lock"
	addressFile  = "server.json"
	configFile   = "reeve.yaml"

	probeFile = ".doctor-" // a file that shows that files can be written

	copyFolder      = ".backup-" // a copy that is being sent
	pythonFolder    = "python"
	branchFolder    = "branches"
	workspaceFolder = "workspaces"
)

// ownFiles are those that a server lives on, and its folders.
var ownFiles = []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", databaseFile + "-journal",
	tokenFile, keyFile, lockFile, addressFile, configFile, pythonFolder, branchFolder, workspaceFolder}

// isDataDir tells whether a directory is a server's, by what no backup brings along: a directory of backups may well
// hold a reeve.db.
func isDataDir(dir string) bool {
	for _, name := range []string{lockFile, tokenFile, keyFile, addressFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// lockDir makes the data directory and keeps a second server out of it, also where the database is elsewhere: the
// address that the CLI looks for is one server's.
func lockDir(dir string) (func() error, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the data directory %s cannot be made: %v", dir, err).
			Hintf("choose another with --dir")
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the data directory %s cannot be written: %v", dir, err).
			Hintf("check its permissions")
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(reeve.Errorf(reeve.Unavailable, "another Reeve is using the data directory %s", dir).
			Hintf("stop it, or choose another directory with --dir; servers that share a PostgreSQL have one each"),
			f.Close())
	}
	// Closing the file alone is not enough: a child process that is being started holds it open until it has begun.
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}

// sweep removes what a process left that was killed while it copied the database: nobody else holds the lock.
func (h *Host) sweep() {
	confine.Sweep()
	entries, err := os.ReadDir(h.cfg.Dir)
	for _, e := range entries {
		name := e.Name()
		if e.Type().IsRegular() && (strings.HasPrefix(name, partFile) || strings.HasPrefix(name, probeFile)) ||
			e.IsDir() && strings.HasPrefix(name, copyFolder) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(h.cfg.Dir, name)))
		}
	}
	if err != nil {
		h.log.Warn("what an interrupted copy left cannot be removed", "error", err)
	}
}

// secretKey gives the key that seals secrets: the configured one, or one of our own making.
func secretKey(cfg Config) ([]byte, error) {
	if cfg.SecretKey != "" {
		return hex.DecodeString(cfg.SecretKey)
	}
	file := filepath.Join(cfg.Dir, keyFile)
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key := reeve.RandomBytes(32)
		return key, writePrivate(file, hex.EncodeToString(key)+"\n")
	}
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "the key that seals secrets cannot be read: %w", err).
			Hintf("%s in the data directory must be a file that the server may read; restore it from a backup if it "+
				"is not", keyFile)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != 32 {
		return nil, reeve.Errorf(reeve.Unavailable, "the file %s in the data directory is damaged", keyFile).
			Hintf("restore it from a backup; stored secrets cannot be read without it")
	}
	return key, nil
}

// writePrivate writes a whole file that only we can read. It outlives a machine that goes down, as the database does
// that needs it: what was sealed with a lost key cannot be opened.
func writePrivate(file, text string) error {
	part := file + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, file); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(file)); err == nil {
		_ = dir.Sync() // not every system can
		_ = dir.Close()
	}
	return nil
}

// ownerToken reads the token in the data directory; false means that there is none.
func ownerToken(cfg Config) (text string, there bool, err error) {
	b, err := os.ReadFile(filepath.Join(cfg.Dir, tokenFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	return strings.TrimSpace(string(b)), true, err
}

// bootstrap makes the first workspace and its owner's token. The file is written once the token is in the database: a
// crash between the two leaves a token nobody knows, and the next start makes another. A file that is lost is made anew
// likewise, and one whose token is worthless, because another database was put in place or the token was revoked:
// whoever can write the data directory owns the server anyway.
func (h *Host) bootstrap(ctx context.Context) error {
	old, there, err := ownerToken(h.cfg)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the owner's token cannot be read: %w", err).
			Hintf("check the permissions of %s in the data directory", tokenFile)
	}
	token := ""
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		token = "" // it may be run again
		list, err := tx.Agents().WorkspaceIDs(ctx)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			if err := firstWorkspace(ctx, tx); err != nil {
				return err
			}
		}
		if there {
			known, err := adopt(ctx, tx, old)
			if err != nil || known {
				return err
			}
		}
		var c store.Credential
		token, c = httpapi.NewOwnerToken(tx.NewID(reeve.PrefixToken), tx.Now())
		return tx.Agents().InsertCredential(ctx, c)
	})
	if err != nil || token == "" {
		return err
	}
	file := filepath.Join(h.cfg.Dir, tokenFile)
	if err := writePrivate(file, token+"\n"); err != nil {
		return err
	}
	if h.renewed = there; there {
		h.log.Warn("the owner's token was not valid in this database, and a new one was made", "file", file)
	}
	return nil
}

// firstWorkspace makes the first workspace, unless another server does so in the same moment.
func firstWorkspace(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Agents().InsertWorkspace(ctx, "default", "Default")
	if reeve.CodeOf(err) == reeve.AlreadyExists {
		return nil
	}
	return err
}

// adopt makes the token in the data directory a server token, as one from before server tokens were marked is not yet.
// False means that the token is not valid in this database, or is not an owner's. Holding the file is the proof:
// whoever can write the data directory owns the server, and no API can.
func adopt(ctx context.Context, tx *store.Tx, text string) (known bool, err error) {
	c, err := httpapi.VerifyToken(ctx, &tx.Snap, text)
	switch {
	case reeve.CodeOf(err) == reeve.Unauthenticated:
		return false, nil
	case err != nil:
		return false, err
	case c.Role != reeve.Owner:
		return false, nil
	case !c.Server:
		return true, tx.Agents().MarkServerCredential(ctx, c.ID)
	}
	return true, nil
}

// TokenRenewed tells whether this start has put a new owner's token in the place of one that its database does not
// know, or no longer takes.
func (h *Host) TokenRenewed() bool { return h.renewed }
