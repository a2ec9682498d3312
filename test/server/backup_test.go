package server_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Without pg_dump a backup of PostgreSQL fails with the reason, not with a truncated answer.
func TestBackup_SaysThatThereIsNoPgDump(t *testing.T) {
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Database: storetest.PostgresURL(t)})
	if r := h.Do("GET", "/api/backup", nil); r.Status != http.StatusOK || !strings.HasPrefix(string(r.Body), "PGDMP") {
		t.Fatalf("with pg_dump: %d %.200s", r.Status, r.Body)
	}
	if d := kit.GetHealth(h, "database"); !d.OK || strings.Contains(d.Detail, "pg_dump") {
		t.Errorf("the doctor says %+v", d)
	}
	t.Setenv("PATH", t.TempDir())
	var p api.Problem
	h.Want(http.StatusNotImplemented, &p, "GET", "/api/backup", nil)
	if p.Code != reeve.Unsupported || !strings.Contains(p.Detail, "pg_dump") || !strings.Contains(p.Hint, "PATH") {
		t.Errorf("%+v", p)
	}
	if d := kit.GetHealth(h, "database"); !d.OK || !strings.Contains(d.Detail, "pg_dump is not in") {
		t.Errorf("the doctor says %+v", d)
	}
}

// A backup never replaces a file of a data directory, under whatever name. A server whose database is replaced would
// write to a file that nobody sees.
func TestBackup_SparesTheFilesOfADataDirectory(t *testing.T) {
	h := reevetest.Start(t)
	elsewhere, dir := t.TempDir(), h.Dir()
	link, hard, folder := filepath.Join(elsewhere, "link.db"), filepath.Join(elsewhere, "hard.db"),
		filepath.Join(elsewhere, "folder")
	for _, err := range []error{os.Symlink(filepath.Join(dir, "reeve.db"), link),
		os.Link(filepath.Join(dir, "reeve.db"), hard), os.Symlink(dir, folder)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	taken := []string{link, hard, filepath.Join(folder, "reeve.db"), "reeve.db", filepath.Join(dir, "workspaces", "..",
		"reeve.db")}
	// some of them are not there yet
	for _, name := range []string{"reeve.db", "reeve.db-wal", "reeve.db-shm", "reeve.db-journal", "owner.token",
		"secret.key", "reeve.lock", "server.json", "reeve.yaml", "python", "branches", "workspaces", "python/"} {
		taken = append(taken, filepath.Join(dir, name))
	}
	before := listDir(t, dir)
	for _, file := range taken {
		err := h.Backup(t.Context(), file)
		told := reeve.AsError(err)
		if told.Code != reeve.Validation || !strings.Contains(told.Message, "nothing was written") ||
			!strings.Contains(told.Hint, "choose another file name") ||
			!strings.Contains(told.Hint, "reeve restore FILE") {
			t.Errorf("%s: %v; %s", file, told, told.Hint)
		}
	}
	if now := listDir(t, dir); now != before {
		t.Errorf("there were %s, and are %s", before, now)
	}
	for _, dir := range []string{"", "nowhere", elsewhere} { // another server's directory is spared as well
		if err := host.CheckTarget(filepath.Join(h.Dir(), "secret.key"), dir); err == nil {
			t.Errorf("with %q in mind it was taken", dir)
		}
	}
	// a name alone makes no data directory
	for _, file := range []string{filepath.Join(elsewhere, "reeve.db"), filepath.Join(dir, "monday.db")} {
		if err := h.Backup(t.Context(), file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := host.CheckTarget(file, dir); err != nil {
			t.Errorf("%s again: %v", file, err)
		}
	}
}

// Neither backup nor restore replaces a device, pipe or folder, also through a link. A link to a file is replaced like
// a file. No pipe is opened, because that would block.
func TestBackup_ReplacesFilesOnly(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	file := in("file.db")
	if err := errors.Join(h.Backup(t.Context(), file), syscall.Mkfifo(in("pipe"), 0o600), os.Mkdir(in("folder"), 0o700),
		os.Symlink(in("pipe"), in("to-pipe")), os.Symlink(in("folder"), in("to-folder")),
		os.Symlink(file, in("to-file")), os.Symlink(in("nothing"), in("to-nothing"))); err != nil {
		t.Fatal(err)
	}
	cases := map[string][2]string{
		"":                   {"name of the backup is empty", "set a file name"},
		in("pipe"):           {"is a pipe", in("reeve-monday.db")},
		in("to-pipe"):        {"is a pipe", in("reeve-monday.db")},
		in("folder"):         {"is a folder", in("folder/reeve-monday.db")},
		in("to-folder"):      {"is a folder", in("to-folder/reeve-monday.db")},
		in("missing/x.db"):   {"the directory " + in("missing") + " does not exist", "create the directory"},
		in("missing") + "/":  {"the directory " + in("missing") + " does not exist", "create the directory"},
		in("file.db/inside"): {"the directory " + file + " does not exist", "create the directory"},
	}
	if err := syscall.Mknod(in("device"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil { // which takes root
		cases[in("device")] = [2]string{"is a device", in("reeve-monday.db")}
	}
	before := listDir(t, dir)
	for name, want := range cases {
		for _, err := range []error{host.CheckTarget(name), h.Backup(t.Context(), name)} {
			if told := reeve.AsError(err); told.Code != reeve.Validation || !strings.Contains(told.Message, want[0]) ||
				!strings.Contains(told.Message, "nothing was written") || !strings.Contains(told.Hint, want[1]) {
				t.Errorf("%q: %v; %s", name, told, told.Hint)
			}
		}
	}
	for _, name := range []string{file, in("to-file"), in("to-nothing"), in("new.db")} {
		if err := host.CheckTarget(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := host.Restore(t.Context(), host.Config{Dir: t.TempDir()}, in("pipe")); reeve.CodeOf(err) != reeve.Validation || !strings.Contains(err.Error(), "it is a pipe") {
		t.Errorf("restored from a pipe: %v", err)
	}
	for _, name := range []string{"reeve.db", "reeve.db.part"} {
		data := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(data, name), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, err := host.Restore(t.Context(), host.Config{Dir: data}, file)
		if s, gone := os.Stat(filepath.Join(data, name)); reeve.CodeOf(err) != reeve.Conflict || kept != "" ||
			gone != nil || s.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("restored onto a pipe %s: %v %q", name, err, kept)
		}
	}
	if now := listDir(t, dir); now != before {
		t.Errorf("there were %s, and are %s", before, now)
	}
}
