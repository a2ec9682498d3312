package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/notify"
)

// DB is an open store. It wraps an [Engine] with Reeve's tables and queries.
type DB struct {
	engine           Engine
	ids              reeve.IDs
	sealer           sealer
	insertCallSQL    string // built once by buildInsertCall
	sqlCache         sqlTextCache
	supportsArrays   bool // a parameter can be an array, as on PostgreSQL; see rows.go
	skipped          skipLog
	uncertainCommits atomic.Int64 // see UncertainCommits
	announced        announcements
}

// Open migrates the engine's tables to the current schema and returns a DB. The key encrypts secrets and must be 32
// bytes long.
func Open(ctx context.Context, e Engine, key []byte) (*DB, error) {
	seal, err := newSealer(key)
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, e); err != nil {
		return nil, err
	}
	return &DB{engine: e, sealer: seal, insertCallSQL: buildInsertCall(e), supportsArrays: e.Name() == "postgres",
		announced: announcements{signal: notify.New(), set: map[Announcement]struct{}{}}}, nil
}

// Snap is a consistent, read-only view of the store.
type Snap struct {
	conn *guardedConn
	now  time.Time
	db   *DB
}

// Tx is a read-write transaction. It can do everything that a Snap can.
type Tx struct {
	Snap
	node      *nodeClock     // this node's counter; nil until lockNode reads it
	touched   []string       // the workspaces whose revision was incremented
	announced []Announcement // see Announce
}

// Now returns the time at which the transaction began.
func (s *Snap) Now() time.Time { return s.now }

// NewID returns a new id with the prefix.
func (s *Snap) NewID(prefix string) string { return s.db.ids.New(prefix, s.now) }

// Update runs f in one transaction and commits it. It may run f more than once.
//
// A statement that fails aborts the whole transaction, even if f ignores the error and returns nil. The Tx cannot be
// used after f has returned. Do not call Update or View inside f.
func (db *DB) Update(ctx context.Context, f func(*Tx) error) error {
	var announced []Announcement
	err := db.engine.Update(ctx, func(c Conn) error {
		g := &guardedConn{conn: c}
		defer func() { _ = g.close() }()
		tx := &Tx{Snap: Snap{conn: g, now: reeve.Now(), db: db}}
		if err := f(tx); err != nil {
			return err
		}
		announced = tx.announced
		return g.close()
	})
	if err == nil {
		db.announced.add(announced)
	}
	if why, ok := errors.AsType[Fault](err); ok && why.Kind == FaultUncertain {
		db.announced.add(announced)
		db.uncertainCommits.Add(1)
	}
	return UserError(err)
}

// UncertainCommits returns the number of commits since Open whose outcome is unknown. A claim made by such a commit may
// be stored although its caller saw an error. Workers search for such claims when the number has grown.
func (db *DB) UncertainCommits() int64 { return db.uncertainCommits.Load() }

// View runs f on one snapshot. The Snap cannot be used after f has returned.
func (db *DB) View(ctx context.Context, f func(*Snap) error) error {
	err := db.engine.View(ctx, func(c Conn) error {
		g := &guardedConn{conn: c}
		defer func() { _ = g.close() }()
		return f(&Snap{conn: g, now: reeve.Now(), db: db})
	})
	return UserError(err)
}

// NewID returns a new id with the prefix. Use it outside a transaction.
func (db *DB) NewID(prefix string) string { return db.ids.New(prefix, reeve.Now()) }

// Engine returns "sqlite" or "postgres".
func (db *DB) Engine() string { return db.engine.Name() }

// SingleProcess reports whether no other process can use this store.
func (db *DB) SingleProcess() bool { return db.engine.SingleProcess() }

// Backup writes a consistent copy of the database to a new file.
func (db *DB) Backup(ctx context.Context, file string) error {
	return UserError(db.engine.Backup(ctx, file))
}

// Close closes the engine.
func (db *DB) Close() error { return db.engine.Close() }

type txKey struct{}

// WithTx returns a context that passes tx to the handler of a local tool.
func WithTx(ctx context.Context, tx *Tx) context.Context { return context.WithValue(ctx, txKey{}, tx) }

// TxFrom returns the transaction that WithTx put into ctx. The effect of a local tool belongs to this transaction.
func TxFrom(ctx context.Context) (*Tx, error) {
	if tx, ok := ctx.Value(txKey{}).(*Tx); ok {
		return tx, nil
	}
	return nil, reeve.Errorf(reeve.Internal, "local tool was called outside a transaction")
}

// InTransaction reports whether ctx carries a transaction that is still open. Code that gets such a context must not
// wait for another transaction, because the two could deadlock.
func InTransaction(ctx context.Context) bool {
	tx, ok := ctx.Value(txKey{}).(*Tx)
	if !ok {
		return false
	}
	tx.conn.mu.Lock()
	defer tx.conn.mu.Unlock()
	return tx.conn.conn != nil
}

