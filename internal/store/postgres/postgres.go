// Package postgres is the engine for more than one machine: any number of servers on one database.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"reeve"
	"reeve/internal/store"
)

// Config says where and how.
type Config struct {
	URL   string           // postgres://user@host/database
	Conns int              // most connections. Default: pool_max_conns of the URL, or else 16
	Hook  store.CommitHook // called before and after each commit, for fault tests. Default: nothing
	// Patience is how long the server may take to answer. Then its connection is given up; what became of a commit, nobody can tell. Default: 30 s
	Patience time.Duration
}

// Engine is a PostgreSQL database. It implements [store.Engine].
type Engine struct {
	cfg   Config
	pool  *pgxpool.Pool
	group group
	open  atomic.Int32 // transactions that are being made or written
	haste haste
}

// Open connects.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	pc, err := pooled(cfg)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fault(err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		f := fault(err)
		return nil, reeve.Errorf(reeve.Unavailable, "PostgreSQL at %s cannot be reached: %w", pc.ConnConfig.Host, f).
			Hintf("check that it runs, and the user, password and database in the URL")
	}
	if cfg.Patience == 0 {
		cfg.Patience = 30 * time.Second
	}
	e := &Engine{cfg: cfg, pool: pool, haste: haste{most: cfg.Patience, under: map[*conn]bool{}}}
	e.group.engine = e
	return e, nil
}

// IsConns tells whether a text says how many connections a server may open.
func IsConns(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 1
}

// Password is the one that a URL has, or that is known for its user otherwise (PGPASSWORD, a password file); empty if none is.
func Password(url string) string {
	c, err := pgconn.ParseConfig(url)
	if url == "" || err != nil {
		return ""
	}
	return c.Password
}

// pooled reads the URL.
func pooled(cfg Config) (*pgxpool.Config, error) {
	unread := reeve.Errorf(reeve.Validation, "the database URL cannot be read").Hintf("write it as postgres://user:password@host:5432/database")
	plain, err := pgconn.ParseConfig(cfg.URL)
	if err != nil {
		return nil, unread
	}
	conns, said := plain.RuntimeParams["pool_max_conns"] // pgxpool puts a number of its own where the URL says none
	if said && !IsConns(conns) {
		return nil, reeve.Errorf(reeve.Validation, "pool_max_conns in the database URL is %q", conns).Hintf("write how many connections the server may open, 1 or more")
	}
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, unread
	}
	switch {
	case cfg.Conns != 0:
		pc.MaxConns = int32(cfg.Conns)
	case !said:
		pc.MaxConns = 16
	}
	pc.ConnConfig.ConnectTimeout = 5 * time.Second
	pc.ConnConfig.RuntimeParams["application_name"] = "reeve"
	pc.AfterConnect = settings
	dial := pc.ConnConfig.DialFunc
	pc.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newSocket(c)
	}
	return pc, nil
}

// settings makes a connection plan by the indexes there are, and not by how much a table held at that moment. A plan is kept for as long as its statement is, and one that was
// made for an empty queue would read all of a full one, row by row, for each of its steps. A page that is read by an index costs no more than another: they are in memory, or on a
// disk that has no head to move. What has no index is read as before; compiling plans takes longer than ours run.
func settings(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SET enable_seqscan = off; SET random_page_cost = 1; SET jit = off")
	return err
}

// Name is "postgres".
func (e *Engine) Name() string { return "postgres" }

// Lock lets claimers pass each other.
func (e *Engine) Lock() string { return " FOR UPDATE SKIP LOCKED" }

// Share keeps a row as it was read until the transaction ends.
func (e *Engine) Share() string { return " FOR SHARE" }

// Alone is false: other servers may share the database.
func (e *Engine) Alone() bool { return false }

// Migrator lends a database/sql handle.
func (e *Engine) Migrator(context.Context) (*sql.DB, string, error) {
	return stdlib.OpenDB(*e.pool.Config().ConnConfig), "postgres", nil
}

// tries is how often a transaction that lost to another is run again.
const tries = 10

// Update runs f in one transaction, again when it lost to another.
func (e *Engine) Update(ctx context.Context, f func(store.Conn) error) error {
	e.open.Add(1)
	defer e.open.Add(-1)
	var err error
	for range tries {
		if err = e.once(ctx, f); !lost(err) {
			return err
		}
	}
	return err
}

func (e *Engine) once(ctx context.Context, f func(store.Conn) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := &conn{engine: e, begin: "begin"}
	defer t.release(ctx)
	if err := f(t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.begin != "" { // nothing was asked for on the way, so it can travel with others
		held := t.held
		t.held = nil
		return e.group.commit(ctx, held)
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
	t := &conn{engine: e, begin: "begin isolation level repeatable read, read only"}
	defer t.release(ctx)
	return f(t)
}

// Fault names an error of a handle that Migrator lent.
func (e *Engine) Fault(err error) error { return fault(err) }

// Close ends it. The pool takes its leave of the server, which may stand still: it is waited for no longer than for anything else.
func (e *Engine) Close() error {
	done := make(chan struct{})
	go func() { e.pool.Close(); close(done) }()
	late := time.NewTimer(e.haste.patience())
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

// class names a refusal by the class of its SQLSTATE, where the code itself says no more: what is the server's trouble is not the caller's.
func class(code string) store.FaultKind {
	switch code[:min(2, len(code))] {
	case "40", "55": // it lost to another, or would have had to wait for one
		return store.FaultBusy
	case "08", "53", "57", "58": // the connection, memory, connections, an operator, a time limit, the disk
		if code == "57014" || code == "53300" { // a statement was stopped, or all connections are taken; the server is there
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
