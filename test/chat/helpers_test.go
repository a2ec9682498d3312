package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

const farScript = "- {when: begin, calls: [{name: far, args: {}}]}\n- {when: {result: Started}, text: 'I have " +
	"begun.'}\n- {when: has arrived, text: 'It is done.'}\n"

// weather is a tool that the client offers.
var weather = kit.Object{"type": "function", "function": kit.Object{"name": "get_weather",
	"parameters": kit.Object{"type": "object", "properties": kit.Object{"city": kit.Object{"type": "string"}}}}}

// repo is a git repository of a person.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo creates a repository with one commit on main, in a folder that other users can enter.
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
	out, err := r.tryGit(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r repo) tryGit(args ...string) (string, error) {
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

// newShellAgent starts a host with an agent that works on a project with a repository. ok is false, with a log line,
// where commands cannot be confined.
func newShellAgent(t *testing.T, r repo, settings map[string]any) (w kit.ShellAgent, ok bool) {
	t.Helper()
	cfg := kit.FastConfig(t)
	cfg.Model = kit.ScriptedModel(t, "answers: []") // it makes the calls that it is told to make, also as the planner
	h := reevetest.StartWith(t, cfg)
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

// readEvents reads server-sent events up to an event name, and returns their ids and names.
func readEvents(h *reevetest.Host, method, path, body, until string, headers ...string) (ids, names []string) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), reevetest.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.T.Fatal(err)
	}
	for _, p := range [][2]string{{"Authorization", "Bearer " + h.Token}, {"X-Workspace-Id", "default"},
		{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}} {
		req.Header.Set(p[0], p[1])
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		b, _ := io.ReadAll(res.Body)
		h.T.Fatalf("%s %s: %s", res.Status, kind, b)
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			if n := len(names); n == 0 || names[n-1] != name {
				names = append(names, name)
			}
			if name == until {
				break
			}
		}
	}
	return ids, names
}

// listAnswers returns the stored texts of the agent in a turn.
func listAnswers(t *testing.T, d api.TurnDetail) (list []string) {
	t.Helper()
	for _, m := range d.Messages {
		var info reeve.MessageInfo
		if json.Unmarshal(m.Metadata, &info) == nil && (info.Type == "answer" || info.Type == "final") {
			list = append(list, m.Content)
		}
	}
	return list
}

// playgroundEvent is an event of the playground.
type playgroundEvent struct {
	Type, Text, ToolCallID, ToolName, Result, SessionID, ConversationID, TurnID string
	Args                                                                        json.RawMessage
	Code                                                                        reeve.Code
	State                                                                       reeve.RunState
}

// postPlayground sends a message in a session and passes each event to f. When f returns true it disconnects.
func postPlayground(h *reevetest.Host, session string, body kit.Object, f func(playgroundEvent) bool) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), reevetest.Timeout)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		h.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, "POST", h.URL+"/api/playground/sessions/"+session+"/chat",
		strings.NewReader(string(b)))
	if err != nil {
		h.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("X-Workspace-Id", "default")
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.T.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		h.T.Fatalf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return
		}
		var p playgroundEvent
		if err := json.Unmarshal([]byte(data), &p); err != nil {
			h.T.Fatalf("%s: %v", data, err)
		}
		if f(p) {
			return
		}
	}
	h.T.Errorf("the stream ended without [DONE]: %v", lines.Err())
}

// messageIDs returns the ids of messages, in order, as text.
func messageIDs(list []reeve.Message) string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// readPages returns the messages of a run, read in pages of limit messages.
func readPages(h *reevetest.Host, agent, run string, limit int, headers ...string) (out []reeve.Message) {
	h.T.Helper()
	for cursor := ""; ; {
		var page api.MessageList
		h.Want(http.StatusOK, &page, "GET", fmt.Sprintf("/api/agents/%s/messages?run=%s&limit=%d&cursor=%s", agent, run,
			limit, cursor), nil, headers...)
		out = append(out, page.Messages...)
		if cursor = page.Next; cursor == "" {
			return out
		}
	}
}

// newFarTool returns an asynchronous tool whose outcome a client reports.
func newFarTool(sent *sync.Map) reeve.Tool {
	t := kit.Tool("far", reeve.Keyed, func(_ context.Context, inv *reeve.Invocation) (any, error) {
		n, _ := sent.LoadOrStore(inv.Operation, new(int))
		*n.(*int)++
		return nil, reeve.Errorf(reeve.InProgress, "it will come")
	})
	t.Async, t.TimeoutMS = true, 60_000
	return t
}

// runForOpenAI runs a host with the script that the tests of OpenAI clients use.
func runForOpenAI(t *testing.T) *reevetest.Host {
	t.Helper()
	cfg := host.Config{Dir: t.TempDir()}
	cfg.Models.Default, cfg.Models.Script = "rehearsal", "../../model/testdata/clients.yaml"
	h := reevetest.Run(t, cfg,
		kit.Tool("look", reeve.Read, func(context.Context, *reeve.Invocation) (any, error) { return "seen", nil }))
	h.Want(http.StatusCreated, nil, "POST", "/api/agents",
		kit.Object{"name": "mock", "config": kit.Object{"model": "mock"}})
	return h
}
