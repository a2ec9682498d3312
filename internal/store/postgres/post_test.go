package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"reeve/internal/store"
)

// Statements that give nothing back are written to the server by our own hand: what they say arrives as it is, what one is refused for is told of that one, and all of them are one transaction.
func TestPosted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e, h := bare(t, store.CommitHook{})
	if _, err := h.ExecContext(ctx, `CREATE TABLE kinds (id BIGINT PRIMARY KEY, words TEXT NOT NULL, bytes BYTEA NOT NULL, other BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)`); err != nil {
		t.Fatal(err)
	}
	const insert = "INSERT INTO kinds (id, words, bytes, other) VALUES ($1, $2, $3, $4)"
	words, raw := `a 'quote', a "quote", a \\ and \\x41, $1, ünïcode 😀`, []byte("\x00\\x41 \\ \xff '")
	update := func(statements ...[]any) error {
		return e.Update(ctx, func(c store.Conn) error {
			var errs []error
			for i, args := range statements {
				errs = append(errs, c.Exec(ctx, func(f store.Fault) error { return fmt.Errorf("the %d. of them: %w", i, f) }, insert, args...))
			}
			return errors.Join(errs...)
		})
	}
	check := func(want int) {
		t.Helper()
		rows, err := h.QueryContext(ctx, "SELECT words, bytes FROM kinds")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for ; rows.Next(); n++ {
			var w string
			var b []byte
			if err := rows.Scan(&w, &b); err != nil || w != words || !bytes.Equal(b, raw) {
				t.Fatalf("%q, %q, %v", w, b, err)
			}
		}
		if n != want || rows.Err() != nil {
			t.Fatalf("%d rows, want %d (%v)", n, want, rows.Err())
		}
	}
	if err := update([]any{1, words, raw, int64(-1)}, []any{int64(1) << 62, words, string(raw), 2}); err != nil { // bytes may be said as text too
		t.Fatal(err)
	}
	check(2)
	for name, c := range map[string]struct {
		statements [][]any
		told       string
		kind       store.FaultKind
	}{
		"one of them":   {[][]any{{3, words, raw, 3}, {1, words, raw, 4}, {5, words, raw, 5}}, "the 1. of them: ", store.FaultUnique},
		"at the commit": {[][]any{{3, words, raw, 3}, {4, words, raw, 2}}, "", store.FaultUnique},
	} {
		if err := update(c.statements...); kind(err) != c.kind || !bytes.HasPrefix([]byte(err.Error()), []byte(c.told)) || c.told == "" && bytes.Contains([]byte(err.Error()), []byte("of them")) {
			t.Errorf("%s: %v", name, err)
		}
		check(2)
	}
	var many [][]any
	for i := range 700 { // more than are written so
		many = append(many, []any{100 + i, words, raw, 100 + i})
	}
	if err := update(many...); err != nil {
		t.Fatal(err)
	}
	check(702)
	many = nil
	for i := range 250 { // more than the server's answers to few
		many = append(many, []any{1000 + i, words, raw, 1000 + i})
	}
	if err := update(many...); err != nil {
		t.Fatal(err)
	}
	check(952)
}
