package postgres

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"reeve"
	"reeve/internal/store"
)

// conn is one transaction. Statements that nobody waits for are held back and sent together with the next one that somebody
// does wait for, or with the commit: a round trip costs as much as a statement.
type conn struct {
	engine *Engine
	lent   *pgxpool.Conn // taken from the pool when something is sent first
	c      *pgx.Conn
	begin  string // held back like the rest, until something is sent
	held   []statement
}

type statement struct {
	query   string
	args    []any
	refused func(store.Fault) error
	read    func(store.Rows) error // what is done with its rows, if it gives any
}

func (t *conn) Exec(ctx context.Context, refused func(store.Fault) error, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, a := range args { // the caller may use its buffer again before we send
		if b, ok := a.([]byte); ok {
			args[i] = bytes.Clone(b)
		}
	}
	t.held = append(t.held, statement{query: query, args: args, refused: refused})
	return nil
}

// Ask holds a question back like the rest.
func (t *conn) Ask(ctx context.Context, read func(store.Rows) error, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.held = append(t.held, statement{query: query, args: args, read: read})
	return nil
}

// Settle sends everything held.
func (t *conn) Settle(ctx context.Context) error {
	_, err := t.send(ctx, "")
	return err
}

func (t *conn) Affect(ctx context.Context, query string, args ...any) (n int64, err error) {
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
		_ = r.Close() // reports the same error
		return nil, t.fault(err)
	}
	return &rows{Rows: q, conn: t, batch: r}, nil
}

// commit sends what is held and ends the transaction. If nothing was sent before, all goes in one batch, which PostgreSQL
// runs as one transaction by itself. Once asked for, a commit is not interrupted: its outcome could not be told.
func (t *conn) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	query := "commit"
	if t.c == nil {
		query = ""
		if err := t.acquire(ctx); err != nil {
			return err
		}
		if held := t.held; postable(held) {
			t.held = nil
			return t.post(ctx, held)
		}
	}
	tag, err := t.send(ctx, query)
	if err == nil && tag.String() == "ROLLBACK" {
		err = store.Fault{Kind: store.FaultOther, Err: errors.New("the transaction had failed before its commit")}
	}
	return t.unsure(err)
}

// acquire takes a connection from the pool. That there is none for so long is the server's doing, and not the caller's, who may have all the time there is.
func (t *conn) acquire(ctx context.Context) (err error) {
	patient, cancel := context.WithTimeout(ctx, t.engine.haste.patience())
	defer cancel()
	if t.lent, err = t.engine.pool.Acquire(patient); err != nil {
		if ctx.Err() == nil && patient.Err() != nil {
			return store.Fault{Kind: store.FaultDown, Err: err}
		}
		return fault(err)
	}
	t.c = t.lent.Conn()
	return nil
}

// unsure tells whether a failed commit may have been made: when the connection broke before the server answered.
func (t *conn) unsure(err error) error {
	if err == nil || t.c == nil || !t.c.IsClosed() || pgconn.SafeToRetry(err) {
		return err
	}
	return store.Fault{Kind: store.FaultUnsure, Err: err}
}

// release ends the transaction, unless it has ended, and gives the connection back.
func (t *conn) release(ctx context.Context) {
	t.held = nil
	if t.lent != nil {
		t.rollback(ctx)
		t.engine.haste.leave(t)
		if t.hurry(0) != nil { // its caller went away as it was answered, and the socket is shut
			_ = t.c.Close(context.WithoutCancel(ctx)) // the pool drops a closed connection
		}
		t.lent.Release()
	}
}

func (t *conn) rollback(ctx context.Context) {
	if t.c.IsClosed() || t.c.PgConn().TxStatus() == 'I' && !t.c.PgConn().IsBusy() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, err := t.c.Exec(ctx, "rollback"); err != nil {
		_ = t.c.Close(ctx) // the pool drops a closed connection
	}
}

