// Package postgres is the engine for more than one machine: any number of servers on one database.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"reeve"
	"reeve/internal/store"
)

// Config says which database to use, and how.
type Config struct {
	URL    string           // postgres://user@host/database, of PostgreSQL itself or of a connection pooler before it
	Direct string           // URL of PostgreSQL itself, for backups. Default: URL, unless that is a pooler's
	Conns  int              // most connections. Default: pool_max_conns of the URL, or else 16
	Hook   store.CommitHook // called before and after each commit, for fault tests. Default: nothing
	// Timeout is how long the server may take to answer a batch of statements. After that its connection is closed; the
	// outcome of a commit is then unknown. Default: 30 s
	Timeout time.Duration
}

// Engine is a PostgreSQL database. It implements [store.Engine].
type Engine struct {
	cfg    Config
	pool   *pgxpool.Pool
	pooler bool            // URL leads to a connection pooler
	closed context.Context // done once Close is called
	close  context.CancelFunc
}

// Open connects. It finds out whether the URL leads to a connection pooler such as PgBouncer; see pooler.go.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	e := &Engine{cfg: cfg}
	err := e.connect(ctx)
	if errors.Is(err, errPooler) {
		e.pooler = true
		err = e.connect(ctx)
	}
	if err != nil {
		return nil, err
	}
	e.closed, e.close = context.WithCancel(context.Background())
	return e, nil
}

// connect opens the pool and one connection of it.
func (e *Engine) connect(ctx context.Context) error {
	pc, err := poolConfig(e.cfg)
	if err != nil {
		return err
	}
	pc.AfterConnect = setUp
	if e.pooler {
		pc.AfterConnect = nil
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if e.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return fault(err)
	}
	err = e.pool.Ping(ctx)
	if err == nil && e.pooler {
		err = allowsTransactions(ctx, e.pool)
	}
	if err == nil {
		return nil
	}
	e.pool.Close()
	if _, ok := errors.AsType[*reeve.Error](err); ok {
		return err
	}
	return reeve.Errorf(reeve.Unavailable, "PostgreSQL at %s cannot be reached: %w", pc.ConnConfig.Host, fault(err)).
		Hintf("check that it runs, and the user, password and database in the URL")
}

// Pooler reports whether the database is reached through a connection pooler.
func (e *Engine) Pooler() bool { return e.pooler }

// IsConns tells whether a text says how many connections a server may open.
func IsConns(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 1
}

// Password is the one that a URL has, or that is known for its user otherwise (PGPASSWORD, a password file); empty if
// none is.
func Password(url string) string {
	c, err := pgconn.ParseConfig(url)
	if url == "" || err != nil {
		return ""
	}
	return c.Password
}

// poolConfig reads the URL.
func poolConfig(cfg Config) (*pgxpool.Config, error) {
	unread := reeve.Errorf(reeve.Validation, "the database URL cannot be read").
		Hintf("write it as postgres://user:password@host:5432/database")
	plain, err := pgconn.ParseConfig(cfg.URL)
	if err != nil {
		return nil, unread
	}
	conns, set := plain.RuntimeParams["pool_max_conns"] // pgxpool has another default
	if set && !IsConns(conns) {
		return nil, reeve.Errorf(reeve.Validation, "pool_max_conns in the database URL is %q", conns).
			Hintf("write how many connections the server may open, 1 or more")
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, unread
	}
	switch {
	case cfg.Conns != 0:
		pc.MaxConns = int32(cfg.Conns)
	case !set:
		pc.MaxConns = 16
	}
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "reeve"
	return pc, nil
}

// Name is "postgres".
func (e *Engine) Name() string { return "postgres" }

// LockClause lets claimers pass each other.
func (e *Engine) LockClause() string { return " FOR UPDATE SKIP LOCKED" }

// ShareClause keeps a row as it was read until the transaction ends.
func (e *Engine) ShareClause() string { return " FOR SHARE" }

// SingleProcess is false: other servers may share the database.
func (e *Engine) SingleProcess() bool { return false }

// CheckPresent is nil: the database's files are the server's to watch.
func (e *Engine) CheckPresent() error { return nil }

