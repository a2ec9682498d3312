package store

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A statement for many rows is written once for both engines. (?) is the placeholder of the rows:
//
//	INSERT INTO things (id, n) VALUES (?)
//	UPDATE things SET n = v.column2 FROM (VALUES (?)) AS v WHERE @id = v.column1
//	SELECT n FROM things WHERE id IN (?)
//
// SQLite gets one parameter for each value. The number of rows in a statement is one of batchSizes, so that there are
// few texts and the engine's cache of prepared statements is effective. PostgreSQL gets one array for each column,
// whatever the number of rows.
//
// An @ marks the column by which rows are found. For PostgreSQL the condition on that column is written twice, the
// second time as = ANY (array), which makes it use the index. Otherwise a cached plan that was made for a small table
// would scan the whole table after it has grown.
var batchSizes = []int{64, 16, 4, 1}

// maxArrayRows is the largest number of rows in one array. It bounds the size of a statement with large values.
const maxArrayRows = 512

// placeholders returns n rows of placeholders such as "($1, $2), ($3, $4)". The numbers start after the first used
// parameters. Each column is cast to the type in casts, unless that is "".
func placeholders(used, n int, casts ...string) string {
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
		p := "$" + strconv.Itoa(used+i+1)
		if c := casts[i%len(casts)]; c != "" {
			p = "CAST(" + p + " AS " + c + ")"
		}
		b.WriteString(p)
	}
	return b.String() + ")"
}

// sqlTextCache caches generated SQL texts by their template and number of rows.
type sqlTextCache struct{ texts sync.Map }

func (t *sqlTextCache) get(template string, n int, build func() string) string {
	type key struct {
		template string
		n        int
	}
	if v, ok := t.texts.Load(key{template, n}); ok {
		return v.(string)
	}
	text := build()
	t.texts.Store(key{template, n}, text)
	return text
}

