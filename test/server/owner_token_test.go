package server_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The token in a used data directory is unknown to the database of a backup. Its owner gets a new one, and no other
// token is lost.
func TestRestore_TheOwnerIsNotLockedOut(t *testing.T) {
	t.Parallel()
	other := reevetest.Start(t)
	other.Agent("theirs")
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := other.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	h := reevetest.Start(t)
	dir, old := h.Dir(), h.Token
	if h.TokenRenewed() {
		t.Error("the first token of all is no new one")
	}
	h.Stop()
	if _, err := host.Restore(t.Context(), host.Config{Dir: dir}, backup); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	h = reevetest.StartWith(t, host.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	var list api.AgentList
	h.Want(http.StatusOK, &list, "GET", "/api/agents", nil)
	if len(list.Agents) != 1 || h.Token == old || !h.TokenRenewed() ||
		!strings.Contains(said.String(), "created a new one") {
		t.Errorf("%+v, %v, %s", list.Agents, h.TokenRenewed(), said.String())
	}
	h.Want(http.StatusOK, nil, "GET", "/api/agents", nil, "Authorization", "Bearer "+other.Token)
	h.Want(http.StatusUnauthorized, nil, "GET", "/api/agents", nil, "Authorization", "Bearer "+old)
	if s, err := os.Stat(filepath.Join(dir, "owner.token")); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", s, err)
	}
	now := h.Token
	h.Stop()
	if h = reevetest.StartWith(t, host.Config{Dir: dir}); h.Token != now || h.TokenRenewed() {
		t.Error("a token that is valid was made anew")
	}
}

// The doctor reports that the token in the file was revoked, and the next start replaces it.
func TestStart_ARevokedOwnerTokenIsReplaced(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, old := h.Dir(), h.Token
	if p := kit.GetHealth(h, "tokens"); !p.OK {
		t.Errorf("%+v", p)
	}
	spare := kit.NewTokenFor(h, "spare", "owner")
	var tokens api.TokenList
	h.Want(http.StatusOK, &tokens, "GET", "/api/tokens", nil)
	for _, known := range tokens.Tokens {
		if strings.Contains(old, known.ID) {
			h.Want(http.StatusNoContent, nil, "DELETE", "/api/tokens/"+known.ID, nil)
		}
	}
	h.Token = strings.TrimPrefix(spare[1], "Bearer ")
	if p := kit.GetHealth(h, "tokens"); p.OK || !strings.Contains(p.Detail, "not valid") ||
		!strings.Contains(p.Hint, "restart the server") {
		t.Errorf("%+v", p)
	}
	h.Stop()
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/agents", nil)
	if h.Token == old || !kit.GetHealth(h, "tokens").OK {
		t.Errorf("the token in the file is %s", h.Token)
	}
	h.Want(http.StatusUnauthorized, nil, "GET", "/api/agents", nil, "Authorization", "Bearer "+old)
}

// An owner whose token cannot be read in the database is not locked out, and the server starts.
func TestStart_ACorruptOwnerTokenIsReplaced(t *testing.T) {
	t.Parallel()
	for _, change := range []string{"expires_at = 'x'", "revoked_at = 'x'", "role = ''", "user_name = ''"} {
		h := reevetest.Start(t)
		dir, old := h.Dir(), h.Token
		h.Stop()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "reeve.db"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), `UPDATE access_tokens SET `+change); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		h = reevetest.StartWith(t, host.Config{Dir: dir})
		h.Want(http.StatusOK, nil, "GET", "/api/agents", nil)
		if h.Token == old || !h.TokenRenewed() {
			t.Errorf("%s: the token in the file is the old one", change)
		}
		h.Want(http.StatusUnauthorized, nil, "GET", "/api/agents", nil, "Authorization", "Bearer "+old)
	}
}

// A file with the token of a user who is not an owner gets a server token instead.
func TestI06_ServerTokenBelongsToAnOwner(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, member := h.Dir(), kit.NewTokenFor(h, "ann", "member")[1][len("Bearer "):]
	h.Stop()
	if err := os.WriteFile(filepath.Join(dir, "owner.token"), []byte(member), 0o600); err != nil {
		t.Fatal(err)
	}
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/tokens", nil)
	if h.Token == member || !h.TokenRenewed() {
		t.Error("a member's token is the server's")
	}
	h.Want(http.StatusForbidden, nil, "GET", "/api/tokens", nil, "Authorization", "Bearer "+member)
}

// The owner token of each server is valid in every workspace, whoever created it. Other tokens are not.
func TestI06_OwnerTokenIsValidInAllWorkspaces(t *testing.T) {
	t.Parallel()
	servers := kit.StartTwoServers(t)
	apart := kit.NewTokenFor(servers[0], "bob", "owner") // valid in all there is now, and not in what comes
	servers[0].Want(http.StatusCreated, nil, "POST", "/api/workspaces", map[string]any{"id": "team"})
	servers[1].Want(http.StatusOK, nil, "GET", "/api/agents", nil, "X-Workspace-Id", "team")
	alike := func(more map[string]any) []string { // creates a token with the same name as a server token
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

// The next start makes the token in the file valid in a workspace where it is not, as earlier versions left it.
func TestI06_StartAddsMissingWorkspacesToTheOwnerToken(t *testing.T) {
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
