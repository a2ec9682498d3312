package kit

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the driver with which tests open the file of a host

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// ExecPostgres executes queries on a connection of its own, beside the server, and returns the connection.
func ExecPostgres(t *testing.T, database string, queries ...string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	for _, query := range queries {
		if _, err := c.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// GetHealth returns the check of the doctor with a name.
func GetHealth(h *reevetest.Host, name string) reeve.PartHealth {
	h.T.Helper()
	var up api.DoctorReport
	h.Want(http.StatusOK, &up, "GET", "/api/doctor", nil)
	for _, c := range up.Checks {
		if c.Name == name {
			return c
		}
	}
	h.T.Fatalf("the doctor says nothing of %s", name)
	return reeve.PartHealth{}
}

// FastConfig returns a config with a temporary directory and short retry delays.
func FastConfig(t testing.TB) host.Config {
	return host.Config{Dir: t.TempDir(), RetryFirst: host.Duration(time.Millisecond),
		RetryMax: host.Duration(2 * time.Millisecond), RetryAttempts: 5,
		HTTPAllow: []string{"127.0.0.1"}}
}

// RestartAfterCrash starts a host on a copy of the database as it is now, as after a crash of the old host. The old
// host continues on its own database.
func RestartAfterCrash(h *reevetest.Host, tools ...reeve.Tool) *reevetest.Host {
	h.T.Helper()
	cfg := h.Config
	dir := h.T.TempDir()
	file := filepath.Join(dir, "reeve.db")
	if err := h.Backup(h.T.Context(), file); err != nil {
		h.T.Fatal(err)
	}
	clearBackupMark(h.T, file)
	for _, name := range []string{"owner.token", "secret.key"} {
		b, err := os.ReadFile(filepath.Join(h.Dir(), name))
		if err != nil {
			h.T.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			h.T.Fatal(err)
		}
	}
	cfg.Dir = dir
	return reevetest.StartWith(h.T, cfg, tools...)
}

// clearBackupMark makes a copy of a database count as the original. A server on a backup would start held.
func clearBackupMark(t testing.TB, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec("PRAGMA user_version = 0")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// LogBuffer is a log that can be read while it is written.
type LogBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *LogBuffer) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *LogBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// OnBothDatabases runs a test on SQLite and on PostgreSQL with a FastConfig.
func OnBothDatabases(t *testing.T, f func(t *testing.T, cfg host.Config)) {
	t.Run("sqlite", func(t *testing.T) { f(t, FastConfig(t)) })
	t.Run("postgres", func(t *testing.T) {
		cfg := FastConfig(t)
		cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
		f(t, cfg)
	})
}

// StartOnBothDatabases runs a test on SQLite and on PostgreSQL. start starts a host on that database.
func StartOnBothDatabases(t *testing.T, f func(t *testing.T, start func(tools ...reeve.Tool) *reevetest.Host)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			f(t, func(tools ...reeve.Tool) *reevetest.Host {
				cfg := FastConfig(t)
				if name == "postgres" {
					cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
				}
				return reevetest.StartWith(t, cfg, tools...)
			})
		})
	}
}

// StartTwoServers starts two hosts on one PostgreSQL database.
func StartTwoServers(t *testing.T, tools ...reeve.Tool) [2]*reevetest.Host {
	t.Helper()
	var out [2]*reevetest.Host
	url := storetest.PostgresURL(t)
	for i := range out {
		cfg := FastConfig(t)
		cfg.Database, cfg.SecretKey = url, strings.Repeat("ab", 32)
		out[i] = reevetest.StartWith(t, cfg, tools...)
	}
	return out
}

// StepInBackground steps a host every few milliseconds until the test ends.
func StepInBackground(t testing.TB, h *reevetest.Host) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := h.Step(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}
