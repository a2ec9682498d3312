package host_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
)

// What cannot be opened is said in words, and the directory is free again.
func TestStart_WhatCannotBeOpenedIsSaid(t *testing.T) {
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
	if _, err := host.New(t.Context(),
		host.Config{Dir: t.TempDir(), Database: "postgres://nobody@127.0.0.1:1/none"}); reeve.CodeOf(
		err) != reeve.Unavailable {
		t.Errorf("a database that is down: %v", err)
	}
}

// A start that failed is tried again by whoever comes next, however far it had come: neither that its first caller went
// away nor what has been mended since is held against them.
func TestStart_AFailedStartIsTriedAgain(t *testing.T) {
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
				cfg.Models.Script = filepath.Join(cfg.Dir,
					"script.yaml")
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
				if _, err := h.Call(ctx, reeve.Call{Workspace: "default", Agent: "nobody",
					Tool: "file_read"}); err == nil || reeve.CodeOf(err) == reeve.NotFound {
					t.Fatalf("it was opened: %v", err)
				}
			}
			if c.mend != nil {
				if err := c.mend(cfg); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Call(t.Context(), reeve.Call{Workspace: "default", Agent: "nobody",
				Tool: "file_read"}); reeve.CodeOf(err) != reeve.NotFound {
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

// A Reeve that was closed before anybody opened it is not opened any more.
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

// Each restore keeps what it replaces.
func TestRestore_KeepsEveryDatabaseItReplaces(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, backup := h.Dir(), filepath.Join(t.TempDir(), "backup.db")
	if err := h.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	h.Stop()
	seen := map[string]bool{}
	for range 3 {
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, backup)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(kept); err != nil || seen[kept] {
			t.Fatalf("%s is not kept, or was before: %v", kept, err)
		}
		seen[kept] = true
	}
	reevetest.StartWith(t, host.Config{Dir: dir})
	if kept, err := host.Restore(t.Context(), host.Config{Dir: t.TempDir()}, backup); err != nil || kept != "" {
		t.Errorf("an empty directory: %q is said to be kept, %v", kept, err)
	}
}

// What is no backup is told to be none, and takes the place of nothing. The file of a server that runs is none either:
// its latest changes are elsewhere.
func TestRestore_RefusesWhatIsNoBackup(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Agent("late", "file_read") // which is in the log of the database, and not in its file
	dir, files := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "100%d.txt"), []byte(strings.Repeat("a letter\n", 1000)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "nothing.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, statements := range map[string]string{"other.db": "CREATE TABLE things (a)", "empty.db": "VACUUM",
		"goose.db": "CREATE TABLE goose_db_version (id INTEGER, version_id INTEGER); INSERT INTO goose_db_version " +
			"VALUES (1, 7)"} {
		db, err := sql.Open("sqlite", filepath.Join(files, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(statements); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		filepath.Join(files, "other.db"):   "it is the database of another program",
		filepath.Join(files, "empty.db"):   "it is the database of another program",
		filepath.Join(files, "nothing.db"): "nothing.db is not a backup of Reeve: it is empty",
		filepath.Join(files, "goose.db"):   "it is the database of another program",
		filepath.Join(files, "100%d.txt"): "100%d.txt is not a backup of Reeve: database file is damaged or is " +
			"not a database",
		files:                              "it is a folder",
		filepath.Join(h.Dir(), "reeve.db"): "a server has it open",
		filepath.Join(files, "none"):       "does not exist",
	} {
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, file)
		told := reeve.AsError(err)
		if kept != "" || (told.Code != reeve.Validation && told.Code != reeve.NotFound) ||
			!strings.Contains(told.Message, want) || !strings.HasSuffix(told.Message, "; nothing was changed") {
			t.Errorf("%s: %v", file, told)
		}
	}
	if left := listing(t, dir); left != "reeve.lock" {
		t.Errorf("they left %s", left)
	}
}

// A backup that the next start would refuse is refused before it replaces anything. One of an older Reeve is brought up
// to date then, and may lack what is made then.
func TestRestore_RefusesWhatCouldNotBeStarted(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, files := t.TempDir(), t.TempDir()
	if _, err := host.Restore(t.Context(), host.Config{Dir: dir}, changed(t, h, filepath.Join(files, "whole.db"),
		"ANALYZE")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "reeve.db"))
	if err != nil {
		t.Fatal(err)
	}
	names := listing(t, dir)
	const lacks = "it lacks tables, columns, indexes, triggers or versions: "
	for _, c := range []struct {
		statements, want string
		code             reeve.Code
	}{
		{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, 1)",
			"schema version 99999 is newer than the latest of this Reeve, which is ", reeve.Unsupported},
		{"DROP TABLE session_files; DROP TABLE notes", lacks + "notes, session_files", reeve.Validation},
		{"ALTER TABLE agents DROP COLUMN config; DROP INDEX agent_tools_tool",
			lacks + "agent_tools.agent_tools_tool, agents.config", reeve.Validation},
		{"DROP TRIGGER notes_deleted", lacks + "notes.notes_deleted", reeve.Validation},
		{"UPDATE goose_db_version SET version_id = version_id - 60 WHERE version_id >= 100",
			"schema version 41 is from before the first release", reeve.Unsupported},
		{"DROP INDEX calls_inbox; CREATE UNIQUE INDEX calls_inbox ON calls (id)",
			"these parts differ from its schema version ", reeve.Validation},
		// without its primary key
		{"CREATE TABLE other AS SELECT * FROM secrets; DROP TABLE secrets; ALTER TABLE other RENAME TO secrets",
			": secrets; nothing", reeve.Validation},
		{"DELETE FROM goose_db_version", "the database of another program", reeve.Validation},
	} {
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, changed(t, h, filepath.Join(files, "changed.db"),
			c.statements))
		told := reeve.AsError(err)
		if kept != "" || told.Code != c.code || !strings.Contains(told.Message, c.want) ||
			!strings.HasSuffix(told.Message, "; nothing was changed") || told.Hint == "" {
			t.Errorf("%s: %v", c.statements, told)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "reeve.db")); err != nil || !bytes.Equal(now, before) ||
		listing(t, dir) != names {
		t.Errorf("something was changed: there is %s (%v)", listing(t, dir), err)
	}
	reevetest.StartWith(t, host.Config{Dir: dir})
}

