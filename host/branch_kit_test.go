package host_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
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

// worker is an engineer who runs commands on a project, without asking, in a conversation.
type worker struct {
	h     *reevetest.Host
	agent reeve.Agent
}

// ran is what a command came to.
type ran struct {
	ExitCode int    `json:"exit_code"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	TimedOut bool   `json:"timed_out"`
	Branch   string `json:"branch"`
	Commit   string `json:"commit"`
	Note     string `json:"note"`
}

// newWorker makes an agent that works on a project with a repository; ok is false where commands cannot be confined,
// which is told.
func newWorker(t *testing.T, r repo, settings map[string]any) (w worker, ok bool) {
	t.Helper()
	h := reevetest.StartWith(t, quick(t))
	w = worker{h, h.Agent("dev", "shell_exec", "file_list")}
	if reason := shellBroken(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return w, false
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/projects", map[string]any{"name": "site", "path": r.dir,
		"default_branch": "main"})
	w.set(settings)
	return w, true
}

// set gives the agent its settings for commands.
func (w worker) set(settings map[string]any) {
	w.h.T.Helper()
	if settings == nil {
		settings = map[string]any{"project": "site"}
	}
	at := "/api/agents/" + w.agent.ID
	w.h.Want(200, nil, "PATCH", at,
		map[string]any{"kind": "engineer", "policy": map[string]any{"tools": map[string]any{"shell_exec": "allow"}}})
	w.h.Want(204, nil, "DELETE", at+"/tools/shell_exec", nil)
	w.h.Want(201, nil, "POST", at+"/tools", map[string]any{"tool_id": "shell_exec", "config": settings})
}

// talk begins a conversation and gives its id.
func (w worker) talk() string { return w.h.StartConversation("dev").ID }

// run runs a command that must come to an end.
func (w worker) run(conversation, command string, more ...any) (out ran) {
	w.h.T.Helper()
	res, p, status := w.try(conversation, command, more...)
	if status != http.StatusOK || res.IsError {
		w.h.T.Fatalf("%s: %d %+v %s", command, status, p, res.Content)
	}
	if err := json.Unmarshal([]byte(res.Content), &out); err != nil {
		w.h.T.Fatalf("%v: %s", err, res.Content)
	}
	return out
}

func (w worker) try(conversation, command string, more ...any) (reeve.Result, api.Problem, int) {
	w.h.T.Helper()
	args := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return do(w.h, "dev", call{"tool": "shell_exec", "session": conversation, "args": args})
}

func (w worker) branch(id string) (b reeve.Branch) {
	w.h.T.Helper()
	w.h.Want(200, &b, "GET", "/api/branches/"+id, nil)
	return b
}

func (w worker) merge(id string) (m reeve.MergeResult, p api.Problem, status int) {
	w.h.T.Helper()
	r := w.h.Do("POST", "/api/branches/"+id+"/merge", map[string]any{})
	if r.Status < 300 {
		r.Decode(w.h.T, &m)
	} else {
		r.Decode(w.h.T, &p)
	}
	return m, p, r.Status
}
