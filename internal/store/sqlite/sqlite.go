// Package sqlite is the embedded engine: one file, one writer, many readers, every commit on disk before it is
// reported.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reeve"
	"reeve/internal/store"
)

// Config says where and how.
type Config struct {
	File    string           // the database file; created when missing
	Readers int              // how many readers at once. Default: the number of processors, at least 4
	Busy    time.Duration    // how long to wait for another process that holds the file. Default: 5 s
	Hook    store.CommitHook // called before and after each commit, for fault tests. Default: nothing
}

// Engine is an open SQLite database. It implements [store.Engine].
type Engine struct {
	cfg     Config
	db      *sql.DB // the writer's handle
	rdb     *sql.DB // the readers' handle
	writer  writer
	readers chan *conn
	files   *files
}

// Open opens or creates the file.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Readers == 0 {
		cfg.Readers = max(4, runtime.NumCPU())
	}
	if cfg.Busy == 0 {
		cfg.Busy = 5 * time.Second
	}
	if err := checkFile(cfg.File); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, readers: make(chan *conn, cfg.Readers)}
	var err error
	// Pages that are written again and again are copied into the database once in a while only: the log holds up to 16
	// MB. The last pages of a thousand threads, and of their files, stay at hand: what a call costs does not grow with
	// how many there were.
	if e.db, err = sql.Open("sqlite", e.dsn("synchronous(FULL)", "journal_mode(WAL)", "wal_autocheckpoint(4000)",
		"cache_size(-12000)")); err != nil {
		return nil, err
	}
	w, err := open(ctx, e.db)
	if err != nil {
		_ = e.db.Close()
		return nil, store.UserError(diagnose(cfg.File, err))
	}
	if e.files, err = watch(cfg.File); err != nil {
		return nil, errors.Join(err, w.close(), e.db.Close())
	}
	// Readers do not map the file: a mapping of a file that is cut off, or on a disk that fails, ends the process.
	if e.rdb, err = sql.Open("sqlite", e.dsn("query_only(1)")); err != nil {
		return nil, errors.Join(err, w.close(), e.db.Close(), e.files.close())
	}
	e.writer = writer{conn: w, hook: cfg.Hook, files: e.files}
	for range cfg.Readers {
		e.readers <- nil // opened on first use
	}
	return e, nil
}

func (e *Engine) dsn(pragmas ...string) string { return dsn(e.cfg.File, e.cfg.Busy, pragmas...) }

