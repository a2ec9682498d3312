package postgres

import (
	"strings"
	"testing"
)

func TestAddressHidesThePassword(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"postgres://me:hunter2@host:5432/db?sslmode=require&pool_max_conns=3",
		"postgresql://me@host/db?password=hunter2&sslmode=require",
		"host=h user=me password=hunter2 sslmode=require",
		"host=h user=me password = 'hunter2 \\' x' sslmode=require",
	} {
		got := address(s)
		if strings.Contains(got, "hunter2") || strings.Contains(got, "pool_") || !strings.Contains(got, "sslmode=require") || !strings.Contains(got, "me") {
			t.Errorf("%s became %s", s, got)
		}
	}
}
