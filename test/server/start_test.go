package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
)

// A start that cannot open its database reports why, and the directory is free again.
func TestStart_ReportsWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"damaged database": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "reeve.db"), []byte(strings.Repeat("no database ", 5000)), 0o600)
		},
		"damaged key": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "secret.key"), []byte("garbage"), 0o600)
		},
		"folder in its place": func(dir string) error { return os.Mkdir(filepath.Join(dir, "reeve.db"), 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second try finds the directory unlocked
				h, err := host.New(t.Context(), host.Config{Dir: dir})
				if err == nil || h != nil || reeve.CodeOf(err) == reeve.Internal ||
					strings.Contains(err.Error(), "another Reeve") {
					t.Fatalf("%v, %v", h, err)
				}
			}
		})
	}
	if _, err := host.New(t.Context(), host.Config{Dir: t.TempDir(), Database: "postgres://nobody@127.0.0.1:1/none"}); reeve.CodeOf(
		err) != reeve.Unavailable {
		t.Errorf("a database that is down: %v", err)
	}
}

// A failed start is retried by the next request, however far it had come. Neither a first caller that disconnected nor
// a cause that was fixed matters.
func TestStart_IsRetriedAfterAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(cfg *host.Config) error
		mend  func(cfg host.Config) error
		gone  bool // the first caller is
	}{
		"its caller went away": {gone: true},
		"the token cannot be read": {
			spoil: func(cfg *host.Config) error { return os.Mkdir(filepath.Join(cfg.Dir, "owner.token"), 0o700) },
			mend:  func(cfg host.Config) error { return os.Remove(filepath.Join(cfg.Dir, "owner.token")) }},
		"the model's script is missing": {
			spoil: func(cfg *host.Config) error {
				cfg.Models.Script = filepath.Join(cfg.Dir, "script.yaml")
				return nil
			},
			mend: func(cfg host.Config) error {
				return os.WriteFile(cfg.Models.Script, []byte("answers:\n- {text: hi}\n"), 0o600)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := host.Config{Dir: t.TempDir()}
			if c.spoil != nil {
				if err := c.spoil(&cfg); err != nil {
					t.Fatal(err)
				}
			}
			h, err := host.New(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.gone {
				cancel()
			}
			for range 2 {
				if _, err := h.Call(ctx, reeve.Call{Workspace: "default", Agent: "nobody", Tool: "file_read"}); err == nil || reeve.CodeOf(err) == reeve.NotFound {
					t.Fatalf("it was opened: %v", err)
				}
			}
			if c.mend != nil {
				if err := c.mend(cfg); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Call(t.Context(), reeve.Call{Workspace: "default", Agent: "nobody", Tool: "file_read"}); reeve.CodeOf(err) != reeve.NotFound {
				t.Errorf("a call: %v", err)
			}
			handler, err := h.Handler(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			token, err := os.ReadFile(filepath.Join(cfg.Dir, "owner.token"))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", "http://127.0.0.1/api/agents", nil)
			r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
			r.Header.Set("X-Workspace-Id", "default")
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A host that was closed before it was opened stays closed.
func TestStart_ClosedBeforeItWasOpened(t *testing.T) {
	t.Parallel()
	h, err := host.New(t.Context(), host.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if _, err := h.Handler(t.Context()); err == nil || err.Error() != "the host is closed" {
		t.Errorf("%v", err)
	}
}