// Identity names the cluster and the database in it. One that pg_restore has filled is another database, whatever its
// name; one that was moved to another cluster, too. Where a user may not ask for the cluster, the database's own number
// has to do.
func (e *Engine) Identity(ctx context.Context) (id string, err error) {
	if err := e.pool.QueryRow(ctx, `SELECT oid::text FROM pg_database WHERE datname = current_database()`).
		Scan(&id); err != nil {
		return "", fault(err)
	}
	var cluster string
	err = e.pool.QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&cluster)
	var refused *pgconn.PgError
	if errors.As(err, &refused) { // it is not allowed, or not there
		return id, nil
	}
	return cluster + "/" + id, fault(err)
}

// Migrator lends a database/sql handle.
func (e *Engine) Migrator(context.Context) (*sql.DB, string, error) {
	return stdlib.OpenDB(*e.pool.Config().ConnConfig), "postgres", nil
}

// tries is how often a transaction that lost to another is run.
const tries = 10

// Update runs f in one transaction, again when it lost to another.
func (e *Engine) Update(ctx context.Context, f func(store.Conn) error) error {
	var err error
	for range tries {
		if err = e.once(ctx, f); !lost(err) {
			return err
		}
	}
	return err
}

func (e *Engine) once(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &conn{engine: e, start: e.start("begin")}
	defer t.release(ctx)
	if err := f(t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.borrowed == nil && len(t.queued) == 0 {
		return nil
	}
	e.cfg.Hook.Before()
	if err := t.commit(ctx); err != nil {
		return err
	}
	e.cfg.Hook.After()
	return nil
}

// View runs f on one snapshot.
func (e *Engine) View(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &conn{engine: e, start: e.start("begin isolation level repeatable read, read only")}
	defer t.release(ctx)
	return f(t)
}

// limit gives a context that ends when the server has taken too long to answer, or the engine is closed.
func (e *Engine) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	stop := context.AfterFunc(e.closed, cancel)
	return ctx, func() { stop(); cancel() }
}

// Fault names an error of a handle that Migrator lent.
func (e *Engine) Fault(err error) error { return fault(err) }

// Close fails the calls under way and closes the connections. It waits a few seconds at most for a server that hangs.
func (e *Engine) Close() error {
	e.close()
	done := make(chan struct{})
	go func() { e.pool.Close(); close(done) }()
	late := time.NewTimer(5 * time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
	return nil
}

// fault names a refusal by its SQLSTATE.
func fault(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if f, ok := errors.AsType[store.Fault](err); ok {
		return f
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		var ce *pgconn.ConnectError
		if errors.As(err, &ce) || pgconn.SafeToRetry(err) {
			return store.Fault{Kind: store.FaultDown, Err: err}
		}
		return store.Fault{Kind: store.FaultOther, Err: err}
	}
	kind := store.FaultOther
	switch pe.Code {
	case "23505":
		kind = store.FaultUnique
	case "23502":
		kind = store.FaultNotNull
	case "23503":
		kind = store.FaultForeign
	case "53100":
		kind = store.FaultFull
	case "25006":
		kind = store.FaultReadOnly
	case "42501":
		kind = store.FaultReadOnly
	case "54000":
		kind = store.FaultLarge
	case "XX001", "XX002":
		kind = store.FaultCorrupt
	default:
		kind = class(pe.Code)
	}
	return store.Fault{Kind: kind, Err: err}
}

// class names a refusal by the class of its SQLSTATE, where the code itself says no more: what is the server's trouble
// is not the caller's.
func class(code string) store.FaultKind {
	switch code[:min(2, len(code))] {
	case "40", "55": // it lost to another, or would have had to wait for one
		return store.FaultBusy
	case "08", "53", "57", "58": // the connection, memory, connections, an operator, a time limit, the disk
		// a statement was stopped, or all connections are taken; the server is there
		if code == "57014" || code == "53300" {
			return store.FaultBusy
		}
		return store.FaultDown
	}
	return store.FaultOther
}

func faultOf(err error) (store.Fault, bool) { return errors.AsType[store.Fault](err) }

// lost tells whether a transaction was refused only because another was faster.
func lost(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "40P01")
}
