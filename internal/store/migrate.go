package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"reeve"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables up to date. A database written by a newer Reeve is refused untouched, and so is one in
// which others have taken our names.
func migrate(ctx context.Context, e Engine) (err error) {
	handle, dialect, err := e.Migrator(ctx)
	if err != nil {
		return UserError(err)
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	files, err := scripts(e.Name())
	if err != nil {
		return err
	}
	if !e.SingleProcess() {
		unlock, err := lockMigrations(ctx, handle)
		if err != nil {
			return told(e, err)
		}
		defer unlock()
	}
	if err := vacant(ctx, e, handle, files); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.Dialect(dialect), handle, files)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return told(e, err)
	}
	sources := p.ListSources()
	if oldest := sources[0].Version; have > 0 && have < oldest {
		return reeve.Errorf(reeve.Unsupported,
			"the database has schema version %d, from before the first release; this Reeve begins with %d; nothing "+
				"was changed",
			have, oldest).Hintf("use an empty data directory or database, or run the Reeve that wrote it")
	}
	if newest := sources[len(sources)-1].Version; have > newest {
		return reeve.Errorf(reeve.Unsupported,
			"the database has schema version %d, and this Reeve knows only up to %d; nothing was changed",
			have, newest).Hintf("run the newer Reeve that wrote it, or restore a backup made before the upgrade")
	}
	if _, err := p.Up(ctx); err != nil {
		return told(e, err)
	}
	return nil
}

// lockMigrations waits until no other server migrates the database, for up to five minutes. The lock belongs to a
// transaction that stays open and not to a session, because a connection pooler may give each transaction another
// session.
func lockMigrations(ctx context.Context, handle *sql.DB) (unlock func(), err error) {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, query := range []string{
		"SET LOCAL lock_timeout = '5min'",
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lock.DefaultLockID), // which earlier versions take too
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	return func() { _ = tx.Rollback() }, nil // a connection that broke holds no lock
}

// scripts are the migrations as an engine gets them.
func scripts(engine string) (fs.FS, error) {
	files, err := fs.Sub(migrations, "migrations")
	return spoken{files, engine}, err
}

// Schema makes the tables of a schema version in an empty database of an engine, sqlite or postgres.
func Schema(ctx context.Context, handle *sql.DB, engine string, version int64) error {
	dialects := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres}
	files, err := scripts(engine)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialects[engine], handle, files)
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return err
}

// Versions are the schema versions that this Reeve knows: the first one, and that which it brings a database to.
func Versions() (oldest, newest int64, err error) {
	list, err := fs.Glob(migrations, "migrations/*.sql") // in order
	if err != nil {
		return 0, 0, err
	}
	if oldest, err = goose.NumericComponent(list[0]); err != nil {
		return 0, 0, err
	}
	newest, err = goose.NumericComponent(list[len(list)-1])
	return oldest, newest, err
}

// relations asks each engine what has a name in the place where our tables go. Each is one statement, and so sees one
// moment: goose makes its own table before any of ours.
var relations = map[string]string{
	"sqlite": "SELECT name FROM sqlite_master",
	"postgres": "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = " +
		"current_schema()",
}

var created = regexp.MustCompile(`(?i)\bCREATE (?:VIRTUAL |UNIQUE )?(?:TABLE|INDEX) (\w+)`)

// vacant refuses a database that is not Reeve's and holds something under a name that a migration would give, before
// anything is written to it.
func vacant(ctx context.Context, e Engine, handle *sql.DB, files fs.FS) error {
	there, err := names(ctx, handle, relations[e.Name()])
	if err != nil {
		return told(e, err)
	}
	if slices.Contains(there, "goose_db_version") {
		return ours(ctx, e, handle)
	}
	list, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	var taken []string
	for _, file := range list {
		body, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		for _, m := range created.FindAllSubmatch(body, -1) {
			if name := string(m[1]); slices.Contains(there, name) && !slices.Contains(taken, name) {
				taken = append(taken, name)
			}
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return reeve.Errorf(reeve.AlreadyExists,
		"the database is not Reeve's and holds tables or indexes that Reeve would make: %s; nothing was changed",
		strings.Join(taken, ", ")).
		Hintf("use an empty database")
}

// ours refuses a database whose migrations are another program's: it has had some, and none of them made our first
// table. The versions are read first, as another server may be making both.
func ours(ctx context.Context, e Engine, handle *sql.DB) error {
	var version sql.NullInt64
	if err := handle.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return told(e, err)
	}
	there, err := names(ctx, handle, relations[e.Name()])
	if err != nil {
		return told(e, err)
	}
	if version.Int64 > 0 && !slices.Contains(there, "workspaces") {
		return reeve.Errorf(reeve.AlreadyExists,
			"the database is another program's, which keeps count of its changes in goose_db_version as Reeve does; "+
				"nothing was changed").Hintf("use an empty database")
	}
	return nil
}

func names(ctx context.Context, handle *sql.DB, query string) (list []string, err error) {
	rows, err := handle.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		list = append(list, name)
	}
	return list, rows.Err()
}

// told says why the tables could not be brought up to date. Whoever starts a server may know the cause, whatever it is.
func told(e Engine, err error) error {
	why := UserError(e.Fault(err))
	if reeve.CodeOf(why) != reeve.Internal {
		return why
	}
	what := "the database cannot be brought up to date"
	if p, ok := errors.AsType[*goose.PartialError](err); ok {
		what, err = "the database cannot be brought up to date by "+path.Base(p.Failed.Source.Path), p.Err
	}
	return reeve.Errorf(reeve.Unsupported, "%s: %w", what, err).
		Hintf("nothing of that step was kept; use an empty database, or restore a backup made before the upgrade")
}
