package postgres

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"reeve"
	"reeve/internal/store"
)

// Backup runs pg_dump, which takes a consistent copy while others go on writing. The name is given only to a copy that
// is whole, and never taken from a file that has it.
func (e *Engine) Backup(ctx context.Context, file string) (err error) {
	there := reeve.Errorf(reeve.AlreadyExists, "%s is there already", file).Hintf("name a new file")
	if _, err := os.Lstat(file); err == nil {
		return there
	}
	if _, err := exec.LookPath("pg_dump"); err != nil {
		return reeve.Errorf(reeve.Unsupported,
			"pg_dump, which copies a PostgreSQL database, is not in the server's PATH").
			Hintf("install the PostgreSQL client package where the server runs, or put the directory of pg_dump into " +
				"its PATH")
	}
	direct := e.cfg.Direct
	if direct == "" && e.pooler {
		return reeve.Errorf(reeve.Unsupported, "pg_dump cannot copy a database through a connection pooler").
			Hintf("set database_direct to PostgreSQL's own address (postgres://user@host:5432/database) and restart " +
				"the server")
	}
	direct = cmp.Or(direct, e.cfg.URL)
	from, err := address(direct)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".reeve-backup-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "nothing can be written beside %s: %w", file, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part")
	cmd := exec.CommandContext(ctx, "pg_dump", "--format=custom", "--no-owner", "--file="+part, "--dbname="+from)
	if secret := Password(direct); secret != "" {
		cmd.Env = append(os.Environ(), "PGPASSWORD="+secret) // every user can read a command line
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return reeve.Errorf(reeve.Unavailable, "pg_dump failed: %s", strings.TrimSpace(string(out)))
	}
	if err := os.Chmod(part, 0o600); err != nil {
		return err
	}
	// Unlike a rename, a link does not replace. Where the file system has no links, the check above has to do.
	if err := os.Link(part, file); errors.Is(err, os.ErrExist) {
		return there
	} else if err != nil {
		return os.Rename(part, file)
	}
	return nil
}

var ours = regexp.MustCompile(
	`(?i)\b(?:password|pool_\w+|\w+_cache_capacity|default_query_exec_mode)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)`)

var locked = regexp.MustCompile(`\bsslpassword\s*=`)

// address is the URL without the password and without what only our driver understands. One with the password of a key
// is refused: pg_dump could be told it nowhere but on its command line.
func address(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" {
		if locked.MatchString(s) {
			return "", errLocked
		}
		return ours.ReplaceAllString(s, ""), nil
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if q.Has("sslpassword") {
		return "", errLocked
	}
	for k := range q {
		if k == "password" || strings.HasPrefix(k, "pool_") || strings.HasSuffix(k, "_cache_capacity") ||
			k == "default_query_exec_mode" {
			q.Del(k)
		}
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

var errLocked = reeve.Errorf(reeve.Unsupported,
	"the database's address has an sslpassword, which pg_dump can be given only where all users of the machine could "+
		"read it").
	Hintf("give the server a key without a password, in a file that only it can read; or copy the database with " +
		"pg_dump yourself")

var (
	_ store.Engine     = (*Engine)(nil)
	_ store.Identified = (*Engine)(nil)
)
