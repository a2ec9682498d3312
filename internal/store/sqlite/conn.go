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

// conn is one connection with its prepared statements. Preparing costs a third of a short transaction, so each SQL
// text is prepared once. There are few SQL texts, because they are constants of package store.
type conn struct {
	db      *sql.DB
	c       *sql.Conn
	queries map[string]*preparedQuery
	execs   map[string]*preparedExec

	// interruptible makes a query stop when its context is done. It is false for the writer, because an interrupted
	// statement would roll back the changes of the other callers in its group.
	interruptible bool
}

// preparedQuery is a prepared statement that returns rows, with the order of its arguments.
type preparedQuery struct {
	stmt  *sql.Stmt
	order []int
}

// preparedExec is a prepared statement that returns no rows, with the order of its arguments. It uses the driver
// directly, because database/sql's conversion costs as much for each argument as binding it.
type preparedExec struct {
	stmt  driver.StmtExecContext
	order []int
	args  []driver.NamedValue // reused by each call; a connection serves one call at a time
}

func openConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return nil, toFault(err)
	}
	return &conn{db: db, c: c, queries: map[string]*preparedQuery{}, execs: map[string]*preparedExec{}}, nil
}

func (c *conn) prepareQuery(text string) (*preparedQuery, error) {
	if q, ok := c.queries[text]; ok {
		return q, nil
	}
	plain, order := toPositional(text)
	s, err := c.c.PrepareContext(context.Background(), plain)
	if err != nil {
		return nil, toFault(err)
	}
	q := &preparedQuery{s, order}
	c.queries[text] = q
	return q, nil
}

func (c *conn) prepareExec(text string) (*preparedExec, error) {
	if p, ok := c.execs[text]; ok {
		return p, nil
	}
	plain, order := toPositional(text)
	p := &preparedExec{order: order, args: make([]driver.NamedValue, len(order))}
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
		return nil, toFault(err)
	}
	c.execs[text] = p
	return p, nil
}

// exec runs the statement and returns the number of rows that it changed.
func (p *preparedExec) exec(c *conn, args []any) (n int64, err error) {
	for i, k := range p.order {
		switch v := args[k].(type) {
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
		p.args[i].Value = nil // do not retain the caller's values
	}
	return n, err
}

// toPositional replaces each $n by ? and returns the index of the argument for each ?. For SQLite, $n is a named
// parameter, which the driver searches among all others on each bind. A ? after LIMIT becomes ?+0. Otherwise SQLite
// would plan with the value and prepare the statement again for each new value.
func toPositional(query string) (text string, order []int) {
	var b strings.Builder
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '\'': // a string literal; a doubled quote begins another
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
				panic("sqlite: " + query) // a bug: all texts are constants
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

// run executes a statement. It checks the context only before the statement, because statements that change data are
// short.
func (c *conn) run(ctx context.Context, query string, args ...any) error {
	_, err := c.ExecCount(ctx, query, args...)
	return err
}

// runUncanceled is run for a statement that must be executed even if the caller is gone.
func (c *conn) runUncanceled(query string) error { return c.run(context.Background(), query) }

func (c *conn) Exec(ctx context.Context, mapFault func(store.Fault) error, query string, args ...any) error {
	err := c.run(ctx, query, args...)
	if err == nil || mapFault == nil {
		return err
	}
	var f store.Fault
	if errors.As(err, &f) {
		if mapped := mapFault(f); mapped != nil {
			return mapped
		}
	}
	return err
}

func (c *conn) ExecCount(ctx context.Context, query string, args ...any) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	p, err := c.prepareExec(query)
	if err != nil {
		return 0, err
	}
	n, err := p.exec(c, args)
	return n, toFault(err)
}

func (c *conn) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := c.prepareQuery(query)
	if err != nil {
		return nil, err
	}
	ordered := make([]any, len(q.order))
	for i, k := range q.order {
		ordered[i] = args[k]
	}
	queryCtx := context.Background()
	if c.interruptible {
		queryCtx = ctx
	}
	r, err := q.stmt.QueryContext(queryCtx, ordered...)
	if err != nil {
		return nil, toFault(err)
	}
	return rows{r}, nil
}

// QueueQuery reads the rows at once, because there is no round trip to save.
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

// Flush does nothing, because no statement is queued.
func (c *conn) Flush(context.Context) error { return nil }

// rows classifies the errors of reading.
type rows struct{ *sql.Rows }

// Scan returns the error of the whole result if there is one, because then the row is not at fault.
func (r rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil && r.Err() != nil {
		return r.Err()
	}
	return err
}

func (r rows) Err() error   { return toFault(r.Rows.Err()) }
func (r rows) Close() error { return toFault(r.Rows.Close()) }

// isIdle reports whether no transaction is open.
func (c *conn) isIdle() bool {
	return c.runUncanceled("BEGIN") == nil && c.runUncanceled("ROLLBACK") == nil
}

// renew replaces the connection by a new one and closes the old one, which rolls back its transaction. If no new
// connection can be opened, later calls fail.
func (c *conn) renew() {
	_ = c.closeStatements()
	_ = c.c.Raw(func(any) error { return driver.ErrBadConn }) // makes the pool close it
	if fresh, err := c.db.Conn(context.Background()); err == nil {
		c.c = fresh
	}
}

// closeStatements closes the prepared statements.
func (c *conn) closeStatements() error {
	var errs []error
	for _, q := range c.queries {
		errs = append(errs, q.stmt.Close())
	}
	for _, p := range c.execs {
		if err := c.c.Raw(func(any) error { return p.stmt.(driver.Stmt).Close() }); !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, err)
		}
	}
	clear(c.queries)
	clear(c.execs)
	return errors.Join(errs...)
}

func (c *conn) close() error {
	err := c.closeStatements()
	if e := c.c.Close(); !errors.Is(e, sql.ErrConnDone) {
		err = errors.Join(err, e)
	}
	return err
}
