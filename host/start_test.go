package host_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
)

// What cannot be opened is said in words, and the directory is free again.
func TestStart_WhatCannotBeOpenedIsSaid(t *testing.T) {
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
				if err == nil || h != nil || reeve.CodeOf(err) == reeve.Internal || strings.Contains(err.Error(), "another Reeve") {
					t.Fatalf("%v, %v", h, err)
				}
			}
		})
	}
	if _, err := host.New(t.Context(), host.Config{Dir: t.TempDir(), Database: "postgres://nobody@127.0.0.1:1/none"}); reeve.CodeOf(err) != reeve.Unavailable {
		t.Errorf("a database that is down: %v", err)
	}
}

// Each restore keeps what it replaces.
func TestRestore_KeepsEveryDatabaseItReplaces(t *testing.T) {
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

// What is no backup is told to be none, and takes the place of nothing. The file of a server that runs is none either: its latest changes are elsewhere.
func TestRestore_RefusesWhatIsNoBackup(t *testing.T) {
	h := reevetest.Start(t)
	h.Agent("late", "file_read") // which is in the log of the database, and not in its file
	dir, files := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "100%d.txt"), []byte(strings.Repeat("a letter\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, statements := range map[string]string{"other.db": "CREATE TABLE things (a)", "empty.db": "VACUUM",
		"goose.db": "CREATE TABLE goose_db_version (id INTEGER, version_id INTEGER); INSERT INTO goose_db_version VALUES (1, 7)"} {
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
		filepath.Join(files, "other.db"):   "it is a database, but not one of Reeve's",
		filepath.Join(files, "empty.db"):   "it is a database, but not one of Reeve's",
		filepath.Join(files, "goose.db"):   "it is a database, but not one of Reeve's",
		filepath.Join(files, "100%d.txt"):  "100%d.txt is not a backup of Reeve: the database file is damaged or is not a database",
		files:                              "it is no file",
		filepath.Join(h.Dir(), "reeve.db"): "a server has it open",
		filepath.Join(files, "none"):       "there is no file",
	} {
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, file)
		told := reeve.AsError(err)
		if kept != "" || (told.Code != reeve.Validation && told.Code != reeve.NotFound) || !strings.Contains(told.Message, want) || !strings.HasSuffix(told.Message, "; nothing was changed") {
			t.Errorf("%s: %v", file, told)
		}
	}
	if left := listing(t, dir); left != "reeve.lock" {
		t.Errorf("they left %s", left)
	}
}

// A tool that does not say what it cost has cost what it declares.
func TestG17_DeclaredCostIsCharged(t *testing.T) {
	h := reevetest.Start(t, reeve.MustTool(reeve.Tool{ID: "buys", Description: "Buys something.", Effect: reeve.Read, Cost: reeve.Amount{Micros: 5, Tokens: 1}},
		func(context.Context, struct{}) (string, error) { return "bought", nil }))
	a := h.Agent("buyer", "buys")
	h.Want(200, nil, "PUT", "/api/budgets/agent:"+a.ID, map[string]any{"limit": map[string]any{"micros": 12}})
	h.Call(a.ID, "buys", map[string]any{})
	h.Call(a.ID, "buys", map[string]any{})
	h.Want(402, nil, "POST", "/api/agents/"+a.ID+"/calls", map[string]any{"tool": "buys"})
	var list reeve.BudgetList
	h.Want(200, &list, "GET", "/api/budgets", nil)
	if b := list.Budgets[0]; b.Used.Micros != 10 || b.Used.Tokens != 2 || b.Reserved.Micros != 0 {
		t.Errorf("%+v", b)
	}
}
