package server_test

import (
	"bytes"
	"database/sql"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
)

// Restoring a PostgreSQL backup as SQLite fails, and the error says how to use pg_restore into an empty database.
func TestRestore_OfPostgresIsByHand(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("ab", 32)
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: storetest.PostgresURL(t), SecretKey: key})
	h.Agent("kept", "file_read")
	file, dir := filepath.Join(t.TempDir(), "reeve.dump"), t.TempDir()
	if err := h.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"", "postgres://nobody@127.0.0.1:1/none"} {
		_, err := host.Restore(t.Context(), host.Config{Dir: dir, Database: database}, file)
		told := reeve.AsError(err)
		if told.Code != reeve.Unsupported || !strings.Contains(told.Message, "PostgreSQL database") ||
			!strings.Contains(told.Hint, "pg_restore --no-owner --dbname=URL FILE") {
			t.Errorf("%q: %v; %s", database, told, told.Hint)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "reeve.db")); err == nil {
		t.Error("it was restored all the same")
	}
	url := storetest.EmptyPostgresURL(t)
	if out, err := exec.CommandContext(t.Context(), "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+url,
		file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	again := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: url, SecretKey: key})
	var list api.AgentList
	again.Want(http.StatusOK, &list, "GET", "/api/agents", nil)
	if len(list.Agents) != 1 || list.Agents[0].Name != "kept" {
		t.Errorf("%+v", list.Agents)
	}
}

// Each restore keeps the database that it replaces.
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

// A file that is not a backup is refused and replaces nothing. The file of a running server is not a backup either,
// because its latest changes are in the log.
func TestRestore_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Agent("late", "file_read") // which is in the log of the database, and not in its file
	dir, files := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "100%d.txt"), []byte(strings.Repeat("a letter\n", 1000)), 0o600); err != nil {
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
	if left := listDir(t, dir); left != "reeve.lock" {
		t.Errorf("they left %s", left)
	}
}

// A backup that the next start would refuse is refused before it replaces anything. A backup of an older version is
// migrated at that start.
func TestRestore_RefusesBackupsThatCannotStart(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir, files := t.TempDir(), t.TempDir()
	if _, err := host.Restore(t.Context(), host.Config{Dir: dir}, alterBackup(t, h, filepath.Join(files, "whole.db"),
		"ANALYZE")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "reeve.db"))
	if err != nil {
		t.Fatal(err)
	}
	names := listDir(t, dir)
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
		{"UPDATE goose_db_version SET version_id = version_id - 99 WHERE version_id >= 100",
			"is from before the first release", reeve.Unsupported},
		{"DROP INDEX calls_inbox; CREATE UNIQUE INDEX calls_inbox ON calls (id)",
			"these parts differ from its schema version ", reeve.Validation},
		// without its primary key
		{"CREATE TABLE other AS SELECT * FROM secrets; DROP TABLE secrets; ALTER TABLE other RENAME TO secrets",
			": secrets; nothing", reeve.Validation},
		{"DELETE FROM goose_db_version", "the database of another program", reeve.Validation},
	} {
		kept, err := host.Restore(t.Context(), host.Config{Dir: dir}, alterBackup(t, h, filepath.Join(files, "changed.db"),
			c.statements))
		told := reeve.AsError(err)
		if kept != "" || told.Code != c.code || !strings.Contains(told.Message, c.want) ||
			!strings.HasSuffix(told.Message, "; nothing was changed") || told.Hint == "" {
			t.Errorf("%s: %v", c.statements, told)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "reeve.db")); err != nil || !bytes.Equal(now, before) ||
		listDir(t, dir) != names {
		t.Errorf("something was changed: there is %s (%v)", listDir(t, dir), err)
	}
	reevetest.StartWith(t, host.Config{Dir: dir})
}

// A truncated backup is refused, also if only a part of its last page is missing, which SQLite reads as zeros. The next
// start removes what a killed restore left.
func TestRestore_RefusesTruncatedBackups(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir := t.TempDir()
	for _, by := range []int64{1, 10, 50, 100, 4096, -1, -4096} {
		file := alterBackup(t, h, filepath.Join(t.TempDir(), "cut.db"), "ANALYZE")
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
	if left := listDir(t, dir); left != "reeve.lock" {
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
	if left := listDir(t, dir); strings.Contains(left, ".part") || strings.Contains(left, "-1") {
		t.Errorf("what was killed left %s", left)
	}
}

// alterBackup makes a backup, executes statements on it and returns its path.
func alterBackup(t *testing.T, h *reevetest.Host, file, statements string) string {
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
