package host_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"reeve"
	"reeve/host"
	"reeve/internal/store"
	"reeve/reevetest"
)

// old makes the database of a Reeve that knew server tokens by their name, and gives a function that changes it.
func old(t *testing.T, cfg host.Config) func(query string, args ...any) {
	t.Helper()
	driver, engine, source := "sqlite", "sqlite", "file:"+filepath.Join(cfg.Dir, "reeve.db")
	if cfg.Database != "" {
		driver, engine, source = "pgx", "postgres", cfg.Database
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := store.Schema(t.Context(), db, engine, 36); err != nil {
		t.Fatal(err)
	}
	return func(query string, args ...any) {
		t.Helper()
		if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
}

// The token in the data directory stays the server's when an old database is brought up to date. One that was made under its
// name does not become a server token, and loses what its name had let it into.
func TestI06_AnOldServerTokenStaysAndAForgedOneDoesNot(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg host.Config) {
		exec := old(t, cfg)
		for i, id := range []string{"default", "beta", "later"} {
			exec(`INSERT INTO workspaces (id, name, revision, stopped_at, stop_reason, created_at) VALUES ($1, $1, 1, 0, '', $2)`, id, 1000*(1+i))
		}
		ids := reeve.IDs{}
		made := func(name string, at int, workspaces ...string) (text string, headers []string) {
			id, secret := ids.New(reeve.PrefixToken, reeve.Now()), reeve.Secret(32)
			sum := sha256.Sum256([]byte(secret))
			exec(`INSERT INTO access_tokens (id, name, user_name, role, hash, created_at, expires_at, revoked_at) VALUES ($1, $2, $2, 'owner', $3, $4, 0, 0)`,
				id, name, hex.EncodeToString(sum[:]), at)
			for _, w := range workspaces {
				exec(`INSERT INTO access_token_workspaces (token_id, workspace_id) VALUES ($1, $2)`, id, w)
			}
			text = "reeve_" + id + "_" + secret
			return text, []string{"Authorization", "Bearer " + text}
		}
		genuine, _ := made("owner", 1000, "default", "beta")
		_, forged := made("owner", 2500, "default", "beta", "later")
		_, plain := made("ci", 2500, "default", "later")
		if err := os.WriteFile(filepath.Join(cfg.Dir, "owner.token"), []byte(genuine+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}

		h := reevetest.StartWith(t, cfg)
		in := func(status int, w string, headers ...string) {
			t.Helper()
			h.Want(status, nil, "GET", "/api/agents", nil, append([]string{"X-Workspace-Id", w}, headers...)...)
		}
		if h.Token != genuine || h.Renewed() {
			t.Error("the token in the file was replaced")
		}
		h.Want(http.StatusCreated, nil, "POST", "/api/workspaces", object{"id": "new"})
		for _, w := range []string{"default", "beta", "later", "new"} {
			in(http.StatusOK, w)
		}
		in(http.StatusOK, "default", forged...)
		in(http.StatusOK, "beta", forged...) // which was there when it was made, so that it may have been meant for it
		in(http.StatusForbidden, "later", forged...)
		in(http.StatusForbidden, "new", forged...)
		in(http.StatusOK, "later", plain...)
		in(http.StatusForbidden, "new", plain...)
		for _, headers := range [][]string{forged, plain} {
			h.Want(http.StatusForbidden, nil, "GET", "/api/backup", nil, headers...)
			h.Want(http.StatusForbidden, nil, "GET", "/metrics", nil, headers...)
			h.Want(http.StatusForbidden, nil, "POST", "/api/workspaces", object{"id": "theirs"}, headers...)
		}
		h.Want(http.StatusOK, nil, "GET", "/metrics", nil)

		// Started again without the file, the server makes itself another token, and takes none by its name.
		h.Stop()
		if err := os.Remove(filepath.Join(cfg.Dir, "owner.token")); err != nil {
			t.Fatal(err)
		}
		h = reevetest.StartWith(t, cfg)
		in(http.StatusOK, "new")
		in(http.StatusForbidden, "new", forged...)
	})
}

// A file that holds the token of somebody who is no owner gets a server token in its place.
func TestI06_TheServersTokenIsAnOwners(t *testing.T) {
	h := reevetest.Start(t)
	dir, member := h.Dir(), as(h, "ann", "member")[1][len("Bearer "):]
	h.Stop()
	if err := os.WriteFile(filepath.Join(dir, "owner.token"), []byte(member), 0o600); err != nil {
		t.Fatal(err)
	}
	h = reevetest.StartWith(t, host.Config{Dir: dir})
	h.Want(http.StatusOK, nil, "GET", "/api/tokens", nil)
	if h.Token == member || !h.Renewed() {
		t.Error("a member's token is the server's")
	}
	h.Want(http.StatusForbidden, nil, "GET", "/api/tokens", nil, "Authorization", "Bearer "+member)
}
