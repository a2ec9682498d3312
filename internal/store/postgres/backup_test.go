package postgres

import (
	"strings"
	"testing"

	"reeve"
)

func TestConnectionsAreThoseOfTheURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]int32{
		"postgres://me@host/db":                                 16,
		"postgres://me@host/db?pool_max_conns=3&sslmode=prefer": 3,
		"host=h user=me pool_max_conns=40":                      40,
	} {
		for conns, want := range map[int]int32{0: want, 7: 7} {
			pc, err := poolConfig(Config{URL: url, Conns: conns})
			if err != nil || pc.MaxConns != want {
				t.Errorf("%s, %d: %v, %v", url, conns, pc.MaxConns, err)
			}
		}
	}
	for _, bad := range []string{"0", "-1", "many", "", "99999999999"} {
		_, err := poolConfig(Config{URL: "postgres://me:hunter2@host/db?pool_max_conns=" + bad})
		if told := reeve.AsError(err); told.Code != reeve.Validation ||
			!strings.Contains(told.Message, "pool_max_conns") || strings.Contains(told.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestAddressHidesThePassword(t *testing.T) {
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
			t.Errorf("%s became %s, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"postgres://me:x@host/db?sslmode=verify-full&sslkey=/k&sslpassword=hunter2",
		"host=h user=me password=x sslkey=/k sslpassword = 'hunter2'",
	} {
		got, err := pgDumpAddress(s)
		if told := reeve.AsError(err); got != "" || told.Code != reeve.Unsupported ||
			!strings.Contains(told.Message, "sslpassword") || strings.Contains(told.Error()+told.Hint, "hunter2") {
			t.Errorf("%s became %s, %v", s, got, err)
		}
	}
}
