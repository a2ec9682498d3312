package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"reeve/internal/store"
)

// conn is one connection with its prepared statements. Preparing costs a third of a short transaction, so each text is
// prepared once; the texts are constants of package store, so there are few.
type conn struct {
	db    *sql.DB
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

func open(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fault(err)
	}
	return &conn{db: db, c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s, ok := c.stmts[query]; ok {
		return s, nil
	}
	s, err := c.c.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fault(err)
	}
	c.stmts[query] = s
	return s, nil
}

// run executes a statement. The driver spends a goroutine per call on a context that can end, and an interrupt would hit
// whatever the connection does next; statements are short, so the context is checked before instead.
func (c *conn) run(ctx context.Context, query string, args ...any) error {
	_, err := c.Affect(ctx, query, args...)
	return err
}

// must is run for what has to be done whether or not the caller has gone.
func (c *conn) must(query string) error { return c.run(context.Background(), query) }

func (c *conn) Exec(ctx context.Context, refused func(store.Fault) error, query string, args ...any) error {
	err := c.run(ctx, query, args...)
	if err == nil || refused == nil {
		return err
	}
	var f store.Fault
	if errors.As(err, &f) {
		if better := refused(f); better != nil {
			return better
		}
	}
	return err
}

func (c *conn) Affect(ctx context.Context, query string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, fault(err)
	}
	return r.RowsAffected()
}

func (c *conn) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	r, err := s.QueryContext(context.Background(), args...)
	if err != nil {
		return nil, fault(err)
	}
	return rows{r}, nil
}

// rows names the faults of reading.
type rows struct{ *sql.Rows }

func (r rows) Err() error   { return fault(r.Rows.Err()) }
func (r rows) Close() error { return fault(r.Rows.Close()) }

// idle tells whether no transaction is open: one can be begun.
func (c *conn) idle() bool { return c.must("BEGIN") == nil && c.must("ROLLBACK") == nil }

// renew replaces the connection by a new one and throws the old one away, with whatever transaction it had open. If even
// that fails, every later call says so.
func (c *conn) renew() {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	c.stmts = map[string]*sql.Stmt{}
	_ = c.c.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool close it
	if fresh, err := c.db.Conn(context.Background()); err == nil {
		c.c = fresh
	}
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	if err := c.c.Close(); !errors.Is(err, sql.ErrConnDone) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
