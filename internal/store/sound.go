package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"sync"

	"reeve"
)

// A row that cannot be read is left out where that grants nothing: of what is due and of what is shown. It would otherwise hold up everybody's work, and hide all that is beside it. It
// is never left out of what limits somebody, such as budgets and profiles, or of what has to be ended.

// Spoilt is a row that was left out.
type Spoilt struct {
	Table string
	ID    string // empty if not even that can be read
	Why   string
}

func (s Spoilt) String() string {
	return "a row of " + s.Table + " (" + cmp.Or(s.ID, "whose id cannot be read") + "): " + s.Why
}

// mostSpoilt bounds how many rows are remembered.
const mostSpoilt = 100

// spoilage is what was left out since the store was opened.
type spoilage struct {
	mu   sync.Mutex
	log  *slog.Logger
	rows []Spoilt
}

func (s *spoilage) note(row Spoilt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rows) == mostSpoilt || slices.Contains(s.rows, row) {
		return
	}
	s.rows = append(s.rows, row)
	if s.log != nil {
		s.log.Error("a row of the database is damaged, and is left out", "table", row.Table, "id", row.ID, "error", err)
	}
}

// Spoilt gives the rows that were left out since the store was opened, the first hundred of them.
func (db *DB) Spoilt() []Spoilt {
	db.spoilt.mu.Lock()
	defer db.spoilt.mu.Unlock()
	return slices.Clone(db.spoilt.rows)
}

// LogTo says where each row that is left out is named, once.
func (db *DB) LogTo(log *slog.Logger) {
	db.spoilt.mu.Lock()
	defer db.spoilt.mu.Unlock()
	db.spoilt.log = log
}

// errLeftOut is what a scan says of a row that is to be passed over.
var errLeftOut = reeve.Errorf(reeve.Internal, "a row was left out")

// sound is a scan that leaves out rows of a table that cannot be read because of what is in them. The first column is taken for the id.
func sound[T any](s *Snap, table string, scan func(scanner) (T, error)) func(scanner) (T, error) {
	return soundBut(s, table, scan, func(string) {})
}

// soundBut is sound for somebody who is told which rows were left out.
func soundBut[T any](s *Snap, table string, scan func(scanner) (T, error), left func(id string)) func(scanner) (T, error) {
	return func(r scanner) (T, error) {
		table, row := table, reading{row: r}
		v, err := scan(&row)
		if err == nil || row.failed {
			return v, err
		}
		if in, ok := errors.AsType[inTable](err); ok {
			table = in.table
		}
		s.db.spoilt.note(Spoilt{table, row.id, unreadable(err)}, err)
		left(row.id)
		return v, errLeftOut
	}
}

// inTable is an error of a row that was read from several tables at once, with the table that the row is of.
type inTable struct {
	table string
	error
}

func (t inTable) Unwrap() error { return t.error }

// columnOf is how package sql names the column that it could not convert.
var columnOf = regexp.MustCompile(`name "(\w+)"`)

// unreadable says what of a row cannot be read, without what is in it.
func unreadable(err error) string {
	var u unfit
	if errors.As(err, &u) {
		return string(u)
	}
	if found := columnOf.FindStringSubmatch(err.Error()); found != nil {
		return found[1] + " cannot be read"
	}
	return "JSON in it cannot be read"
}

// reading is a row that is read, and what is known of it if that fails.
type reading struct {
	row    scanner
	id     string
	failed bool // and not because of what is in the row
}

func (r *reading) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if err != nil {
		whatever := make([]any, len(dest)) // takes anything: if even that fails, it is not the row
		for i := range whatever {
			whatever[i] = new(any)
		}
		again := r.row.Scan(whatever...)
		r.failed = again != nil
	}
	if id, ok := dest[0].(*string); ok { // columns are read in their order
		r.id = *id
	}
	return err
}

// timeOf reads an id, and the time that goes with it.
func timeOf(r scanner) (at int64, err error) {
	var id string
	return at, r.Scan(&id, &at)
}

// page reads a page of what is shown, without rows that are damaged. Others come in their place: whoever gets a page that is not full takes it for the last. limit is the number of the parameter
// that says how many.
func page[T any](ctx context.Context, s *Snap, table string, scan func(scanner) (T, error), limit int, query string, args ...any) ([]T, error) {
	most, asked := args[limit-1].(int), args[limit-1].(int)
	for {
		left := 0
		list, err := all(ctx, s, soundBut(s, table, scan, func(string) { left++ }), query, args...)
		if err != nil || left == 0 || len(list) >= most || len(list)+left < asked {
			return list[:min(most, len(list))], err
		}
		asked = most + left
		args = slices.Clone(args)
		args[limit-1] = asked
	}
}
