package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Statements that take many rows take them in steps of these sizes: engines keep what they have prepared, so there must be few texts.
var sizes = []int{64, 16, 4, 1}

// tuples is "($1, $2), ($3, $4)": n rows of values. A cast is a type's name where the engine cannot know it, or "".
func tuples(n int, casts ...string) string {
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
		p := "$" + strconv.Itoa(i+1)
		if c := casts[i%len(casts)]; c != "" {
			p = "CAST(" + p + " AS " + c + ")"
		}
		b.WriteString(p)
	}
	return b.String() + ")"
}

// statements keeps texts that were put together, by what they were made of.
type statements struct{ made sync.Map }

func (t *statements) get(of string, n int, make func() string) string {
	type key struct {
		of string
		n  int
	}
	if v, ok := t.made.Load(key{of, n}); ok {
		return v.(string)
	}
	text := make()
	t.made.Store(key{of, n}, text)
	return text
}

// insert adds rows, as many to a statement as it takes. The (?) in its text stands for them.
func (t *Tx) insert(query string, rows [][]any, do func(query string, args []any) error) error {
	for _, size := range sizes {
		for ; len(rows) >= size; rows = rows[size:] {
			text := t.db.texts.get(query, size, func() string {
				return strings.ReplaceAll(query, "(?)", tuples(size, make([]string, len(rows[0]))...))
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

// among reads the rows that a query finds for ids, whose list stands for every (?) in its text.
func among[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string, ids []string) ([]T, error) {
	var found []T
	for len(ids) > 0 {
		var some []string
		some, ids = pad(ids)
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id
		}
		text := s.db.texts.get(query, len(some), func() string {
			return strings.ReplaceAll(query, "(?)", tuples(1, make([]string, len(some))...))
		})
		list, err := all(ctx, s, scan, text, args...)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}

// change runs an update once for many rows. The (?) in its text stands for them, and they are of these types.
func (t *Tx) change(ctx context.Context, query string, types []string, rows [][]any) error {
	return t.each(query, types, rows, func(query string, args []any) error { return t.exec(ctx, query, args...) })
}

// each is change with a statement that somebody waits for.
func (t *Tx) each(query string, types []string, rows [][]any, do func(query string, args []any) error) error {
	for len(rows) > 0 {
		var some [][]any
		some, rows = pad(rows)
		text := t.db.texts.get(query, len(some), func() string { return strings.ReplaceAll(query, "(?)", tuples(len(some), types...)) })
		if err := do(text, slices.Concat(some...)); err != nil {
			return err
		}
	}
	return nil
}
