// Package sqlite implements [store.Engine] with an embedded SQLite database in one file.
//
// One connection writes and several connections read. The writer commits the transactions of concurrent callers
// together and syncs each commit to disk before it reports success. SQLite's log is in the -wal file beside the
// database.
//
// The engine also checks the files themselves. SQLite does not notice when a file is moved, replaced or truncated while
// it is open, and it deletes or misapplies a log that does not belong to the database file. See watchedFiles and
// checkWAL. [Replace] restores a backup in a crash-safe way.
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

// Config configures an Engine.
type Config struct {
	File    string           // the database file; created if missing
	Readers int              // the number of concurrent readers. Default: the number of processors, at least 4
	Busy    time.Duration    // how long to wait for a lock of another process. Default: 5 s
	Hook    store.CommitHook // called before and after each commit, for fault tests. Default: none
}

// Engine is an open SQLite database. It implements [store.Engine].
type Engine struct {
	cfg      Config
	writerDB *sql.DB // the writer's handle
	readerDB *sql.DB // the readers' handle
	writer   writer
	readers  chan *conn
	files    *watchedFiles
}

// Open opens the database file, and creates it if it is missing.
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
	// The log grows to 16 MB before it is copied into the database, so that pages that are written often are copied
	// rarely. The cache holds the last pages of about a thousand threads, so that the cost of a call does not grow with
	// the number of threads.
	// With secure_delete, deleted texts are overwritten, so that a forgotten text leaves the file.
	if e.writerDB, err = sql.Open("sqlite", e.dsn("synchronous(FULL)", "journal_mode(WAL)", "wal_autocheckpoint(4000)",
		"secure_delete(1)", "cache_size(-12000)")); err != nil {
		return nil, err
	}
	w, err := openConn(ctx, e.writerDB)
	if err != nil {
		_ = e.writerDB.Close()
		return nil, store.UserError(diagnose(cfg.File, err))
	}
	if e.files, err = watchFiles(cfg.File); err != nil {
		return nil, errors.Join(err, w.close(), e.writerDB.Close())
	}
	// Readers do not use memory mapping: reading a mapped page of a truncated file or a failed disk kills the process.
	if e.readerDB, err = sql.Open("sqlite", e.dsn("query_only(1)")); err != nil {
		return nil, errors.Join(err, w.close(), e.writerDB.Close(), e.files.close())
	}
	e.writer = writer{conn: w, hook: cfg.Hook, files: e.files}
	for range cfg.Readers {
		e.readers <- nil // opened on first use
	}
	return e, nil
}

func (e *Engine) dsn(pragmas ...string) string { return dsn(e.cfg.File, e.cfg.Busy, pragmas...) }

func dsn(file string, busy time.Duration, pragmas ...string) string {
	// mode rw, so that a connection that is opened later does not create a new file
	q := url.Values{"mode": {"rw"}}
	for _, p := range append(pragmas, "foreign_keys(1)", fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"temp_store(MEMORY)") {
		q.Add("_pragma", p)
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// checkFile checks the file and its log before SQLite opens them, and creates the file if it is missing.
func checkFile(file string) error {
	if err := checkWAL(file); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return reeve.Errorf(reeve.Unavailable, "database file %s cannot be opened for writing: %w", file,
			errors.Unwrap(err)).
			Hintf("check that the data directory exists and that the server may write it and the file")
	}
	return f.Close()
}

// Name returns "sqlite".
func (e *Engine) Name() string { return "sqlite" }

// LockClause returns "", because there is only one writer.
func (e *Engine) LockClause() string { return "" }

// ShareClause returns "", because there is only one writer.
func (e *Engine) ShareClause() string { return "" }

// SingleProcess returns true, because the server locks its data directory.
func (e *Engine) SingleProcess() bool { return true }

// Update runs f on the writer's connection.
func (e *Engine) Update(ctx context.Context, f func(store.Conn) error) error {
	return e.files.diagnose(e.writer.update(ctx, f))
}

// CheckPresent returns a FaultGone if the database's files are not the ones that SQLite has open.
func (e *Engine) CheckPresent() error { return e.files.checkPresent() }

// Identity returns the user_version in the file's header, which is different in every backup. It is empty for a
// database that is not a copy.
func (e *Engine) Identity(ctx context.Context) (id string, err error) {
	if err := e.readerDB.QueryRowContext(ctx, "PRAGMA user_version").Scan(&id); err != nil || id == "0" {
		return "", toFault(err)
	}
	return id, nil
}

// View runs f on a reader's snapshot. It interrupts a running query when ctx is done.
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
		if err = e.files.checkPresent(); err != nil { // a new connection could open another file
			return err
		}
		if c, err = openConn(ctx, e.readerDB); err != nil {
			return err
		}
		c.interruptible = true
	}
	if err := c.run(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() { // also when f panics
		if c.runUncanceled("ROLLBACK") != nil && !c.isIdle() {
			c.renew()
		}
	}()
	return f(c)
}

// Migrator returns a new handle on the same file.
func (e *Engine) Migrator(context.Context) (*sql.DB, string, error) {
	db, err := sql.Open("sqlite", e.dsn("synchronous(FULL)", "journal_mode(WAL)"))
	return db, "sqlite3", err
}

// Check checks the integrity of a database file and returns its schema version. It fails if the file is not a Reeve
// database.
func Check(ctx context.Context, file string) (version int64, err error) {
	if _, err := os.Stat(file); err != nil { // SQLite would create a new file
		return 0, reeve.Errorf(reeve.NotFound, "%s cannot be read: %w", file, errors.Unwrap(err))
	}
	db, err := sql.Open("sqlite", dsn(file, 5*time.Second, "query_only(1)"))
	if err != nil {
		return 0, err
	}
	defer func() { err = store.UserError(errors.Join(err, db.Close())) }()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return 0, diagnose(file, toFault(err))
	}
	if verdict != "ok" {
		return 0, store.Fault{Kind: store.FaultCorrupt, Err: fmt.Errorf("quick_check: %s", verdict)}
	}
	var ours int
	if err := db.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('goose_db_version', 'workspaces')").
		Scan(&ours); err != nil {
		return 0, toFault(err)
	}
	if ours != 2 {
		return 0, reeve.Errorf(reeve.Validation, "%s is not a Reeve database", file)
	}
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version").
		Scan(&version); err != nil {
		return 0, toFault(err)
	}
	if version < 1 {
		return 0, reeve.Errorf(reeve.Validation, "%s is not a Reeve database", file)
	}
	return version, nil
}

// Fault classifies an error of a handle that Migrator returned.
func (e *Engine) Fault(err error) error { return toFault(err) }

// Close closes all connections. No call may be running.
func (e *Engine) Close() error {
	var errs []error
	for range e.cfg.Readers {
		if c := <-e.readers; c != nil {
			errs = append(errs, c.close())
		}
	}
	errs = append(errs, e.writer.conn.close(), e.readerDB.Close(), e.writerDB.Close(), e.files.close())
	return errors.Join(errs...)
}

// toFault classifies an error by SQLite's error code.
func toFault(err error) error {
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
	case codes.SQLITE_IOERR_SHMSIZE: // the -shm file could not grow
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
