package sqlite

import (
	"fmt"
	"testing"
)

// toPositional replaces parameters by question marks, and keeps dollar signs in literals.
func TestToPositional(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT 1":                                   "SELECT 1 []",
		"INSERT INTO t VALUES ($1, $2, $1)":          "INSERT INTO t VALUES (?, ?, ?) [0 1 0]",
		"SELECT a FROM t WHERE b > $1 LIMIT $2":      "SELECT a FROM t WHERE b > ? LIMIT ?+0 [0 1]",
		"SELECT '$1', 'it''s $2' WHERE a = $12||'$'": "SELECT '$1', 'it''s $2' WHERE a = ?||'$' [11]",
	} {
		text, order := toPositional(query)
		if got := fmt.Sprint(text, " ", order); got != want {
			t.Errorf("toPositional(%s) = %s, want %s", query, got, want)
		}
	}
}
