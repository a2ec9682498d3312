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

// migrate migrates the tables to the current schema. It refuses, without changing anything, a database of a newer or an
// unreleased version, and a database of another program.
func migrate(ctx context.Context, e Engine) (err error) {
	handle, dialect, err := e.Migrator(ctx)
	if err != nil {
		return UserError(err)
	}
	defer func() { err = errors.Join(err, handle.Close()) }()
	files, err := migrationFiles(e.Name())
	if err != nil {
		return err
	}
	if !e.SingleProcess() {
		unlock, err := lockMigrations(ctx, handle)
		if err != nil {
			return migrationError(e, err)
		}
		defer unlock()
	}
	if err := checkNamesFree(ctx, e, handle, files); err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.Dialect(dialect), handle, files)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return migrationError(e, err)
	}
	sources := p.ListSources()
	if oldest := sources[0].Version; have > 0 && have < oldest {
		return reeve.Errorf(reeve.Unsupported,
			"database has schema version %d of an unreleased Reeve; this Reeve supports versions from %d; nothing "+
				"was changed",
			have, oldest).Hintf("use an empty data directory or database, or run the Reeve that wrote it")
	}
	if newest := sources[len(sources)-1].Version; have > newest {
		return reeve.Errorf(reeve.Unsupported,
			"database has schema version %d, and this Reeve supports versions up to %d; nothing was changed",
			have, newest).Hintf("run the newer Reeve that wrote it, or restore a backup made before the upgrade")
	}
	if _, err := p.Up(ctx); err != nil {
		return migrationError(e, err)
	}
	return nil
}

// lockMigrations waits up to five minutes until no other server migrates the database. The lock belongs to an open
// transaction and not to a session, because a connection pooler may use another session for each transaction.
func lockMigrations(ctx context.Context, handle *sql.DB) (unlock func(), err error) {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, query := range []string{
		"SET LOCAL lock_timeout = '5min'",
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lock.DefaultLockID), // earlier versions use the same id
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return nil, errors.Join(err, tx.Rollback())
		}
	}
	return func() { _ = tx.Rollback() }, nil // a broken connection holds no lock
}

// migrationFiles returns the migrations for an engine.
func migrationFiles(engine string) (fs.FS, error) {
	files, err := fs.Sub(migrations, "migrations")
	return dialectFS{files, engine}, err
}

// Schema creates the tables of a schema version in an empty database. engine is "sqlite" or "postgres".
func Schema(ctx context.Context, handle *sql.DB, engine string, version int64) error {
	dialects := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres}
	files, err := migrationFiles(engine)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialects[engine], handle, files)
	if err == nil {
		_, err = p.UpTo(ctx, version)
	}
	return err
}

// Versions returns the oldest and the newest schema version that this Reeve supports.
func Versions() (oldest, newest int64, err error) {
	list, err := fs.Glob(migrations, "migrations/*.sql") // Glob returns the names in order
	if err != nil {
		return 0, 0, err
	}
	if oldest, err = goose.NumericComponent(list[0]); err != nil {
		return 0, 0, err
	}
	newest, err = goose.NumericComponent(list[len(list)-1])
	return oldest, newest, err
}

// relationNamesSQL has, for each engine, the query for the names of existing tables and indexes. It is a single
// statement and so reads one consistent state; goose creates its own table before the others.
var relationNamesSQL = map[string]string{
	"sqlite": "SELECT name FROM sqlite_master",
	"postgres": "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = " +
		"current_schema()",
}

var createStatement = regexp.MustCompile(`(?i)\bCREATE (?:VIRTUAL |UNIQUE )?(?:TABLE|INDEX) (\w+)`)

// checkNamesFree refuses a database that is not Reeve's and has a table or index with a name that a migration uses.
func checkNamesFree(ctx context.Context, e Engine, handle *sql.DB, files fs.FS) error {
	existing, err := listNames(ctx, handle, relationNamesSQL[e.Name()])
	if err != nil {
		return migrationError(e, err)
	}
	if slices.Contains(existing, "goose_db_version") {
		return checkIsReeve(ctx, e, handle)
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
		for _, m := range createStatement.FindAllSubmatch(body, -1) {
			if name := string(m[1]); slices.Contains(existing, name) && !slices.Contains(taken, name) {
				taken = append(taken, name)
			}
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return reeve.Errorf(reeve.AlreadyExists,
		"database is not Reeve's and has tables or indexes with names that Reeve uses: %s; nothing was changed",
		strings.Join(taken, ", ")).
		Hintf("use an empty database")
}

// checkIsReeve refuses a database with migrations of another program: it has versions, but not Reeve's first table. It
// reads the versions first, because another server may be creating both.
func checkIsReeve(ctx context.Context, e Engine, handle *sql.DB) error {
	var version sql.NullInt64
	if err := handle.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version); err != nil {
		return migrationError(e, err)
	}
	existing, err := listNames(ctx, handle, relationNamesSQL[e.Name()])
	if err != nil {
		return migrationError(e, err)
	}
	if version.Int64 > 0 && !slices.Contains(existing, "workspaces") {
		return reeve.Errorf(reeve.AlreadyExists,
			"database belongs to another program that also uses the table goose_db_version; nothing was changed").
			Hintf("use an empty database")
	}
	return nil
}

func listNames(ctx context.Context, handle *sql.DB, query string) (list []string, err error) {
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

// migrationError converts an error of the migration. It includes the cause of internal errors too, because the reader
// is the administrator who starts the server.
func migrationError(e Engine, err error) error {
	known := UserError(e.Fault(err))
	if reeve.CodeOf(known) != reeve.Internal {
		return known
	}
	what := "database migration failed"
	if p, ok := errors.AsType[*goose.PartialError](err); ok {
		what, err = "database migration failed in "+path.Base(p.Failed.Source.Path), p.Err
	}
	return reeve.Errorf(reeve.Unsupported, "%s: %w", what, err).
		Hintf("this step was rolled back; use an empty database, or restore a backup made before the upgrade")
}
