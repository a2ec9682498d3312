package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"reeve/internal/store"
)

// conn is one transaction. It queues statements whose result is not needed yet and sends them in one pgx.Batch with
// the next statement whose result is needed, or with the commit.
type conn struct {
	engine   *Engine
	start    []string      // statements that begin the transaction, sent with the first batch
	borrowed *pgxpool.Conn // nil until the first batch is sent
	queued   []statement
}

// statement is a queued statement. If read is not nil, it reads the statement's rows.
type statement struct {
	query    string
	args     []any
	mapFault func(store.Fault) error
	read     func(store.Rows) error
}

func (t *conn) Exec(ctx context.Context, mapFault func(store.Fault) error, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, a := range args { // the caller may reuse its buffer before the batch is sent
		if b, ok := a.([]byte); ok {
			args[i] = bytes.Clone(b)
		}
	}
	t.queued = append(t.queued, statement{query: query, args: args, mapFault: mapFault})
	return nil
}

// QueueQuery queues the query and its reader.
func (t *conn) QueueQuery(ctx context.Context, read func(store.Rows) error, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.queued = append(t.queued, statement{query: query, args: args, read: read})
	return nil
}

func (t *conn) Flush(ctx context.Context) error {
	_, err := t.send(ctx, "")
	return err
}

func (t *conn) ExecCount(ctx context.Context, query string, args ...any) (int64, error) {
	tag, err := t.send(ctx, query, args...)
	return tag.RowsAffected(), err
}

func (t *conn) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	r, err := t.flush(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	q, err := r.Query()
	if err != nil {
		_ = r.close() // reports the same error
		return nil, r.fault(err)
	}
	return &rows{Rows: q, reply: r}, nil
}

// commit sends the queued statements and commits. If nothing was sent before, all statements go in one batch without
// begin and commit, which PostgreSQL runs as one transaction. The caller's cancellation does not interrupt a commit,
// because its outcome would be unknown.
func (t *conn) commit(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	query := "commit"
	if t.borrowed == nil {
		t.start, query = t.engine.startStatements(), ""
		if err := t.acquire(ctx); err != nil {
			return err
		}
	}
	tag, err := t.send(ctx, query)
	if err == nil && tag.String() == "ROLLBACK" {
		err = store.Fault{Kind: store.FaultOther, Err: errors.New("transaction failed before its commit")}
	}
	if err != nil && t.broken() && !pgconn.SafeToRetry(err) {
		// the server may have committed before the connection broke
		return store.Fault{Kind: store.FaultUncertain, Err: err}
	}
	return err
}

// acquire gets a connection from the pool. It returns a FaultDown if there is none within the engine's timeout.
func (t *conn) acquire(ctx context.Context) error {
	limited, cancel := t.engine.withTimeout(ctx)
	defer cancel()
	c, err := t.engine.pool.Acquire(limited)
	if err == nil {
		t.borrowed = c
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f, ok := asFault(toFault(err)); ok && f.Kind != store.FaultOther {
		return f
	}
	return store.Fault{Kind: store.FaultDown, Err: err}
}

// broken reports whether the transaction's connection is closed.
func (t *conn) broken() bool { return t.borrowed != nil && t.borrowed.Conn().IsClosed() }

// release rolls back the transaction unless it has ended, and returns the connection to the pool, which drops closed
// connections.
func (t *conn) release(ctx context.Context) {
	t.queued = nil
	if t.borrowed == nil {
		return
	}
	defer t.borrowed.Release()
	c := t.borrowed.Conn()
	if c.IsClosed() || c.PgConn().TxStatus() == 'I' && !c.PgConn().IsBusy() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := c.Exec(ctx, "rollback"); err != nil {
		_ = c.Close(ctx)
	}
}

// send sends the queued statements, and then query unless it is empty, and waits for their results.
func (t *conn) send(ctx context.Context, query string, args ...any) (tag pgconn.CommandTag, err error) {
	r, err := t.flush(ctx, query, args...)
	if err != nil || r == nil {
		return tag, err
	}
	if query != "" {
		if tag, err = r.Exec(); err != nil {
			_ = r.close() // reports the same error
			return tag, r.fault(err)
		}
	}
	return tag, r.close() // reports a failed commit of a batch that is its own transaction
}

// flush sends the queued statements, and then query unless it is empty, in one round trip. It reads the results of the
// queued statements. The reply is nil if there was nothing to send. Otherwise the caller closes it.
func (t *conn) flush(ctx context.Context, query string, args ...any) (*reply, error) {
	b := &pgx.Batch{}
	start, queued := t.start, t.queued
	t.start, t.queued = nil, nil
	for _, s := range start {
		b.Queue(s)
	}
	for _, s := range queued {
		b.Queue(s.query, s.args...)
	}
	if query != "" {
		b.Queue(query, args...)
	}
	if b.Len() == 0 {
		return nil, nil
	}
	if t.borrowed == nil {
		if err := t.acquire(ctx); err != nil {
			return nil, err
		}
	}
	limited, cancel := t.engine.withTimeout(ctx)
	r := &reply{BatchResults: t.borrowed.Conn().SendBatch(limited, b), conn: t, ctx: ctx, cancel: cancel}
	for range start {
		if _, err := r.Exec(); err != nil {
			_ = r.close()
			return nil, r.fault(err)
		}
	}
	for _, s := range queued {
		if err := r.read(s); err != nil {
			_ = r.close()
			return nil, s.mapError(r.fault(err))
		}
	}
	return r, nil
}

// mapError lets the statement's mapFault replace its error.
func (s statement) mapError(err error) error {
	if f, ok := asFault(err); ok && s.mapFault != nil {
		if mapped := s.mapFault(f); mapped != nil {
			return mapped
		}
	}
	return err
}

// reply is the response to one batch.
type reply struct {
	pgx.BatchResults
	conn   *conn
	ctx    context.Context // the caller's, without the engine's timeout
	cancel context.CancelFunc
}

// read reads the result of a queued statement.
func (r *reply) read(s statement) error {
	if s.read == nil {
		_, err := r.Exec()
		return err
	}
	q, err := r.Query()
	if err != nil {
		return err
	}
	err = s.read(&queuedRows{q, r})
	q.Close()
	if e := q.Err(); e != nil {
		err = e
	}
	return err
}

func (r *reply) close() error {
	defer r.cancel()
	return r.fault(r.BatchResults.Close())
}

// fault classifies an error. It returns a FaultDown if the engine's timeout expired or the connection broke.
func (r *reply) fault(err error) error {
	if r.ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return store.Fault{Kind: store.FaultDown, Err: err}
	}
	err = toFault(err)
	if f, ok := asFault(err); ok && f.Kind == store.FaultOther && r.conn.broken() {
		return store.Fault{Kind: store.FaultDown, Err: f.Err}
	}
	return err
}

// rows are the rows of a batch's last statement. Closing them ends the batch.
type rows struct {
	pgx.Rows
	reply *reply
}

func (r *rows) Err() error { return r.reply.fault(r.Rows.Err()) }

func (r *rows) Close() error {
	r.Rows.Close()
	err := r.Err()
	if e := r.reply.close(); err == nil {
		err = e
	}
	return err
}

// queuedRows are the rows of a queued statement. The batch continues after them.
type queuedRows struct {
	pgx.Rows
	reply *reply
}

func (r *queuedRows) Err() error { return r.reply.fault(r.Rows.Err()) }

func (r *queuedRows) Close() error {
	r.Rows.Close()
	return r.Err()
}
