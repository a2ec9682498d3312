package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	"reeve/internal/store"
)

// conn is one connection with its prepared statements. Preparing costs a third of a short transaction, so each text is
// prepared once; the texts are constants of package store, so there are few.
type conn struct {
	db      *sql.DB
	c       *sql.Conn
	queries map[string]*query
	changes map[string]*change

	// interruptible has a query stopped when its context ends. Readers are; the writer is not, because an interrupted
	// statement would take the changes of the other callers in its group with it.
	interruptible bool
}

// query is a prepared statement that gives rows, with the order in which it takes its arguments.
type query struct {
	stmt  *sql.Stmt
	order []int
}

// change is one that gives none. It is the driver's own: what package sql does for each argument costs as much as
// binding it.
type change struct {
	stmt  driver.StmtExecContext
	order []int
	args  []driver.NamedValue // used again and again; a connection serves one at a time
}

func open(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, fault(err)
	}
	return &conn{db: db, c: c, queries: map[string]*query{}, changes: map[string]*change{}}, nil
}

func (c *conn) query(text string) (*query, error) {
	if q, ok := c.queries[text]; ok {
		return q, nil
	}
	plain, order := positional(text)
	s, err := c.c.PrepareContext(context.Background(), plain)
	if err != nil {
		return nil, fault(err)
	}
	q := &query{s, order}
	c.queries[text] = q
	return q, nil
}

func (c *conn) change(text string) (*change, error) {
	if p, ok := c.changes[text]; ok {
		return p, nil
	}
	plain, order := positional(text)
	p := &change{order: order, args: make([]driver.NamedValue, len(order))}
	for i := range p.args {
		p.args[i].Ordinal = i + 1
	}
	err := c.c.Raw(func(dc any) error {
		s, err := dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), plain)
		if err == nil {
			p.stmt = s.(driver.StmtExecContext)
		}
		return err
	})
	if err != nil {
		return nil, fault(err)
	}
	c.changes[text] = p
	return p, nil
}

// exec runs the statement and counts the rows it changed.
func (p *change) exec(c *conn, given []any) (n int64, err error) {
	for i, k := range p.order {
		switch v := given[k].(type) {
		case string, []byte, int64:
			p.args[i].Value = v
		case int:
			p.args[i].Value = int64(v)
		default:
			if p.args[i].Value, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return 0, err
			}
		}
	}
	err = c.c.Raw(func(any) error {
		r, err := p.stmt.ExecContext(context.Background(), p.args)
		if err == nil {
			n, err = r.RowsAffected()
		}
		return err
	})
	for i := range p.args {
		p.args[i].Value = nil // the caller's
	}
	return n, err
}

// positional turns $1 into a plain question mark, and says which argument each of them takes. A parameter with a name,
// which is what $1 is to SQLite, is looked up by the driver among all the others each time it is bound. A bare
// parameter as a LIMIT would be planned with, so that each new value has SQLite prepare the statement again; a sum is
// not looked into.
func positional(query string) (text string, order []int) {
	var b strings.Builder
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '\'': // text, up to the next quote; a doubled one begins another
			end := i + 1 + strings.IndexByte(query[i+1:], '\'')
			b.WriteString(query[i : end+1])
			i = end
		case '$':
			end := i + 1
			for end < len(query) && query[end] >= '0' && query[end] <= '9' {
				end++
			}
			n, err := strconv.Atoi(query[i+1 : end])
			if err != nil {
				panic("sqlite: " + query) // every text is ours
			}
			order = append(order, n-1)
			b.WriteByte('?')
			if strings.HasSuffix(query[:i], "LIMIT ") {
				b.WriteString("+0")
			}
			i = end - 1
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), order
}

// run executes a statement. The context is checked before the statement and not while it runs: statements that change
// something are short.
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
	p, err := c.change(query)
	if err != nil {
		return 0, err
	}
	n, err := p.exec(c, args)
	return n, fault(err)
}

func (c *conn) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := c.query(query)
	if err != nil {
		return nil, err
	}
	ordered := make([]any, len(q.order))
	for i, k := range q.order {
		ordered[i] = args[k]
	}
	until := context.Background()
	if c.interruptible {
		until = ctx
	}
	r, err := q.stmt.QueryContext(until, ordered...)
	if err != nil {
		return nil, fault(err)
	}
	return rows{r}, nil
}

// QueueQuery reads at once: nothing is won by waiting.
func (c *conn) QueueQuery(ctx context.Context, read func(store.Rows) error, query string, args ...any) error {
	r, err := c.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	err = read(r)
	if e := r.Close(); err == nil {
		err = e
	}
	return err
}

// Flush has nothing to wait for.
func (c *conn) Flush(context.Context) error { return nil }

// rows names the faults of reading.
type rows struct{ *sql.Rows }

// Scan fails with the failure of the whole result, if there is one: then the row is not at fault.
func (r rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil && r.Err() != nil {
		return r.Err()
	}
	return err
}

func (r rows) Err() error   { return fault(r.Rows.Err()) }
func (r rows) Close() error { return fault(r.Rows.Close()) }

// idle tells whether no transaction is open: one can be begun.
func (c *conn) idle() bool { return c.must("BEGIN") == nil && c.must("ROLLBACK") == nil }

// renew replaces the connection by a new one and throws the old one away, with whatever transaction it had open. If
// even that fails, every later call says so.
func (c *conn) renew() {
	_ = c.forget()
	_ = c.c.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool close it
	if fresh, err := c.db.Conn(context.Background()); err == nil {
		c.c = fresh
	}
}

// forget closes what was prepared.
func (c *conn) forget() error {
	var errs []error
	for _, q := range c.queries {
		errs = append(errs, q.stmt.Close())
	}
	for _, p := range c.changes {
		if err := c.c.Raw(func(any) error { return p.stmt.(driver.Stmt).Close() }); !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, err)
		}
	}
	clear(c.queries)
	clear(c.changes)
	return errors.Join(errs...)
}

func (c *conn) close() error {
	err := c.forget()
	if e := c.c.Close(); !errors.Is(e, sql.ErrConnDone) {
		err = errors.Join(err, e)
	}
	return err
}
