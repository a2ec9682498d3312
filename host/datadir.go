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
	partFile     = databaseFile + ".part" // the copy of a restore in progress
	tokenFile    = "owner.token"
	keyFile      = "secret.key"
	lockFile     = "reeve.lock"
	addressFile  = "server.json"
	configFile   = "reeve.yaml"

	probePrefix = ".doctor-" // temporary file of a write test

	backupPrefix    = ".backup-" // temporary folder of a backup download
	pythonFolder    = "python"
	branchFolder    = "branches"
	workspaceFolder = "workspaces"
)

// ownFiles are the files and folders of a data directory that a server needs.
var ownFiles = []string{databaseFile, databaseFile + "-wal", databaseFile + "-shm", databaseFile + "-journal",
	tokenFile, keyFile, lockFile, addressFile, configFile, pythonFolder, branchFolder, workspaceFolder}

// isDataDir reports whether a directory is the data directory of a server. It looks for files that no backup contains,
// because a directory of backups may contain a reeve.db.
func isDataDir(dir string) bool {
	for _, name := range []string{lockFile, tokenFile, keyFile, addressFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// lockDir creates the data directory and locks it against a second server. It does so for PostgreSQL too, because the
// directory contains the address of one server. The returned function releases the lock.
func lockDir(dir string) (func() error, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot create the data directory %s: %v", dir, err).
			Hintf("choose another with --dir")
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot write to the data directory %s: %v", dir, err).
			Hintf("check its permissions")
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(reeve.Errorf(reeve.Unavailable, "another Reeve is using the data directory %s", dir).
			Hintf("stop it, or choose another directory with --dir; servers that share a database need one directory "+
				"each"),
			f.Close())
	}
	// Unlock explicitly: a child process that is just starting may still have the file open.
	return func() error { return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close()) }, nil
}

// removeLeftovers removes temporary files of a server that was killed. The caller holds the lock of the directory.
func (h *Host) removeLeftovers() {
	confine.Sweep()
	entries, err := os.ReadDir(h.cfg.Dir)
	for _, e := range entries {
		name := e.Name()
		if e.Type().IsRegular() && (strings.HasPrefix(name, partFile) || strings.HasPrefix(name, probePrefix)) ||
			e.IsDir() && strings.HasPrefix(name, backupPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(h.cfg.Dir, name)))
		}
	}
	if err != nil {
		h.log.Warn("cannot remove temporary files", "error", err)
	}
}

// loadSecretKey returns the key that encrypts secrets: the configured key, or the key in the data directory. If there
// is none, it generates one.
func loadSecretKey(cfg Config) ([]byte, error) {
	if cfg.SecretKey != "" {
		return hex.DecodeString(cfg.SecretKey)
	}
	file := filepath.Join(cfg.Dir, keyFile)
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		key := reeve.RandomBytes(32)
		return key, writePrivateFile(file, hex.EncodeToString(key)+"\n")
	}
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot read the key that encrypts secrets: %w", err).
			Hintf("make %s in the data directory readable for the server, or restore it from a backup", keyFile)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != 32 {
		return nil, reeve.Errorf(reeve.Unavailable, "the file %s in the data directory is damaged", keyFile).
			Hintf("restore it from a backup; stored secrets cannot be read without it")
	}
	return key, nil
}

// writePrivateFile atomically writes a file with mode 0600. It syncs the file and its directory, because secrets cannot
// be decrypted if a crash of the machine loses the key file.
func writePrivateFile(file, text string) error {
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
		_ = dir.Sync() // not supported on every system
		_ = dir.Close()
	}
	return nil
}

// readOwnerToken reads the token in the data directory. It returns false if there is none.
func readOwnerToken(cfg Config) (text string, exists bool, err error) {
	b, err := os.ReadFile(filepath.Join(cfg.Dir, tokenFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	return strings.TrimSpace(string(b)), true, err
}

// bootstrap inserts the first workspace and the owner's token, and writes the token file. It also replaces a token file
// that is lost, or whose token is not valid because the token was revoked or the database was replaced. This gives away
// no rights: anyone who can write to the data directory owns the server anyway.
//
// The file is written after the commit. A crash in between leaves a token in the database that no one knows, and the
// next start inserts another.
func (h *Host) bootstrap(ctx context.Context) error {
	old, exists, err := readOwnerToken(h.cfg)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot read the owner's token: %w", err).
			Hintf("check the permissions of %s in the data directory", tokenFile)
	}
	token := ""
	err = h.db.Update(ctx, func(tx *store.Tx) error {
		token = "" // the transaction may be repeated
		list, err := tx.Agents().WorkspaceIDs(ctx)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			if err := insertFirstWorkspace(ctx, tx); err != nil {
				return err
			}
		}
		if exists {
			isValid, err := adoptToken(ctx, tx, old)
			if err != nil || isValid {
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
	if err := writePrivateFile(file, token+"\n"); err != nil {
		return err
	}
	if h.isTokenRenewed = exists; exists {
		h.log.Warn("owner's token was not valid in this database; created a new one", "file", file)
	}
	return nil
}

// insertFirstWorkspace inserts the first workspace, unless another server does so at the same time.
func insertFirstWorkspace(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Agents().InsertWorkspace(ctx, "default", "Default")
	if reeve.CodeOf(err) == reeve.AlreadyExists {
		return nil
	}
	return err
}

// adoptToken marks the token in the data directory as a server token. (Tokens of old versions are not marked yet.) It
// returns false if the token is not valid in this database, or is not an owner's. The file is sufficient proof: anyone
// who can write to the data directory owns the server, and the API cannot write there.
func adoptToken(ctx context.Context, tx *store.Tx, text string) (isValid bool, err error) {
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

// TokenRenewed reports whether this start has replaced the owner's token, because the old one was not valid in the
// database.
func (h *Host) TokenRenewed() bool { return h.isTokenRenewed }
