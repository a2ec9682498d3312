package host_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Servers that share a database have a directory each: the one that came first keeps its own, with the address in it.
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

// A server that starts for the first time while another does, which has made the first workspace and not said so yet,
// waits for it and makes no second.
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

// The owner's token of each server is valid in every workspace, whoever made it; other tokens stay where they are.
func TestI06_EveryServersOwnerIsOwnerOfAll(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	apart := kit.NewTokenFor(servers[0], "bob", "owner") // valid in all there is now, and not in what comes
	servers[0].Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "team"})
	servers[1].Want(http.StatusOK, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team")
	alike := func(more map[string]any) []string { // called as the servers' own are, and yet not one of them
		var made struct {
			Token string `json:"token"`
		}
		more["name"], more["user"], more["role"] = "owner", "owner", "owner"
		servers[0].Want(http.StatusCreated, &made, "POST", "/api/tokens", more)
		return []string{"Authorization", "Bearer " + made.Token}
	}
	partial := alike(map[string]any{"workspaces": []string{"team"}})
	passing := alike(map[string]any{"workspaces": []string{"default", "team"}, "expires_at": time.Now().Add(time.Hour)})
	servers[1].Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "crew"}, "X-Workspace-Id",
		"team")
	for _, token := range [][]string{partial, passing} {
		servers[0].Want(http.StatusOK, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", "team"},
			token...)...)
		servers[0].Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", "crew"},
			token...)...)
	}
	for _, h := range servers {
		var list api.WorkspaceList
		h.Want(http.StatusOK, &list, "GET", "/api/workspaces", nil)
		if len(list.Workspaces) != 3 {
			t.Errorf("%+v", list)
		}
		for _, w := range []string{"team", "crew"} {
			h.Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", w},
				apart...)...)
		}
	}
	for round := range 5 { // at once: one of them makes it, and the others hear that it is there
		var made, there atomic.Int64
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				switch r := servers[i%2].Do("POST", "/api/workspaces",
					map[string]any{"id": "w" + string(rune('0'+round))}); r.Status {
				case http.StatusCreated:
					made.Add(1)
				case http.StatusConflict:
					there.Add(1)
				default:
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
		wg.Wait()
		if made.Load() != 1 || there.Load() != 5 {
			t.Errorf("%d were made, %d there already", made.Load(), there.Load())
		}
	}
}

// A workspace that the token in the file is not valid in, as a Reeve of old left it, is opened to it at the next start.
func TestI06_AnOwnerGetsBackWhatIsMissing(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir := h.Dir()
	h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "team"})
	less := strings.TrimPrefix(kit.NewTokenFor(h, "less", "owner")[1], "Bearer ")
	h.Want(http.StatusForbidden, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team", "Authorization",
		"Bearer "+less)
	h.Stop()
	if err := os.WriteFile(filepath.Join(dir, "owner.token"), []byte(less), 0o600); err != nil {
		t.Fatal(err)
	}
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team")
	if h.Token != less {
		t.Error("a token that is valid was made anew")
	}
}
