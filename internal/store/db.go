package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
)

// DB is an open store.
type DB struct {
	engine  Engine
	ids     reeve.IDs
	seal    sealer
	newCall string // put together once
	texts   statements
	arrays  bool // a parameter can be a list, as on PostgreSQL; see rows.go
	skipped skipLog
	unsure  atomic.Int64 // see Unsure
}

// Open wraps an engine and brings its tables up to date. The key seals secrets; it must be 32 bytes.
func Open(ctx context.Context, e Engine, key []byte) (*DB, error) {
	seal, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, e); err != nil {
		return nil, err
	}
	return &DB{engine: e, seal: seal, newCall: newCall(e), arrays: e.Name() == "postgres"}, nil
}

// Snap is a consistent view of the store.
type Snap struct {
	conn *guarded
	now  time.Time
	db   *DB
}

// Tx is a transaction: all that a Snap can, and writing.
type Tx struct {
	Snap
	node    *nodeClock // this node's counter, once it was asked for
	touched []string   // workspaces; see Touch
}

// Now is the time of the transaction, the same throughout.
func (s *Snap) Now() time.Time { return s.now }

// NewID issues an id.
func (s *Snap) NewID(prefix string) string { return s.db.ids.New(prefix, s.now) }

// Update runs f in one transaction. Once f has returned its Tx is dead: a handler that was left behind can do no harm
// with it. A statement that failed takes the whole transaction with it, even if f goes on and returns nil: PostgreSQL
// would have it no other way, and half a change is never what was meant. Do not call Update or View inside f.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	err := db.engine.Update(ctx, func(c Conn) error {
		g := &guarded{conn: c}
		defer func() { _ = g.end() }()
		if err := f(&Tx{Snap: Snap{conn: g, now: reeve.Now(), db: db}}); err != nil {
			return err
		}
		return g.end()
	})
	if why, ok := errors.AsType[Fault](err); ok && why.Kind == FaultUnsure {
		db.unsure.Add(1)
	}
	return UserError(err)
}

// UncertainCommits counts the commits of which nobody can tell whether they were made. What one of them put into this
// process's hands is in nobody's: whoever looks for such things does so when it has grown.
func (db *DB) UncertainCommits() int64 { return db.unsure.Load() }

// View runs f on one snapshot.
func (db *DB) View(ctx context.Context, f func(*Snap) error) error {
	err := db.engine.View(ctx, func(c Conn) error {
		g := &guarded{conn: c}
		defer func() { _ = g.end() }()
		return f(&Snap{conn: g, now: reeve.Now(), db: db})
	})
	return UserError(err)
}

// NewID issues an id outside a transaction.
func (db *DB) NewID(prefix string) string { return db.ids.New(prefix, reeve.Now()) }

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return db.engine.Name() }

// SingleProcess tells whether no other process can be using this store.
func (db *DB) SingleProcess() bool { return db.engine.SingleProcess() }

// Backup writes a consistent copy to a new file.
func (db *DB) Backup(ctx context.Context, file string) error {
	return UserError(db.engine.Backup(ctx, file))
}

// Close ends the store.
func (db *DB) Close() error { return db.engine.Close() }

type txKey struct{}

// WithTx lends a transaction to a local tool's handler.
func WithTx(ctx context.Context, tx *Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// TxFrom gives the transaction that a local tool's effect belongs to.
func TxFrom(ctx context.Context) (*Tx, error) {
	if tx, ok := ctx.Value(txKey{}).(*Tx); ok {
		return tx, nil
	}
	return nil, reeve.Errorf(reeve.Internal, "a local tool was called outside a transaction")
}

// InTransaction tells whether a context is lent by a transaction that is not over: who waited for another one with it
// could wait for ever.
func InTransaction(ctx context.Context) bool {
	tx, ok := ctx.Value(txKey{}).(*Tx)
	if !ok {
		return false
	}
	tx.conn.mu.Lock()
	defer tx.conn.mu.Unlock()
	return tx.conn.conn != nil
}

// guarded serves one goroutine at a time, and nobody once the transaction is over or a statement of it has failed.
type guarded struct {
	mu      sync.Mutex
	conn    Conn
	failed  error
	stalled bool // the statement that failed had no answer for long
}

// stall is how long a statement of ours never takes, unless the store is in trouble.
const stall = time.Second

// end closes the transaction to further use and gives the failure that nobody may have heeded.
func (g *guarded) end() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = nil
	return g.failed
}