// guardedConn serializes the use of a Conn. It refuses all use after the transaction has ended or a statement has
// failed.
type guardedConn struct {
	mu       sync.Mutex
	conn     Conn
	failed   error
	timedOut bool // the statement that failed took at least slowStatement
}

// slowStatement is a duration that no statement takes unless the database has a problem.
const slowStatement = time.Second

// close ends the use of the transaction. It returns the error of the statement that failed, which the caller may have
// ignored.
func (g *guardedConn) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn = nil
	return g.failed
}

// run calls f with the connection, unless the transaction has ended or failed, or ctx is done.
func (g *guardedConn) run(ctx context.Context, f func(Conn) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		return reeve.Errorf(reeve.Canceled, "transaction has ended")
	}
	if g.failed != nil {
		return g.failed
	}
	g.failed = errAborted // in case f panics
	if err := ctx.Err(); err != nil {
		g.failed = err
	} else {
		began := reeve.Monotonic()
		g.failed = f(g.conn)
		g.timedOut = g.failed != nil && reeve.Since(began) >= slowStatement
	}
	return g.failed
}

// TimedOut reports whether the transaction failed on a slow statement. A handler that ran out of time in that
// transaction is not to blame.
func (t *Tx) TimedOut() bool {
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	return t.conn.timedOut
}

var errAborted = reeve.Errorf(reeve.Internal, "transaction was aborted")

// checkText refuses text that PostgreSQL cannot store, so that both engines store the same.
func checkText(args []any) error {
	for _, a := range args {
		switch a := a.(type) {
		case string:
			if !reeve.IsStorableText(a) {
				return errInvalidText
			}
		case []string:
			for _, s := range a {
				if !reeve.IsStorableText(s) {
					return errInvalidText
				}
			}
		}
	}
	return nil
}

var errInvalidText = reeve.Errorf(reeve.Validation, "text must be UTF-8 without NUL")

// emptyIfNil returns an empty slice for nil, because nil would be stored as NULL.
func emptyIfNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// exec runs a statement without waiting for its result.
func (t *Tx) exec(ctx context.Context, query string, args ...any) error {
	return t.execMapFault(ctx, nil, query, args...)
}

// execMapFault is like exec. If the engine refuses this statement, mapFault may return an error that replaces the
// fault.
func (t *Tx) execMapFault(ctx context.Context, mapFault func(Fault) error, query string, args ...any) error {
	if err := checkText(args); err != nil {
		return err
	}
	return t.conn.run(ctx, func(c Conn) error { return c.Exec(ctx, mapFault, query, args...) })
}

// execCount runs a statement and returns the number of rows that it changed.
func (t *Tx) execCount(ctx context.Context, query string, args ...any) (n int64, err error) {
	if err := checkText(args); err != nil {
		return 0, err
	}
	err = t.conn.run(ctx, func(c Conn) error {
		n, err = c.ExecCount(ctx, query, args...)
		return err
	})
	return n, err
}

// scanner is a row that can be scanned.
type scanner interface{ Scan(dest ...any) error }

// queryAll returns every row of a query.
func queryAll[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string, args ...any) ([]T,
	error) {
	list := []T{}
	if err := checkText(args); err != nil {
		return list, err
	}
	err := s.conn.run(ctx, func(c Conn) (err error) {
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() {
			if e := rows.Close(); err == nil {
				err = e
			}
		}()
		list, err = scanAll(rows, scan)
		return err
	})
	return list, err
}

// scanAll scans every row. It leaves out rows for which scan returns errSkipped.
func scanAll[T any](rows Rows, scan func(scanner) (T, error)) ([]T, error) {
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

// queueQuery is like queryAll, but does not wait. It sets into when the transaction is flushed or committed.
func queueQuery[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), into *[]T, query string,
	args ...any) error {
	if err := checkText(args); err != nil {
		return err
	}
	return s.conn.run(ctx, func(c Conn) error {
		return c.QueueQuery(ctx, func(rows Rows) (err error) {
			*into, err = scanAll(rows, scan)
			return err
		}, query, args...)
	})
}

// firstError returns the first error that is not nil. After the statement that aborts a transaction, later errors add
// no information.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// flush waits for all queued queries. It takes one round trip.
func (s *Snap) flush(ctx context.Context) error {
	return s.conn.run(ctx, func(c Conn) error { return c.Flush(ctx) })
}

// queryOne returns the first row of a query. It returns false if there is none.
func queryOne[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string,
	args ...any) (T, bool, error) {
	list, err := queryAll(ctx, s, scan, query, args...)
	if err != nil || len(list) == 0 {
		var zero T
		return zero, false, err
	}
	return list[0], true, nil
}

// scanValue scans a single column.
func scanValue[T any](r scanner) (T, error) {
	var v T
	return v, r.Scan(&v)
}

// notFound returns the error for an id that does not exist in the workspace.
func notFound(what, id string) error {
	return reeve.Errorf(reeve.NotFound, "%s %q not found", what, id)
}