func dsn(file string, busy time.Duration, pragmas ...string) string {
	// a connection that is opened later makes no new file in the place of one that is gone
	q := url.Values{"mode": {"rw"}}
	for _, p := range append(pragmas, "foreign_keys(1)", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"temp_store(MEMORY)") {
		q.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// checkFile finds early, and in words, what SQLite would report late.
func checkFile(file string) error {
	if err := checkLog(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "the database file %s cannot be opened for writing: %w", file,
			errors.Unwrap(err)).
			Hintf("check that the data directory is there, and its permissions and those of the file in it")
	}
	return f.Close()
}

// Name is "sqlite".
func (e *Engine) Name() string { return "sqlite" }

// LockClause is empty: the writer is alone anyway.
func (e *Engine) LockClause() string { return "" }

// ShareClause is empty: the writer is alone anyway.
func (e *Engine) ShareClause() string { return "" }

// SingleProcess is true: the data directory is locked by its server.
func (e *Engine) SingleProcess() bool { return true }

// Update runs f on the writer.
func (e *Engine) Update(ctx context.Context, f func(store.Conn) error) error {
	return e.files.diagnose(e.writer.update(ctx, f))
}

// CheckPresent refuses when the database's files are not those that SQLite has open.
func (e *Engine) CheckPresent() error { return e.files.present() }

// Identity is the number in the file's header that every backup has of its own; empty for a database that is no copy.
func (e *Engine) Identity(ctx context.Context) (id string, err error) {
	if err := e.rdb.QueryRowContext(ctx, "PRAGMA user_version").Scan(&id); err != nil || id == "0" {
		return "", fault(err)
	}
	return id, nil
}

// View runs f on a reader's snapshot. A query of it that still runs when ctx ends is interrupted.
func (e *Engine) View(ctx context.Context, f func(store.Conn) error) (err error) {
	defer func() { err = e.files.diagnose(err) }()
	var c *conn
	select {
	case c = <-e.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { e.readers <- c }()
	if c == nil {
		if err = e.files.present(); err != nil { // it would read another database
			return err
		}
		if c, err = open(ctx, e.rdb); err != nil {
			return err
		}
		c.interruptible = true
	}
	if err := c.run(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() { // also when f panics
		if c.must("ROLLBACK") != nil && !c.idle() {
			c.renew()
		}
	}()
	return f(c)
}

// Migrator lends a handle on the same file.
func (e *Engine) Migrator(context.Context) (*sql.DB, string, error) {
	db, err := sql.Open("sqlite", e.dsn("synchronous(FULL)", "journal_mode(WAL)"))
	return db, "sqlite3", err
}

// Check tells whether a file is a sound Reeve database, and its schema version.
func Check(ctx context.Context, file string) (version int64, err error) {
	if _, err := os.Stat(file); err != nil { // SQLite would make a new one
		return 0, reeve.Errorf(reeve.NotFound, "%s cannot be read: %w", file, errors.Unwrap(err))
	}
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return 0, err
	}
	defer func() { err = store.UserError(errors.Join(err, db.Close())) }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return 0, diagnose(file, fault(err))
	}
	if verdict != "ok" {
		return 0, store.Fault{Kind: store.FaultCorrupt, Err: fmt.Errorf("quick_check says %s", verdict)}
	}
	var ours int
	if err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('goose_db_version', 'workspaces')").
		Scan(&ours); err != nil {
		return 0, fault(err)
	}
	if ours != 2 {
		return 0, reeve.Errorf(reeve.Validation, "%s is not a database of Reeve's", file)
	}
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version").
		Scan(&version); err != nil {
		return 0, fault(err)
	}
	if version < 1 {
		return 0, reeve.Errorf(reeve.Validation, "%s is not a database of Reeve's", file)
	}
	return version, nil
}

// Fault names an error of a handle that Migrator lent.
func (e *Engine) Fault(err error) error { return fault(err) }

// Close ends it.
func (e *Engine) Close() error {
	var errs []error
	for range e.cfg.Readers {
		if c := <-e.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	errs = append(errs, e.writer.conn.close(), e.rdb.Close(), e.db.Close(), e.files.close())
	return errors.Join(errs...)
}

// fault names a refusal by SQLite's code.
func fault(err error) error {
	if err == nil {
		return nil
	}
	var se *driver.Error
	if !errors.As(err, &se) {
		return err
	}
	kind := store.FaultOther
	switch se.Code() {
	case codes.SQLITE_CONSTRAINT_PRIMARYKEY, codes.SQLITE_CONSTRAINT_UNIQUE, codes.SQLITE_CONSTRAINT_ROWID:
		kind = store.FaultUnique
	case codes.SQLITE_IOERR_SHMSIZE: // the log's index could not grow
		kind = store.FaultFull
	case codes.SQLITE_CONSTRAINT_NOTNULL:
		kind = store.FaultNotNull
	case codes.SQLITE_CONSTRAINT_FOREIGNKEY:
		kind = store.FaultForeign
	default:
		switch se.Code() & 0xff {
		case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
			kind = store.FaultBusy
		case codes.SQLITE_FULL:
			kind = store.FaultFull
		case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
			kind = store.FaultReadOnly
		case codes.SQLITE_TOOBIG:
			kind = store.FaultLarge
		case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
			kind = store.FaultCorrupt
		case codes.SQLITE_IOERR:
			kind = store.FaultDisk
		}
	}
	return store.Fault{Kind: kind, Err: err}
}