func (g *guarded) use(ctx context.Context, f func(Conn) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return reeve.Errorf(reeve.Canceled, "the transaction is over")
	}
	if g.failed != nil {
		return g.failed
	}
	g.failed = errFailed // until f has returned: it may panic
	if err := ctx.Err(); err != nil {
		g.failed = err
	} else {
		began := reeve.Monotonic()
		g.failed = f(g.conn)
		g.stalled = g.failed != nil && reeve.Since(began) >= stall
	}
	return g.failed
}

// TimedOut tells whether the transaction failed waiting for the store: whoever ran out of time meanwhile did not take
// it.
func (t *Tx) TimedOut() bool {
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	return t.conn.stalled
}

var errFailed = reeve.Errorf(reeve.Internal, "the transaction was abandoned")

// checkText refuses text that PostgreSQL cannot hold, so that both engines hold the same.
func checkText(args []any) error {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			if !reeve.IsStorableText(a) {
				return errText
			}
		case []string:
			for _, s := range a {
				if !reeve.IsStorableText(s) {
					return errText
				}
			}
		}
	}
	return nil
}

var errText = reeve.Errorf(reeve.Validation, "text must be UTF-8 without NUL")

// some makes an empty slice of a nil one, which would be NULL.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// exec runs a statement nobody waits for.
func (t *Tx) exec(ctx context.Context, query string, args ...any) error {
	return t.execOr(ctx, nil, query, args...)
}

// execOr is exec with a meaning for this statement's refusal.
func (t *Tx) execOr(ctx context.Context, refused func(Fault) error, query string, args ...any) error {
	if err := checkText(args); err != nil {
		return err
	}
	return t.conn.use(ctx, func(c Conn) error { return c.Exec(ctx, refused, query, args...) })
}

// affect runs a statement and counts the rows it changed.
func (t *Tx) affect(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := checkText(args); err != nil {
		return 0, err
	}
	err = t.conn.use(ctx, func(c Conn) error {
		n, err = c.Affect(ctx, query, args...)
		return err
	})
	return n, err
}

// scanner is what a row is read from.
type scanner interface{ Scan(dest ...any) error }

// all reads every row of a query.
func all[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string, args ...any) ([]T, error) {
	list := []T{}
	if err := checkText(args); err != nil {
		return list, err
	}
	err := s.conn.use(ctx, func(c Conn) (err error) {
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() {
			if e := rows.Close(); err == nil {
				err = e
			}
		}()
		list, err = scanned(rows, scan)
		return err
	})
	return list, err
}

func scanned[T any](rows Rows, scan func(scanner) (T, error)) ([]T, error) {
	list := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err == errSkipped {
			continue
		}
		if err != nil {
			return list, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// ask is all for somebody who can wait: the list is there once the transaction was settled, or is committed.
func ask[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), into *[]T, query string,
	args ...any) error {
	if err := checkText(args); err != nil {
		return err
	}
	return s.conn.use(ctx, func(c Conn) error {
		return c.QueueQuery(ctx, func(rows Rows) (err error) {
			*into, err = scanned(rows, scan)
			return err
		}, query, args...)
	})
}

// first is the first of some errors: after the one that failed a transaction, the others say nothing new.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// settle waits for what was asked: all of it in one round trip.
func (s *Snap) settle(ctx context.Context) error {
	return s.conn.use(ctx, func(c Conn) error { return c.Flush(ctx) })
}

// one reads the first row of a query; false means there is none.
func one[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string,
	args ...any) (T, bool, error) {
	list, err := all(ctx, s, scan, query, args...)
	if err != nil || len(list) == 0 {
		var zero T
		return zero, false, err
	}
	return list[0], true, nil
}

// value scans a single column.
func value[T any](r scanner) (T, error) {
	var v T
	return v, r.Scan(&v)
}

// notFound says that an id is not there. Ids of other workspaces are not there either.
func notFound(what, id string) error {
	return reeve.Errorf(reeve.NotFound, "%s %q not found", what, id)
}
