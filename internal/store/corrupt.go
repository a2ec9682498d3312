package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"reeve"
)

// ErrCorruptRow is the error of a query that cannot decode a row. Queries return it wrapped in a reeve.Error with the
// code reeve.Corrupt, except those that skip corrupt rows; see skipCorrupt.
type ErrCorruptRow struct {
	Table string
	ID    string // the row's key or a part of it; empty if it cannot be read
	Err   error  // why the row cannot be decoded
}

// Error names the row and the column, but not the value, which may be a secret.
func (e *ErrCorruptRow) Error() string {
	problem := "a column has a value of the wrong type"
	if c, ok := errors.AsType[*columnError](e.Err); ok {
		problem = c.Error()
	}
	return fmt.Sprintf("row %q in table %s cannot be read: %s", e.ID, e.Table, problem)
}

// Unwrap returns the reason why the row cannot be decoded.
func (e *ErrCorruptRow) Unwrap() error { return e.Err }

// columnError describes the problem with a column of a row.
type columnError struct {
	column, problem string
}

func (e *columnError) Error() string { return e.column + " " + e.problem }

// wrapCorrupt converts a decoding error to an ErrCorruptRow. It leaves errors of the database unchanged. Functions that
// scan a row defer it.
func wrapCorrupt(table string, id *string, err *error) {
	if *err != nil {
		*err = corruptError(table, *id, *err)
	}
}

// corruptError returns an ErrCorruptRow in a reeve.Error. It returns err itself if err is a Fault, a context error or
// an ErrCorruptRow already.
func corruptError(table, id string, err error) error {
	var known *ErrCorruptRow
	var fault Fault
	if errors.As(err, &known) || errors.As(err, &fault) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	row := &ErrCorruptRow{Table: table, ID: id, Err: err}
	return &reeve.Error{Code: reeve.Corrupt, Op: "store", Message: row.Error(), Err: row,
		Hint: "run reeve doctor as an administrator; it lists the corrupt rows and what to do"}
}

// AsCorruptRow returns the ErrCorruptRow in err, and whether there is one.
func AsCorruptRow(err error) (*ErrCorruptRow, bool) { return errors.AsType[*ErrCorruptRow](err) }

// errSkipped makes a query leave out the row that was scanned.
var errSkipped = errors.New("row is skipped")

// skipCorrupt returns a scan function that skips corrupt rows. It logs each of them once and, unless skipped is nil,
// adds its id to skipped.
//
// Only queries that serve the whole server skip rows, so that one corrupt row does not block all other work. These are
// the queries of the scheduler, of the workers that claim work, of the end of runs, of the gate's tool catalogue and of
// authentication.
func skipCorrupt[T any](s *Snap, scan func(scanner) (T, error), skipped *[]string) func(scanner) (T, error) {
	return func(r scanner) (T, error) {
		v, err := scan(r)
		if row, ok := AsCorruptRow(err); ok {
			s.db.skipped.log(row)
			if skipped != nil {
				*skipped = append(*skipped, row.ID)
			}
			return v, errSkipped
		}
		return v, err
	}
}

// skipLog logs each skipped row once.
type skipLog struct {
	mu     sync.Mutex
	logger *slog.Logger
	seen   map[[2]string]bool // by table and id
}

func (l *skipLog) log(row *ErrCorruptRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{row.Table, row.ID}
	if l.logger == nil || l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[[2]string]bool{}
	}
	l.seen[key] = true
	l.logger.Error("skipped corrupt row", "table", row.Table, "id", row.ID, "error", row.Err)
}

// SetLogger sets the logger for skipped rows.
func (db *DB) SetLogger(log *slog.Logger) {
	db.skipped.mu.Lock()
	defer db.skipped.mu.Unlock()
	db.skipped.logger = log
}

// dueRow returns a function that scans the key of a row and its due time.
func dueRow(table string) func(scanner) (int64, error) {
	return func(r scanner) (at int64, err error) {
		var id string
		defer wrapCorrupt(table, &id, &err)
		return at, r.Scan(&id, &at)
	}
}
