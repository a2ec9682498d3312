package host_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve/reevetest"
	"reeve/test/kit"
)

// repo is a repository of somebody's, with git as they run it.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo makes a repository with one commit on main, somewhere that others may walk to.
func newRepo(t testing.TB, files map[string]string) repo {
	t.Helper()
	r := repo{t, filepath.Join(t.TempDir(), "site")}
	for dir := r.dir; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.git("init", "-q", "-b", "main")
	if files != nil {
		r.commit(files)
	}
	return r
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r repo) try(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", r.dir, "-c", "user.name=ann", "-c", "user.email=ann@example.com"},
		args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r repo) commit(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		r.write(name, text)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "by hand")
}

func (r repo) write(name, text string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) read(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "no: " + err.Error()
	}
	return string(b)
}

// newWorker makes an agent that works on a project with a repository; ok is false where commands cannot be confined,
// which is told.
func newWorker(t *testing.T, r repo, settings map[string]any) (w kit.ShellAgent, ok bool) {
	t.Helper()
	h := reevetest.StartWith(t, kit.FastConfig(t))
	w = kit.ShellAgent{Host: h, Agent: h.Agent("dev", "shell_exec", "file_list")}
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return w, false
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/projects", map[string]any{"name": "site", "path": r.dir,
		"default_branch": "main"})
	w.Configure(settings)
	return w, true
}
