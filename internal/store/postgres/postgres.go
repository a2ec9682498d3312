// Package postgres implements [store.Engine] with a PostgreSQL database. Several servers can share one database.
//
// A transaction queues statements that need no result and sends them in one batch with the next query or the commit. A
// transaction that only writes therefore takes one round trip. A transaction that fails because of a concurrent one is
// repeated.
//
// The database may be behind a connection pooler such as PgBouncer in transaction mode; see pooler.go. Backups use
// pg_dump, which needs a direct connection.
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

// Config configures an Engine.
type Config struct {
	URL    string           // postgres://user@host/database, of PostgreSQL or of a connection pooler
	Direct string           // URL of PostgreSQL itself, for backups. Default: URL, unless that is a pooler's
	Conns  int              // the maximum number of connections. Default: pool_max_conns of the URL, or else 16
	Hook   store.CommitHook // called before and after each commit, for fault tests. Default: none
	// Timeout is how long the server may take to answer a batch of statements. After that the connection is closed, and
	// the outcome of a commit is unknown. Default: 30 s
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

// Open connects to the database. It detects whether the URL leads to a connection pooler; see pooler.go.
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

// connect opens the pool and one of its connections.
func (e *Engine) connect(ctx context.Context) error {
	pc, err := poolConfig(e.cfg)
	if err != nil {
		return err
	}
	pc.AfterConnect = setUpConn
	if e.pooler {
		pc.AfterConnect = nil
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if e.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return toFault(err)
	}
	err = e.pool.Ping(ctx)
	if err == nil && e.pooler {
		err = checkTransactions(ctx, e.pool)
	}
	if err == nil {
		return nil
	}
	e.pool.Close()
	if _, ok := errors.AsType[*reeve.Error](err); ok {
		return err
	}
	return reeve.Errorf(reeve.Unavailable, "PostgreSQL at %s cannot be reached: %w", pc.ConnConfig.Host, toFault(err)).
		Hintf("check that PostgreSQL runs, and check the user, password and database in the URL")
}

// Pooler reports whether the database is reached through a connection pooler.
func (e *Engine) Pooler() bool { return e.pooler }

// IsConns reports whether a text is a valid number of connections.
func IsConns(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 1
}

// Password returns the password in a URL, or the one that PGPASSWORD or a password file has for its user. It is empty
// if there is none.
func Password(url string) string {
	c, err := pgconn.ParseConfig(url)
	if url == "" || err != nil {
		return ""
	}
	return c.Password
}

// poolConfig parses the URL and applies the defaults.
func poolConfig(cfg Config) (*pgxpool.Config, error) {
	invalid := reeve.Errorf(reeve.Validation, "database URL is invalid").
		Hintf("write it as postgres://user:password@host:5432/database")
	plain, err := pgconn.ParseConfig(cfg.URL)
	if err != nil {
		return nil, invalid
	}
	conns, set := plain.RuntimeParams["pool_max_conns"] // pgxpool has another default
	if set && !IsConns(conns) {
		return nil, reeve.Errorf(reeve.Validation, "pool_max_conns in the database URL is %q, not a number from 1",
			conns).
			Hintf("set it to the number of connections that the server may open")
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, invalid
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

// Name returns "postgres".
func (e *Engine) Name() string { return "postgres" }

// LockClause returns a clause that skips locked rows, so that concurrent claims do not wait for each other.
func (e *Engine) LockClause() string { return " FOR UPDATE SKIP LOCKED" }

// ShareClause returns a clause that keeps selected rows unchanged until the transaction ends.
func (e *Engine) ShareClause() string { return " FOR SHARE" }

// SingleProcess returns false, because other servers may share the database.
func (e *Engine) SingleProcess() bool { return false }

// CheckPresent returns nil, because PostgreSQL manages its files itself.
func (e *Engine) CheckPresent() error { return nil }

// Identity returns the identifiers of the cluster and of the database in it. A database that pg_restore has filled, or
// that was moved to another cluster, has another identity. If the user may not read the cluster's identifier, it
// returns that of the database only.
func (e *Engine) Identity(ctx context.Context) (id string, err error) {
	if err := e.pool.QueryRow(ctx, `SELECT oid::text FROM pg_database WHERE datname = current_database()`).Scan(&id); err != nil {
		return "", toFault(err)
	}
	var cluster string
	err = e.pool.QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&cluster)
	var refused *pgconn.PgError
	if errors.As(err, &refused) { // not permitted, or the function does not exist
		return id, nil
	}
	return cluster + "/" + id, toFault(err)
}

// Migrator returns a new database/sql handle.
func (e *Engine) Migrator(context.Context) (*sql.DB, string, error) {
	return stdlib.OpenDB(*e.pool.Config().ConnConfig), "postgres", nil
}

// maxTries is how often a transaction is tried that conflicts with others.
const maxTries = 10

// Update runs f in one transaction. It tries again if the transaction conflicts with another.
func (e *Engine) Update(ctx context.Context, f func(store.Conn) error) error {
	var err error
	for range maxTries {
		if err = e.updateOnce(ctx, f); !isSerializationFailure(err) {
			return err
		}
	}
	return err
}

func (e *Engine) updateOnce(ctx context.Context, f func(store.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &conn{engine: e, start: e.startStatements("begin")}
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
	t := &conn{engine: e, start: e.startStatements("begin isolation level repeatable read, read only")}
	defer t.release(ctx)
	return f(t)
}

// withTimeout returns a context that ends after the engine's timeout or when the engine is closed.
func (e *Engine) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	stop := context.AfterFunc(e.closed, cancel)
	return ctx, func() { stop(); cancel() }
}

// Fault classifies an error of a handle that Migrator returned.
func (e *Engine) Fault(err error) error { return toFault(err) }

// Close makes running calls fail and closes the connections. It waits at most five seconds.
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

// toFault classifies an error by its SQLSTATE.
func toFault(err error) error {
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
		kind = kindOfClass(pe.Code)
	}
	return store.Fault{Kind: kind, Err: err}
}

// kindOfClass classifies an error by the class of its SQLSTATE.
func kindOfClass(code string) store.FaultKind {
	switch code[:min(2, len(code))] {
	case "40", "55": // conflict with another transaction, or lock not available
		return store.FaultBusy
	case "08", "53", "57", "58": // connection, resources, operator intervention, system error
		// query cancelled, too many connections: the server is running
		if code == "57014" || code == "53300" {
			return store.FaultBusy
		}
		return store.FaultDown
	}
	return store.FaultOther
}

func asFault(err error) (store.Fault, bool) { return errors.AsType[store.Fault](err) }

// isSerializationFailure reports whether a transaction failed only because of a concurrent transaction.
func isSerializationFailure(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "40P01")
}
