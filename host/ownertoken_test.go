package host_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A data directory that was started before has a token that the database of a backup does not know: its owner gets
// another, and nobody else's is lost.
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

// An owner who has revoked the token in the file, because somebody else knows it, is told so by the doctor and finds
// another there after the next start.
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

// An owner whose token cannot be read in the database is not locked out either, and the server starts.
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