// A backup that was cut off is refused, also where it is only short of a part of its last page, which SQLite reads as
// zeros. What a restore left that was killed is gone at the next start.
func TestRestore_RefusesWhatWasCutOff(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir := t.TempDir()
	for _, by := range []int64{1, 10, 50, 100, 4096, -1, -4096} {
		file := changed(t, h, filepath.Join(t.TempDir(), "cut.db"), "ANALYZE")
		s, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, s.Size()-by); err != nil {
			t.Fatal(err)
		}
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, file)
		if told := reeve.AsError(err); kept != "" || told.Code != reeve.Validation ||
			!strings.Contains(told.Message, "damaged") || !strings.HasSuffix(told.Message, "; nothing was changed") {
			t.Errorf("short by %d: %v", by, err)
		}
	}
	if left := listing(t, dir); left != "reeve.lock" {
		t.Errorf("they left %s", left)
	}
	if err := os.WriteFile(filepath.Join(dir, "reeve.db.part"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".backup-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".backup-1/copy", ".doctor-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reevetest.StartWith(t, host.Config{Dir: dir})
	if left := listing(t, dir); strings.Contains(left, ".part") || strings.Contains(left, "-1") {
		t.Errorf("what was killed left %s", left)
	}
}

// changed is a backup to which something was done.
func changed(t *testing.T, h *reevetest.Host, file, statements string) string {
	t.Helper()
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := h.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), statements)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// A tool that does not say what it cost has cost what it declares.
func TestG17_DeclaredCostIsCharged(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, reeve.MustTool(reeve.Tool{ID: "buys", Description: "Buys something.", Effect: reeve.Read,
		Cost: reeve.Amount{Micros: 5, Tokens: 1}},
		func(context.Context, struct{}) (string, error) { return "bought", nil }))
	a := h.Agent("buyer", "buys")
	h.Want(200, nil, "PUT", "/api/budgets/agent:"+a.ID, map[string]any{"limit": map[string]any{"micros": 12}})
	h.Call(a.ID, "buys", map[string]any{})
	h.Call(a.ID, "buys", map[string]any{})
	h.Want(402, nil, "POST", "/api/agents/"+a.ID+"/calls", map[string]any{"tool": "buys"})
	var list api.BudgetList
	h.Want(200, &list, "GET", "/api/budgets", nil)
	if b := list.Budgets[0]; b.Used.Micros != 10 || b.Used.Tokens != 2 || b.Reserved.Micros != 0 {
		t.Errorf("%+v", b)
	}
}
