package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Servers share a database but not the secret key. The second reports it at its start, in the doctor, and for every
// call that needs a secret.
func TestSharedDatabase_NeedsTheSameKey(t *testing.T) {
	t.Parallel()
	url, far := storetest.PostgresURL(t), kit.NewWitness(t)
	start := func(key string) (*reevetest.Host, *kit.LogBuffer) {
		cfg, log := kit.FastConfig(t), &kit.LogBuffer{}
		cfg.Database, cfg.SecretKey, cfg.Log = url, strings.Repeat(key, 32), slog.New(slog.NewTextHandler(log, nil))
		return reevetest.StartWith(t, cfg), log
	}
	const complaint = "1 of 1 secrets cannot be decrypted with this server's key"
	one, _ := start("ab")
	one.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/KK", map[string]any{"value": "topsecret-value"})
	kit.DefineHTTPTool(one, "look", reeve.Read, map[string]any{"method": "GET", "url": far.URL + "/look",
		"headers": map[string]any{"X-Key": "${secret:KK}"}}, nil)
	one.Agent("a", "look")
	same, log := start("ab")
	if d := kit.GetHealth(same, "secrets"); !d.OK || strings.Contains(log.String(), "secret.key") {
		t.Errorf("with the same key: %+v, %s", d, log)
	}
	other, log := start("cd")
	if !strings.Contains(log.String(), complaint) || !strings.Contains(log.String(), "secret.key") {
		t.Errorf("it started silently: %s", log)
	}
	if d := kit.GetHealth(other, "secrets"); d.OK || d.Detail != complaint || !strings.Contains(d.Hint, "secret.key") {
		t.Errorf("the doctor says %+v", d)
	}
	if said := string(other.Do("POST", "/api/agents/a/calls", kit.Call{"tool": "look"}).Body); !strings.Contains(said,
		"KK cannot be read now") || !strings.Contains(said, "servers that share a database need the same secret.key") {
		t.Errorf("the call says %s", said)
	}
}

// Servers that share a database need separate directories. The first one keeps its own, with its address in it.
func TestSharedDatabase_NeedsADirectoryEach(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	first := reevetest.Run(t, cfg)
	address, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json"))
	if err != nil || !strings.Contains(string(address), first.URL) {
		t.Fatalf("%s, %v", address, err)
	}
	h, err := host.New(t.Context(), cfg)
	if told := reeve.AsError(err); h != nil || told.Code != reeve.Unavailable ||
		!strings.Contains(told.Message, "another Reeve is using the data directory") ||
		!strings.Contains(told.Hint, "--dir") {
		t.Fatalf("%v, %v", h, err)
	}
	if now, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json")); err != nil || string(now) != string(address) {
		t.Errorf("the address became %s, %v", now, err)
	}
	first.Stop()
	if now, err := os.ReadFile(filepath.Join(cfg.Dir, "server.json")); err == nil {
		t.Errorf("it has ended, and says that it is to be found at %s", now)
	}
	reevetest.StartWith(t, cfg) // once it has ended, another may
}

// Two servers start for the first time at once. The second waits for the uncommitted first workspace and creates no
// other.
func TestSharedDatabase_TwoFirstStartsAtOnce(t *testing.T) {
	t.Parallel()
	cfg := kit.FastConfig(t)
	cfg.Database, cfg.SecretKey = storetest.PostgresURL(t), strings.Repeat("ab", 32)
	h, err := host.New(t.Context(), cfg) // the schema is there now
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	other, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	tx, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		"INSERT INTO workspaces (id, name, revision, stopped_at, stop_reason, created_at) VALUES ('default', "+
			"'Default', 1, 0, '', 1)"); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { _, err := h.Handler(t.Context()); started <- err }()
	kit.Eventually(t, "it waits for the other", func() (waits bool) {
		err := tx.QueryRow(t.Context(),
			"SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits)
		return err == nil && waits
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Error(err)
	}
}
