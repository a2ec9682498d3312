package crash_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"reeve/internal/store/storetest"
)

// engine creates worlds: data directories with a database each.
type engine struct {
	name     string
	base     string // where worlds are made
	template world  // what prepared worlds are copies of
	admin    *sql.DB
	server   *url.URL
	through  func(database string) string // the URL that servers get for a database. Default: its own
}

// world is a data directory and its database.
type world struct {
	engine   *engine
	dir      string
	database string // URL; empty means SQLite in the directory
}

func sqliteEngine(t *testing.T) *engine { return &engine{name: "sqlite", base: t.TempDir()} }

func postgresEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{name: "postgres", base: t.TempDir()}
	own := storetest.EmptyPostgresURL(t) // fails the test without a server
	var err error
	if e.server, err = url.Parse(own); err != nil {
		t.Fatal(err)
	}
	if e.admin, err = sql.Open("pgx", os.Getenv("REEVE_TEST_POSTGRES")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.admin.Close() })
	return e
}

// pgbouncerEngine is PostgreSQL behind PgBouncer in transaction mode with few connections.
func pgbouncerEngine(t *testing.T) *engine {
	t.Helper()
	e := postgresEngine(t)
	e.name, e.through = "pgbouncer", storetest.PgBouncer(t, "pool_mode = transaction", "default_pool_size = 8")
	return e
}

// url returns the database URL that servers get.
func (w world) url() string {
	if w.engine.through != nil {
		return w.engine.through(w.database)
	}
	return w.database
}

// newEmptyWorld creates a world in which no server has run.
func (e *engine) newEmptyWorld() (world, error) { return e.copyWorld(world{}) }

// newPreparedWorld creates a copy of the template.
func (e *engine) newPreparedWorld() (world, error) { return e.copyWorld(e.template) }

func (e *engine) copyWorld(from world) (w world, err error) {
	w.engine = e
	if w.dir, err = os.MkdirTemp(e.base, "world"); err != nil {
		return w, err
	}
	if from.dir != "" {
		if err := copyFiles(w.dir, from.dir, "reeve.db", "reeve.db-wal", "owner.token", "secret.key"); err != nil {
			return w, err
		}
	}
	if e.server == nil {
		return w, nil
	}
	b := make([]byte, 8)
	rand.Read(b)
	name := "reeve_crash_" + hex.EncodeToString(b)
	query := "CREATE DATABASE " + name
	if from.database != "" {
		u, err := url.Parse(from.database)
		if err != nil {
			return w, err
		}
		query += " TEMPLATE " + strings.TrimPrefix(u.Path, "/")
	}
	if _, err := e.admin.Exec(query); err != nil {
		return w, err
	}
	u := *e.server
	u.Path = "/" + name
	w.database = u.String()
	if from.database != "" {
		err = w.clearIdentity()
	}
	return w, err
}

// clearIdentity makes a copy of a database count as the original. A server on a copy would start held.
func (w world) clearIdentity() error {
	db, err := w.open()
	if err != nil {
		return err
	}
	_, err = db.Exec("UPDATE database_state SET identity = ''")
	return errors.Join(err, db.Close())
}

// remove deletes a world.
func (w world) remove() error {
	err := os.RemoveAll(w.dir)
	if w.database != "" {
		u, parseErr := url.Parse(w.database)
		if parseErr != nil {
			return parseErr
		}
		_, dropErr := w.engine.admin.Exec("DROP DATABASE " + strings.TrimPrefix(u.Path, "/") + " WITH (FORCE)")
		err = errors.Join(err, dropErr)
	}
	return err
}

// copyFiles copies those of the named files that exist.
func copyFiles(to, from string, names ...string) error {
	for _, name := range names {
		in, err := os.Open(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		out, err := os.OpenFile(filepath.Join(to, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return errors.Join(err, in.Close())
		}
		_, err = io.Copy(out, in)
		if err = errors.Join(err, in.Close(), out.Close()); err != nil {
			return err
		}
	}
	return nil
}

// open opens the database without a server.
func (w world) open() (*sql.DB, error) {
	if w.database != "" {
		return sql.Open("pgx", w.database)
	}
	return sql.Open("sqlite", "file:"+filepath.Join(w.dir, "reeve.db"))
}

// forgetDeadServers makes dead servers known as dead. Servers on one PostgreSQL database consider another alive until
// it has been silent for 20 seconds. This function skips that time.
func (w world) forgetDeadServers(ctx context.Context) error {
	if w.database == "" {
		return nil
	}
	db, err := w.open()
	if err != nil {
		return err
	}
	var made bool // a server that died in its first start has made no tables
	err = db.QueryRowContext(ctx, "SELECT to_regclass('processes') IS NOT NULL").Scan(&made)
	if err == nil && made {
		_, err = db.ExecContext(ctx, "DELETE FROM processes")
	}
	return errors.Join(err, db.Close())
}

// checkFile checks a SQLite file as a crash left it. It uses a copy, because opening a file repairs it.
func (w world) checkFile(ctx context.Context) error {
	if w.database != "" {
		return nil
	}
	dir, err := os.MkdirTemp(w.engine.base, "left")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := copyFiles(dir, w.dir, "reeve.db", "reeve.db-wal"); err != nil {
		return err
	}
	db, err := world{engine: w.engine, dir: dir}.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return checkIntegrity(ctx, db)
}

func checkIntegrity(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("integrity_check: %s", verdict)
	}
	var broken int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken); err != nil {
		return err
	}
	if broken != 0 {
		return fmt.Errorf("foreign_key_check: %d rows", broken)
	}
	return nil
}

