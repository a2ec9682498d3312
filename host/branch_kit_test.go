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

// ShellAgent is an engineer who runs commands on a project, without asking, in a conversation.
type ShellAgent struct {
	Host  *reevetest.Host
	Agent reeve.Agent
}

// CommandResult is what a command came to.
type CommandResult struct {
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
func newWorker(t *testing.T, r repo, settings map[string]any) (w ShellAgent, ok bool) {
	t.Helper()
	h := reevetest.StartWith(t, FastConfig(t))
	w = ShellAgent{h, h.Agent("dev", "shell_exec", "file_list")}
	if reason := ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return w, false
	}
	h.Want(http.StatusCreated, nil, "POST", "/api/projects", map[string]any{"name": "site", "path": r.dir,
		"default_branch": "main"})
	w.Configure(settings)
	return w, true
}

// Configure gives the agent its settings for commands.
func (w ShellAgent) Configure(settings map[string]any) {
	w.Host.T.Helper()
	if settings == nil {
		settings = map[string]any{"project": "site"}
	}
	at := "/api/agents/" + w.Agent.ID
	w.Host.Want(200, nil, "PATCH", at,
		map[string]any{"kind": "engineer", "policy": map[string]any{"tools": map[string]any{"shell_exec": "allow"}}})
	w.Host.Want(204, nil, "DELETE", at+"/tools/shell_exec", nil)
	w.Host.Want(201, nil, "POST", at+"/tools", map[string]any{"tool_id": "shell_exec", "config": settings})
}

// StartConversation begins a conversation and gives its id.
func (w ShellAgent) StartConversation() string { return w.Host.Talk("dev").ID }

// Run runs a command that must come to an end.
func (w ShellAgent) Run(conversation, command string, more ...any) (out CommandResult) {
	w.Host.T.Helper()
	res, p, status := w.TryRun(conversation, command, more...)
	if status != http.StatusOK || res.IsError {
		w.Host.T.Fatalf("%s: %d %+v %s", command, status, p, res.Content)
	}
	if err := json.Unmarshal([]byte(res.Content), &out); err != nil {
		w.Host.T.Fatalf("%v: %s", err, res.Content)
	}
	return out
}

func (w ShellAgent) TryRun(conversation, command string, more ...any) (reeve.Result, api.Problem, int) {
	w.Host.T.Helper()
	args := map[string]any{"command": command}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return TryCall(w.Host, "dev", Call{"tool": "shell_exec", "session": conversation, "args": args})
}

func (w ShellAgent) GetBranch(id string) (b reeve.Branch) {
	w.Host.T.Helper()
	w.Host.Want(200, &b, "GET", "/api/branches/"+id, nil)
	return b
}

func (w ShellAgent) Merge(id string) (m reeve.MergeResult, p api.Problem, status int) {
	w.Host.T.Helper()
	r := w.Host.Do("POST", "/api/branches/"+id+"/merge", map[string]any{})
	if r.Status < 300 {
		r.Decode(w.Host.T, &m)
	} else {
		r.Decode(w.Host.T, &p)
	}
	return m, p, r.Status
}