// insertRows calls do with statements that insert all rows, each statement with as many rows as it can hold.
func (t *Tx) insertRows(query string, rows [][]any, do func(query string, args []any) error) error {
	// VALUES ... AS v does not give the column types
	if t.db.supportsArrays && (len(rows) > 1 || strings.Contains(query, " AS v")) {
		return t.eachArrayBatch(query, rows, do)
	}
	for _, size := range batchSizes {
		for ; len(rows) >= size; rows = rows[size:] {
			text := t.db.sqlCache.get(query, size, func() string {
				return strings.ReplaceAll(query, "(?)", placeholders(0, size, make([]string, len(rows[0]))...))
			})
			if err := do(text, slices.Concat(rows[:size]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// padBatch splits list into a batch and the rest. It fills the batch up to one of batchSizes by repeating the last
// value.
func padBatch[T any](list []T) (batch, rest []T) {
	k := min(len(list), batchSizes[0])
	batch, rest = list[:k:k], list[k:]
	for i := len(batchSizes) - 1; i >= 0; i-- {
		if batchSizes[i] >= k {
			for len(batch) < batchSizes[i] {
				batch = append(batch, batch[k-1])
			}
			break
		}
	}
	return batch, rest
}

// useArrayParameter replaces IN (?) by a comparison with an array, which is the parameter after the first used ones.
func useArrayParameter(query string, used int) string {
	return strings.ReplaceAll(query, "IN (?)", "= ANY ((SELECT CAST($"+strconv.Itoa(used+1)+" AS TEXT[]))::text[])")
}

// queryIn returns the rows that a query finds for ids. The list of ids replaces every (?) in the query; the parameters
// others come first. On SQLite a long list of ids takes several queries, so ORDER BY and LIMIT apply to each of them
// separately.
func queryIn[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), query string, ids []string,
	others ...any) ([]T, error) {
	if s.db.supportsArrays && len(ids) > 0 {
		return queryAll(ctx, s, scan, s.db.sqlCache.get(query, 0, func() string {
			return useArrayParameter(query, len(others))
		}),
			append(others, ids)...)
	}
	var found []T
	for len(ids) > 0 {
		var some []string
		some, ids = padBatch(ids)
		args := slices.Clone(others)
		for _, id := range some {
			args = append(args, id)
		}
		text := s.db.sqlCache.get(query, len(some), func() string {
			return strings.ReplaceAll(query, "(?)", placeholders(len(others), 1, make([]string, len(some))...))
		})
		list, err := queryAll(ctx, s, scan, text, args...)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}

// queueQueryIn is like queryIn, but does not wait; see queueQuery.
func queueQueryIn[T any](ctx context.Context, s *Snap, scan func(scanner) (T, error), into *[]T, query string,
	ids []string) (err error) {
	if !s.db.supportsArrays || len(ids) == 0 {
		*into, err = queryIn(ctx, s, scan, query, ids)
		return err
	}
	return queueQuery(ctx, s, scan, into, s.db.sqlCache.get(query, 0, func() string {
		return useArrayParameter(query, 0)
	}), ids)
}

// execFunc returns a function that runs statements without waiting for their results.
func (t *Tx) execFunc(ctx context.Context) func(query string, args []any) error {
	return func(query string, args []any) error { return t.exec(ctx, query, args...) }
}

// resultLists collects the results of several queued queries.
type resultLists[T any] struct{ parts []*[]T }

// add returns a new list for the result of one query.
func (l *resultLists[T]) add() *[]T {
	part := new([]T)
	l.parts = append(l.parts, part)
	return part
}

func (l *resultLists[T]) concat() (list []T) {
	for _, p := range l.parts {
		list = append(list, *p...)
	}
	return list
}

// execRows runs a statement for many rows without waiting for its result. The columns of the rows have the given types.
func (t *Tx) execRows(ctx context.Context, query string, types []string, rows [][]any) error {
	return t.eachBatch(query, types, rows, t.execFunc(ctx))
}

// eachBatch calls do with statements that together cover all rows.
func (t *Tx) eachBatch(query string, types []string, rows [][]any, do func(query string, args []any) error) error {
	if t.db.supportsArrays && len(rows) > 1 {
		return t.eachArrayBatch(query, rows, do)
	}
	for len(rows) > 0 {
		var some [][]any
		some, rows = padBatch(rows)
		text := t.db.sqlCache.get(query, len(some), func() string {
			return strings.ReplaceAll(keyCondition.ReplaceAllString(query, "$1 = v.column$2"), "(?)",
				placeholders(0, len(some), types...))
		})
		if err := do(text, slices.Concat(some...)); err != nil {
			return err
		}
	}
	return nil
}

// keyCondition matches the condition by which a statement finds its rows.
var keyCondition = regexp.MustCompile(`@([\w.]+) = v\.column(\d+)`)

// eachArrayBatch is like eachBatch for PostgreSQL. Each column is one array parameter.
func (t *Tx) eachArrayBatch(query string, rows [][]any, do func(query string, args []any) error) error {
	for some := range slices.Chunk(rows, maxArrayRows) {
		args := make([]any, len(some[0]))
		casts, names := make([]string, len(args)), make([]string, len(args))
		for i := range args {
			number := strconv.Itoa(i + 1)
			names[i] = "column" + number
			switch some[0][i].(type) {
			case string:
				args[i], casts[i] = columnValues(some, i, func(v any) string { return v.(string) }),
					"(SELECT CAST($"+number+
						" AS TEXT[]))"
			default:
				args[i], casts[i] = columnValues(some, i, toInt64), "(SELECT CAST($"+number+" AS BIGINT[]))"
			}
		}
		text := t.db.sqlCache.get(query, 0, func() string {
			list := "unnest(" + strings.Join(casts, ", ") + ")"
			text := keyCondition.ReplaceAllString(query,
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

// columnValues returns column i of the rows.
func columnValues[T any](rows [][]any, i int, as func(any) T) []T {
	list := make([]T, len(rows))
	for k, row := range rows {
		list[k] = as(row[i])
	}
	return list
}

// toInt64 converts a number in a row to int64. Rows contain only strings, int and int64.
func toInt64(v any) int64 {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v.(int64)
}
