package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"reeve"
)

// ErrCorruptRow is the error of a query that met a row it cannot decode. Every query returns it, wrapped in a
// reeve.Error of code reeve.Corrupt, except those that skip such rows; see skipCorrupt.
type ErrCorruptRow struct {
	Table string
	ID    string // the row's key, or the part of it that tells the row apart for a person; empty if it cannot be read
	Err   error  // why the row cannot be decoded
}

// Error names the row and the column, but not what the column holds: that may be a secret.
func (e *ErrCorruptRow) Error() string {
	why := "a column holds a value of another type"
	if c, ok := errors.AsType[*columnError](e.Err); ok {
		why = c.Error()
	}
	return fmt.Sprintf("row %q in table %s cannot be read: %s", e.ID, e.Table, why)
}

// Unwrap returns why the row cannot be decoded.
func (e *ErrCorruptRow) Unwrap() error { return e.Err }

// columnError says what is wrong with a column of a row.
type columnError struct {
	column, wrong string
}

func (e *columnError) Error() string { return e.column + " " + e.wrong }

// wrapCorrupt is deferred by the function that scans a row of a table. It turns a failure to decode the row into an
// ErrCorruptRow; a failure of the database stays as it is.
func wrapCorrupt(table string, id *string, err *error) {
	if *err != nil {
		*err = corrupt(table, *id, *err)
	}
}

func corrupt(table, id string, err error) error {
	var known *ErrCorruptRow
	var fault Fault
	if errors.As(err, &known) || errors.As(err, &fault) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	row := &ErrCorruptRow{Table: table, ID: id, Err: err}
	return &reeve.Error{Code: reeve.Corrupt, Op: "store", Message: row.Error(), Err: row,
		Hint: "an administrator runs reeve doctor, which lists every such row and says what to do"}
}

// AsCorruptRow returns the ErrCorruptRow in err; false means that err has another cause.
func AsCorruptRow(err error) (*ErrCorruptRow, bool) { return errors.AsType[*ErrCorruptRow](err) }

// errSkipped makes a query go on without the row that was scanned.
var errSkipped = errors.New("the row is skipped")

// skipCorrupt makes a scan skip rows that cannot be decoded. Each is logged once, and its id is added to skipped unless
// that is nil.
//
// Only queries that work for everybody skip rows, so that one corrupt row does not hold up all other work: those of the
// scheduler, of the loops that claim work, of the end of runs, of the gate's tool catalogue, and of authentication.
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
	mu   sync.Mutex
	to   *slog.Logger
	seen map[[2]string]bool // by table and id
}

func (l *skipLog) log(row *ErrCorruptRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]string{row.Table, row.ID}
	if l.to == nil || l.seen[key] {
		return
	}
	if l.seen == nil {
		l.seen = map[[2]string]bool{}
	}
	l.seen[key] = true
	l.to.Error("a row of the database cannot be read and is skipped", "table", row.Table, "id", row.ID, "error",
		row.Err)
}

// LogTo sets where rows that are skipped are logged.
func (db *DB) LogTo(log *slog.Logger) {
	db.skipped.mu.Lock()
	defer db.skipped.mu.Unlock()
	db.skipped.to = log
}

// dueRow scans the key of a row of a table, and when it is due.
func dueRow(table string) func(scanner) (int64, error) {
	return func(r scanner) (at int64, err error) {
		var id string
		defer wrapCorrupt(table, &id, &err)
		return at, r.Scan(&id, &at)
	}
}