// send sends everything held, and then a statement if there is one, and waits for them.
func (t *conn) send(ctx context.Context, query string, args ...any) (tag pgconn.CommandTag, err error) {
	r, err := t.flush(ctx, query, args...)
	if err != nil || r == nil {
		return tag, err
	}
	if query != "" {
		if tag, err = r.Exec(); err != nil {
			_ = r.Close() // reports the same error
			return tag, t.fault(err)
		}
	}
	return tag, t.settled(r.Close()) // where a batch that is its own transaction says how its commit went
}

// hurry gives the server its time to answer. A deadline costs less than a context that ends, for which pgx starts a goroutine.
func (t *conn) hurry(d time.Duration) error {
	at := time.Time{}
	if d > 0 {
		at = reeve.Now().Add(d)
	}
	return t.c.PgConn().Conn().SetDeadline(at)
}

// settled takes the deadline back once all was answered.
func (t *conn) settled(err error) error {
	if err == nil {
		t.engine.haste.leave(t)
		_ = t.hurry(0) // what was answered counts, whatever became of the connection since
	}
	return t.fault(err)
}

// flush sends everything held, and then a statement if there is one, in one round trip, and reads up to that statement. There
// is no answer to read if there was nothing to send.
func (t *conn) flush(ctx context.Context, query string, args ...any) (pgx.BatchResults, error) {
	b := &pgx.Batch{}
	begins := t.begin != ""
	if begins {
		b.Queue(t.begin)
		t.begin = ""
	}
	held := t.held
	t.held = nil
	for _, s := range held {
		b.Queue(s.query, s.args...)
	}
	if query != "" {
		b.Queue(query, args...)
	}
	if b.Len() == 0 {
		return nil, nil
	}
	if t.c == nil {
		if err := t.acquire(ctx); err != nil {
			return nil, err
		}
	}
	_ = t.hurry(t.engine.haste.enter(t)) // one that is shut says so itself
	r := t.c.SendBatch(ctx, b)
	if begins {
		if _, err := r.Exec(); err != nil {
			_ = r.Close()
			return nil, t.fault(err)
		}
	}
	for _, s := range held {
		if err := t.answer(r, s); err != nil {
			_ = r.Close()
			return nil, s.judge(t.fault(err))
		}
	}
	return r, nil
}

// answer reads what a statement of a batch gave.
func (t *conn) answer(r pgx.BatchResults, s statement) error {
	if s.read == nil {
		_, err := r.Exec()
		return err
	}
	q, err := r.Query()
	if err != nil {
		return err
	}
	err = s.read(&answered{q, t})
	q.Close()
	if e := q.Err(); e != nil {
		err = e
	}
	return err
}

// answered is rows of a batch that goes on.
type answered struct {
	pgx.Rows
	conn *conn
}

func (r *answered) Err() error { return r.conn.fault(r.Rows.Err()) }

func (r *answered) Close() error {
	r.Rows.Close()
	return r.Err()
}

// fault is the package's fault with what the connection itself knows: that it broke.
func (t *conn) fault(err error) error {
	err = fault(err)
	var f store.Fault
	if errors.As(err, &f) && f.Kind == store.FaultOther && t.c != nil && t.c.IsClosed() {
		return store.Fault{Kind: store.FaultDown, Err: f.Err}
	}
	return err
}

func (s statement) judge(err error) error {
	var f store.Fault
	if s.refused != nil && errors.As(err, &f) {
		if better := s.refused(f); better != nil {
			return better
		}
	}
	return err
}

// rows ends its batch when it is closed.
type rows struct {
	pgx.Rows
	conn  *conn
	batch pgx.BatchResults
}

func (r *rows) Err() error { return r.conn.fault(r.Rows.Err()) }

func (r *rows) Close() error {
	r.Rows.Close()
	if err := r.Rows.Err(); err != nil {
		_ = r.batch.Close()
		return r.conn.fault(err)
	}
	return r.conn.settled(r.batch.Close())
}
