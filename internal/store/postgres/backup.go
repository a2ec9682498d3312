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

// Backup runs pg_dump, which makes a consistent copy while others write. The copy gets its name when it is complete. An
// existing file is never replaced.
func (e *Engine) Backup(ctx context.Context, file string) (err error) {
	exists := reeve.Errorf(reeve.AlreadyExists, "%s already exists", file).Hintf("choose the name of a new file")
	if _, err := os.Lstat(file); err == nil {
		return exists
	}
	if _, err := exec.LookPath("pg_dump"); err != nil {
		return reeve.Errorf(reeve.Unsupported,
			"pg_dump, which Reeve needs for a backup, is not in the server's PATH").
			Hintf("install the PostgreSQL client package on the server's machine, or add the directory of pg_dump to " +
				"the server's PATH")
	}
	direct := e.cfg.Direct
	if direct == "" && e.pooler {
		return reeve.Errorf(reeve.Unsupported, "pg_dump does not work through a connection pooler").
			Hintf("set database_direct to PostgreSQL's own address (postgres://user@host:5432/database) and restart " +
				"the server")
	}
	direct = cmp.Or(direct, e.cfg.URL)
	from, err := pgDumpAddress(direct)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), ".reeve-backup-*")
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "cannot write to the directory of %s: %w", file, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	part := filepath.Join(dir, "part")
	cmd := exec.CommandContext(ctx, "pg_dump", "--format=custom", "--no-owner", "--file="+part, "--dbname="+from)
	if secret := Password(direct); secret != "" {
		// not as an argument, because every user can read command lines
		cmd.Env = append(os.Environ(), "PGPASSWORD="+secret)
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
	// Unlike a rename, a link never replaces a file. Without support for links, the check above must suffice.
	if err := os.Link(part, file); errors.Is(err, os.ErrExist) {
		return exists
	} else if err != nil {
		return os.Rename(part, file)
	}
	return nil
}

var driverOptions = regexp.MustCompile(
	`(?i)\b(?:password|pool_\w+|\w+_cache_capacity|default_query_exec_mode)\s*=\s*('(?:[^'\\]|\\.)*'|\S*)`)

var keyPassword = regexp.MustCompile(`\bsslpassword\s*=`)

// pgDumpAddress returns the URL without the password and the options of our driver. It refuses a URL with an
// sslpassword, because pg_dump accepts that only on its command line.
func pgDumpAddress(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" {
		if keyPassword.MatchString(s) {
			return "", errKeyPassword
		}
		return driverOptions.ReplaceAllString(s, ""), nil
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if q.Has("sslpassword") {
		return "", errKeyPassword
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

var errKeyPassword = reeve.Errorf(reeve.Unsupported,
	"the database URL has an sslpassword, which pg_dump accepts only on its command line, where all users can read it").
	Hintf("use a key without a password in a file that only the server can read, or run pg_dump yourself")

var (
	_ store.Engine     = (*Engine)(nil)
	_ store.Identified = (*Engine)(nil)
)
