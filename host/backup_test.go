package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// Without pg_dump a backup of PostgreSQL is answered by the reason, and not by an answer that breaks off.
func TestBackup_SaysThatThereIsNoPgDump(t *testing.T) {
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: storetest.PostgresURL(t)})
	if r := h.Do("GET", "/api/backup", nil); r.Status != http.StatusOK || !strings.HasPrefix(string(r.Body), "PGDMP") {
		t.Fatalf("with pg_dump: %d %.200s", r.Status, r.Body)
	}
	if d := database(h); !d.OK || strings.Contains(d.Detail, "pg_dump") {
		t.Errorf("the doctor says %+v", d)
	}
	t.Setenv("PATH", t.TempDir())
	var p reeve.Problem
	h.Want(http.StatusNotImplemented, &p, "GET", "/api/backup", nil)
	if p.Code != reeve.Unsupported || !strings.Contains(p.Detail, "pg_dump") || !strings.Contains(p.Hint, "PATH") {
		t.Errorf("%+v", p)
	}
	if d := database(h); !d.OK || !strings.Contains(d.Detail, "there is no pg_dump") {
		t.Errorf("the doctor says %+v", d)
	}
}

// database is what the doctor says of the database.
func database(h *reevetest.Host) reeve.PartHealth {
	h.T.Helper()
	var up reeve.CheckUp
	h.Want(http.StatusOK, &up, "GET", "/api/doctor", nil)
	for _, c := range up.Checks {
		if c.Name == "database" {
			return c
		}
	}
	h.T.Fatal("the doctor says nothing of the database")
	return reeve.PartHealth{}
}