// forbiddenRows are queries that count rows that must not exist in the ledger when everything has ended.
var forbiddenRows = []rowCount{
	{"operations that have no end", `SELECT count(*) FROM calls WHERE operation_id IS NOT NULL AND state IN ('prepared', 'dispatched', 'parked')
		OR (state = 'unknown' AND resolution = '')`},
	{"calls without a result", `SELECT count(*) FROM calls WHERE result_id = '' OR result_info = ''`},
	{"results that are there twice",
		`SELECT count(*) FROM (SELECT result_id FROM calls GROUP BY result_id HAVING count(*) > 1) x`},
	{"reservations", `SELECT count(*) FROM reservations`},
	{"approvals that nobody used or answered", `SELECT count(*) FROM approvals WHERE state <> 'approved'`},
	{"operations with several approvals",
		`SELECT count(*) FROM (SELECT operation_id FROM approvals GROUP BY operation_id HAVING count(*) > 1) x`},
	{"proposals that are there twice",
		`SELECT count(*) FROM (SELECT args_hash FROM proposals GROUP BY agent_id, tool, args_hash HAVING count(*) > 1) x`},
	{"proposals that are not applied", `SELECT count(*) FROM proposals p WHERE NOT EXISTS
		(SELECT 1 FROM calls o WHERE o.operation_id = p.operation_id AND o.state = 'committed' AND p.state = 'accepted')`},
	{"file writes without their file", `SELECT count(*) FROM calls o WHERE o.tool = 'write_file' AND o.state = 'committed'
		AND NOT EXISTS (SELECT 1 FROM session_files f WHERE f.session_id IN (o.thread_id, o.agent_id || ':session:automation'))`},
	{"files without their write", `SELECT count(*) FROM session_files f WHERE NOT EXISTS
		(SELECT 1 FROM calls o WHERE f.session_id IN (o.thread_id, o.agent_id || ':session:automation') AND o.tool = 'write_file' AND o.state = 'committed')`},
	{"file writes not told exactly once", `SELECT count(*) FROM (SELECT o.id FROM calls o LEFT JOIN events e ON e.operation_id = o.operation_id
		WHERE o.tool = 'write_file' AND o.state = 'committed' GROUP BY o.id HAVING count(e.id) <> 2) x`}, // a key and an id
	{"events of nothing", `SELECT count(*) FROM events e WHERE substr(e.operation_id, 1, 4) <> 'chg_' AND NOT EXISTS (SELECT 1 FROM calls o WHERE o.operation_id = e.operation_id AND o.state = 'committed')`},
	{"notifications not told exactly once",
		`SELECT abs((SELECT count(*) FROM notifications) - (SELECT count(*) FROM events WHERE name = 'NOTIFICATION'))`},
}

// checkLedger checks the ledger in the database, when no server runs on it.
func (w world) checkLedger(ctx context.Context) error {
	db, err := w.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	var wrong []error
	if w.database == "" {
		wrong = append(wrong, checkIntegrity(ctx, db))
	}
	for _, n := range forbiddenRows {
		var rows int
		if err := db.QueryRowContext(ctx, n.query).Scan(&rows); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", n.what, err))
		} else if rows != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", rows, n.what))
		}
	}
	files, err := db.QueryContext(ctx, "SELECT session_id, path, body FROM session_files")
	if err != nil {
		return errors.Join(append(wrong, err)...)
	}
	defer func() { _ = files.Close() }()
	for files.Next() {
		var session, path string
		var body []byte
		if err := files.Scan(&session, &path, &body); err != nil {
			return errors.Join(append(wrong, err)...)
		}
		if path != effectFile || !strings.HasSuffix(session, ":session:"+string(body)) {
			wrong = append(wrong, fmt.Errorf("the file %s of %s holds %q", path, session, body))
		}
	}
	return errors.Join(append(wrong, files.Err())...)
}
