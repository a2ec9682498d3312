package store

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Statements that take many rows are written once, for both engines, with (?) where the rows go:
//
//	INSERT INTO things (id, n) VALUES (?)
//	UPDATE things SET n = v.column2 FROM (VALUES (?)) AS v WHERE @id = v.column1
//	SELECT n FROM things WHERE id IN (?)
//
// SQLite gets as many parameters as there are values, in steps of a few sizes: engines keep what they have prepared, so
// there must be few texts. PostgreSQL gets an array for each column, however many rows there are. An @ is before the
// column that rows are found by: PostgreSQL is told twice, the second time in a way that leaves it no choice. It keeps
// plans, and one that it made for a small table reads all of it, also when it is large.
var sizes = []int{64, 16, 4, 1}

// mostRows is how many rows an array holds. Some are large.
const mostRows = 512

// tuples is "($1, $2), ($3, $4)": n rows of values, which come behind others if there are some. A cast is a type's name
// where the engine cannot know it, or "".
func tuples(behind, n int, casts ...string) string {
	var b strings.Builder
	for i := range n * len(casts) {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%len(casts) == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		p := "$" + strconv.Itoa(behind+i+1)
		if c := casts[i%len(casts)]; c != "" {
			p = "CAST(" + p + " AS " + c + ")"
		}
		b.WriteString(p)
	}
	return b.String() + ")"
}

// statements keeps texts that were put together, by what they were made of.
type statements struct{ made sync.Map }

func (t *statements) get(of string, n int, build func() string) string {
	type key struct {
		of string
		n  int
	}
	if v, ok := t.made.Load(key{of, n}); ok {
		return v.(string)
	}
	text := build()
	t.made.Store(key{of, n}, text)
	return text
}

// insert adds rows, as many to a statement as it takes.
func (t *Tx) insert(query string, rows [][]any, do func(query string, args []any) error) error {
	if t.db.arrays && (len(rows) > 1 || strings.Contains(query, " AS v")) { // which does not say what it is of
		return t.columns(query, rows, do)
	}
	for _, size := range sizes {
		for ; len(rows) >= size; rows = rows[size:] {
			text := t.db.texts.get(query, size, func() string {
				return strings.ReplaceAll(query, "(?)", tuples(0, size, make([]string, len(rows[0]))...))
			})
			if err := do(text, slices.Concat(rows[:size]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pad repeats the last value until there are as many as a statement of a known size takes, and gives what is left over.
func pad[T any](list []T) (some, rest []T) {
	k := min(len(list), sizes[0])
	some, rest = list[:k:k], list[k:]
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] >= k {
			for len(some) < sizes[i] {
				some = append(some, some[k-1])
			}
			break
		}
	}
	return some, rest
}

func listed(query string, behind int) string {
	return strings.ReplaceAll(query, "IN (?)", "= ANY ((SELECT CAST($"+strconv.Itoa(behind+1)+" AS TEXT[]))::text[])")
}

// among reads the rows that a query finds for ids, whose list stands for every (?) in its text, behind other values.
// SQLite is asked several times for many ids: an order is one of each answer, and so is a limit.
func among[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string, ids []string,
	others ...any) ([]T, error) {
	if s.db.arrays && len(ids) > 0 {
		return all(ctx, s, scan, s.db.texts.get(query, 0, func() string { return listed(query, len(others)) }),
			append(others, ids)...)
	}
	var found []T
	for len(ids) > 0 {
		var some []string
		some, ids = pad(ids)
		args := slices.Clone(others)
		for _, id := range some {
			args = append(args, id)
		}
		text := s.db.texts.get(query, len(some), func() string {
			return strings.ReplaceAll(query, "(?)", tuples(len(others), 1, make([]string, len(some))...))
		})
		list, err := all(ctx, s, scan, text, args...)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}

// askAmong is among for somebody who can wait; see ask.
func askAmong[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), into *[]T, query string,
	ids []string) (err error) {
	if !s.db.arrays || len(ids) == 0 {
		*into, err = among(ctx, s, scan, query, ids)
		return err
	}
	return ask(ctx, s, scan, into, s.db.texts.get(query, 0, func() string { return listed(query, 0) }), ids)
}

// unheard runs statements that nobody waits for.
func (t *Tx) unheard(ctx context.Context) func(query string, args []any) error {
	return func(query string, args []any) error { return t.exec(ctx, query, args...) }
}

// lists is what several statements give.
type lists[T any] struct{ parts []*[]T }

// more is where the next one's goes.
func (l *lists[T]) more() *[]T {
	part := new([]T)
	l.parts = append(l.parts, part)
	return part
}

func (l *lists[T]) all() (list []T) {
	for _, p := range l.parts {
		list = append(list, *p...)
	}
	return list
}

// change runs an update once for many rows. They are of these types.
func (t *Tx) change(ctx context.Context, query string, types []string, rows [][]any) error {
	return t.each(query, types, rows, t.unheard(ctx))
}

// each is change with a statement that somebody waits for.
func (t *Tx) each(query string, types []string, rows [][]any, do func(query string, args []any) error) error {
	if t.db.arrays && len(rows) > 1 {
		return t.columns(query, rows, do)
	}
	for len(rows) > 0 {
		var some [][]any
		some, rows = pad(rows)
		text := t.db.texts.get(query, len(some), func() string {
			return strings.ReplaceAll(found.ReplaceAllString(query, "$1 = v.column$2"), "(?)",
				tuples(0, len(some), types...))
		})
		if err := do(text, slices.Concat(some...)); err != nil {
			return err
		}
	}
	return nil
}

// found is how a statement says what rows are found by.
var found = regexp.MustCompile(`@([\w.]+) = v\.column(\d+)`)

// columns is insert and each with an array for each column.
func (t *Tx) columns(query string, rows [][]any, do func(query string, args []any) error) error {
	for some := range slices.Chunk(rows, mostRows) {
		args := make([]any, len(some[0]))
		casts, names := make([]string, len(args)), make([]string, len(args))
		for i := range args {
			number := strconv.Itoa(i + 1)
			names[i] = "column" + number
			switch some[0][i].(type) {
			case string:
				args[i], casts[i] = column(some, i, func(v any) string { return v.(string) }), "(SELECT CAST($"+number+
					" AS TEXT[]))"
			default:
				args[i], casts[i] = column(some, i, whole), "(SELECT CAST($"+number+" AS BIGINT[]))"
			}
		}
		text := t.db.texts.get(query, 0, func() string {
			list := "unnest(" + strings.Join(casts, ", ") + ")"
			text := found.ReplaceAllString(query,
				"$1 = v.column$2 AND $1 = ANY ((SELECT CAST($$$2 AS TEXT[]))::text[])")
			if len(args) == 1 {
				text = strings.ReplaceAll(text, "IN (VALUES (?))", "= ANY ("+casts[0]+"::text[])")
			}
			text = strings.ReplaceAll(text, "(VALUES (?)) AS v", list+" AS v ("+strings.Join(names, ", ")+")")
			return strings.ReplaceAll(text, "VALUES (?)", "SELECT * FROM "+list)
		})
		if err := do(text, args); err != nil {
			return err
		}
	}
	return nil
}

func column[T any](rows [][]any, i int, as func(any) T) []T {
	list := make([]T, len(rows))
	for k, row := range rows {
		list[k] = as(row[i])
	}
	return list
}

// whole is a number as the engines have it. Rows hold nothing but these and text.
func whole(v any) int64 {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v.(int64)
}
