package postgres

import (
	"strings"
	"testing"

	"reeve"
)

func TestPoolSize(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int32{
		"postgres://me@host/db":                                 16,
		"postgres://me@host/db?pool_max_conns=3&sslmode=prefer": 3,
		"host=h user=me pool_max_conns=40":                      40,
	} {
		for conns, want := range map[int]int32{0: want, 7: 7} {
			pc, err := poolConfig(Config{URL: url, Conns: conns})
			if err != nil || pc.MaxConns != want {
				t.Errorf("poolConfig(%s, %d): %v, %v", url, conns, pc.MaxConns, err)
			}
		}
	}
	for _, bad := range []string{"0", "-1", "many", "", "99999999999"} {
		_, err := poolConfig(Config{URL: "postgres://me:hunter2@host/db?pool_max_conns=" + bad})
		if userErr := reeve.AsError(err); userErr.Code != reeve.Validation ||
			!strings.Contains(userErr.Message, "pool_max_conns") || strings.Contains(userErr.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPgDumpAddressHasNoPassword(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"postgres://me:hunter2@host:5432/db?sslmode=require&pool_max_conns=3",
		"postgresql://me@host/db?password=hunter2&sslmode=require",
		"host=h user=me password=hunter2 pool_max_conns=3 sslmode=require",
		"host=h user=me password = 'hunter2 \\' x' sslmode=require",
	} {
		got, err := pgDumpAddress(s)
		if err != nil || strings.Contains(got, "hunter2") || strings.Contains(got, "pool_") ||
			!strings.Contains(got, "sslmode=require") || !strings.Contains(got, "me") {
			t.Errorf("pgDumpAddress(%s) = %s, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"postgres://me:x@host/db?sslmode=verify-full&sslkey=/k&sslpassword=hunter2",
		"host=h user=me password=x sslkey=/k sslpassword = 'hunter2'",
	} {
		got, err := pgDumpAddress(s)
		if userErr := reeve.AsError(err); got != "" || userErr.Code != reeve.Unsupported ||
			!strings.Contains(userErr.Message, "sslpassword") || strings.Contains(userErr.Error()+userErr.Hint,
			"hunter2") {
			t.Errorf("pgDumpAddress(%s) = %s, %v", s, got, err)
		}
	}
}
