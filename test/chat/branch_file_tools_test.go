package chat_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// fileTools are the file tools that see the folder of a project.
var fileTools = []string{"file_read", "file_search", "file_write", "file_edit", "file_delete", "file_restore"}

// decodeChange decodes where the change of a file tool went.
func decodeChange(t *testing.T, content string) (s struct{ Branch, Commit, Note, State string }) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), &s); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	return s
}

// newFileAgent is newShellAgent with the file tools attached.
func newFileAgent(t *testing.T, r repo) (kit.ShellAgent, bool) {
	w, ok := newShellAgent(t, r, nil)
	for _, tool := range fileTools {
		w.Host.Want(201, nil, "POST", "/api/agents/dev/tools", kit.Object{"tool_id": tool})
	}
	w.Host.Want(200, nil, "PATCH", "/api/agents/dev",
		kit.Object{"policy": kit.Object{"tools": kit.Object{"shell_exec": "allow", "file_delete": "allow"}}})
	return w, ok
}

// The file tools see /project as commands do. Each change is a commit, an undo is one more, and another conversation
// sees none of it.
func TestW15_FileToolsWorkOnTheBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n", "dir/other.txt": "same\n", "run.sh": "echo hi\n"})
	w, ok := newFileAgent(t, r)
	if !ok {
		return
	}
	main := r.git("rev-parse", "main")
	first, second := w.StartConversation(), w.StartConversation()
	name := "reeve/conv-" + strings.TrimPrefix(first, "conv_")
	if got, _ := w.CallFileTool(first, "file_list", kit.Call{"path": "/"}); !strings.Contains(got,
		`"name":"project"`) ||
		!strings.Contains(got, `"name":"shared"`) {
		t.Errorf("/ holds %s", got)
	}
	if got, _ := w.CallFileTool(first, "file_list", kit.Call{"path": "/project"}); !strings.Contains(got,
		`"total":3`) ||
		strings.Contains(got, ".git") {
		t.Errorf("/project holds %s", got)
	}
	if got, _ := w.CallFileTool(first, "file_read", kit.Call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("%s", got)
	}
	if r.git("rev-parse", name) != main {
		t.Error("reading changed the branch")
	}
	got, res := w.CallFileTool(first, "file_write", kit.Call{"path": "/project/src/new.txt",
		"content": "needle here\n"})
	s := decodeChange(t, got)
	if s.Branch != name || s.Commit == "" || r.git("rev-parse", name) != s.Commit ||
		r.git("show", name+":src/new.txt") != "needle here" {
		t.Errorf("%s", got)
	}
	if said := r.git("log", "-1", "--format=%an %B", name); !strings.HasPrefix(said, "dev file_write src/new.txt\n") ||
		!strings.Contains(said, "Reeve-Conversation: "+first) ||
		!strings.Contains(said, "Reeve-Operation: "+res.OperationID) {
		t.Errorf("the commit says %q", said)
	}
	if got, _ := w.CallFileTool(first, "file_write", kit.Call{"path": "/project/src/new.txt",
		"content":   "needle here\n",
		"overwrite": true}); decodeChange(t, got).Commit != "" {
		t.Errorf("nothing changed: %s", got)
	}
	if got, _ := w.CallFileTool(first, "file_search", kit.Call{"query": "needle"}); !strings.Contains(got,
		`"path":"/project/src/new.txt"`) {
		t.Errorf("%s", got)
	}
	got, res = w.CallFileTool(first, "file_edit", kit.Call{"path": "/project/page.txt", "old": "one", "new": "two"})
	if decodeChange(t, got).Commit == "" || r.git("show", name+":page.txt") != "two" {
		t.Errorf("%s", got)
	}
	if got := w.Run(first, "cat page.txt src/new.txt; ls -A; echo three >> page.txt"); got.Stdout != "two\nneedle here\n.git\ndir\npage.txt\nrun.sh\nsrc\n" || got.Commit == "" {
		t.Errorf("commands see %+v", got)
	}
	if got, _ := w.CallFileTool(first, "file_read", kit.Call{"path": "/project/page.txt"}); !strings.Contains(got,
		`two\nthree\n`) {
		t.Errorf("%s", got)
	}
	got, res = w.CallFileTool(first, "file_delete", kit.Call{"path": "/project/dir", "recursive": true})
	if decodeChange(t, got).Commit == "" || strings.Contains(r.git("ls-tree", "-r", "--name-only", name), "dir/") {
		t.Errorf("%s", got)
	}
	var undone reeve.Result
	w.Host.Want(200, &undone, "POST", "/api/operations/"+res.OperationID+"/undo", nil)
	if decodeChange(t, undone.Content).Commit == "" || r.git("show", name+":dir/other.txt") != "same" {
		t.Errorf("undone: %s", undone.Content)
	}
	if _, err := w.CallFileTool(first, "file_write", kit.Call{"path": "/project/run.sh", "content": "echo ho\n",
		"overwrite": true}); err.IsError || !strings.HasPrefix(r.git("ls-tree", name, "run.sh"), "100755") {
		t.Errorf("it cannot be run any more: %s", r.git("ls-tree", name))
	}

	// send_media can send a file of /project once the branch exists.
	w.Host.Want(201, nil, "POST", "/api/agents/dev/tools", kit.Object{"tool_id": "send_media"})
	if got, res := w.CallFileTool(second, "send_media", kit.Call{"path": "/project/page.txt"}); res.Code != reeve.Conflict ||
		!strings.Contains(got, "/project is empty") {
		t.Errorf("without a branch: %s", got)
	}
	if got, res := w.CallFileTool(first, "send_media", kit.Call{"path": "/project/src/new.txt"}); res.IsError ||
		len(kit.ListMediaFrames(w.Host, first)) != 1 {
		t.Errorf("%s", got)
	}

	// The other conversation, the default branch and the workspace's own files are as they were.
	if got, _ := w.CallFileTool(second, "file_read", kit.Call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("the second sees %s", got)
	}
	if got, _ := w.CallFileTool(second, "file_list", kit.Call{"path": "/project/src"}); !strings.Contains(got,
		"not found") {
		t.Errorf("the second sees %s", got)
	}
	if r.git("rev-parse", "main") != main || r.git("status", "--porcelain") != "" {
		t.Errorf("the default branch changed: %s", r.git("log", "--oneline", "--all"))
	}
	if got, _ := w.CallFileTool(first, "file_list", kit.Call{"path": "/shared"}); !strings.Contains(got, `"total":0`) {
		t.Errorf("/shared holds %s", got)
	}
	// A person merges the branch. After it is discarded, its files cannot be read.
	if _, p, status := w.Merge(first); status != 200 || r.read("src/new.txt") != "needle here\n" {
		t.Errorf("%d %+v", status, p)
	}
	w.Host.Want(200, nil, "POST", "/api/branches/"+first+"/discard", nil)
	if got, _ := w.CallFileTool(first, "file_read", kit.Call{"path": "/project/src/new.txt"}); !strings.Contains(got,
		"needle") {
		t.Errorf("the branch begins anew: %s", got)
	}
}

// A hostile agent plants links and folders with commands and names foreign paths with the file tools.
func TestW15_FileToolsStayInTheirProject(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newFileAgent(t, r)
	if !ok {
		return
	}
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("treasure"), 0o644); err != nil {
		t.Fatal(err)
	}
	talk := w.StartConversation()
	w.Run(talk, "ln -s "+outside+
		" link; ln -s / slash; ln -s .git git; mkdir -p sub; ln -s ../../.. sub/up; mkfifo pipe; echo "+
		"'[core]\n\tfsmonitor = /bin/false' > planted")
	for path, code := range map[string]string{
		"/project/link": "DENIED", "/project/slash" + outside: "DENIED", "/project/git/config": "DENIED",
		"/project/sub/up/reeve.db": "DENIED", "/project/pipe": "DENIED",
		"/project/.git/config": "DENIED", "/project/.GIT/config": "DENIED",
		"/project/sub/.git/hooks/pre-commit": "DENIED", "/project/../reeve.db": "DENIED", "/project/.reeve-x": "DENIED",
		"/project": "DENIED", "/project/": "DENIED", "/projects/page.txt": "DENIED",
		"/project/page.txt\x00": "VALIDATION",
	} {
		for _, tool := range []string{"file_read", "file_write", "file_edit", "file_delete"} {
			args := map[string]kit.Call{"file_read": {}, "file_write": {"content": "x", "overwrite": true},
				"file_edit": {"old": "o", "new": "x"}, "file_delete": {"recursive": true}}[tool]
			args["path"] = path
			got, res := w.CallFileTool(talk, tool, args)
			if tool == "file_delete" && (path == "/project/link" || path == "/project/pipe") || tool == "file_read" &&
				strings.Trim(path, "/") == "project" {
				continue // deleting a link or pipe itself is allowed; reading a folder has another code
			}
			if !strings.HasPrefix(got, code) && string(res.Code) != code {
				t.Errorf("%s %s: %s", tool, path, got)
			}
			if strings.Contains(got, "treasure") || strings.Contains(got, outside) && path != "/project/slash"+outside {
				t.Errorf("%s %s gives %s", tool, path, got)
			}
		}
	}
	if got, _ := w.CallFileTool(talk, "file_search", kit.Call{"query": "repositoryformatversion", "path": "/project"}); !strings.Contains(got, `"matches":[]`) {
		t.Errorf("git's own is searched: %s", got)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "treasure" {
		t.Errorf("outside is %q, %v", b, err)
	}
	// Restoring a deleted folder of /shared into /project skips its .git.
	for _, path := range []string{"/shared/kept/.git/config", "/shared/kept/sub/.GIT", "/shared/kept/a.txt"} {
		w.CallFileTool(talk, "file_write", kit.Call{"path": path, "content": "[core]\n"})
	}
	var kept struct{ Kept string }
	got, _ := w.CallFileTool(talk, "file_delete", kit.Call{"path": "/shared/kept", "recursive": true})
	if err := json.Unmarshal([]byte(got), &kept); err != nil {
		t.Fatal(err, got)
	}
	if got, _ := w.CallFileTool(talk, "file_restore", kit.Call{"path": "/project/kept", "hash": kept.Kept}); !strings.Contains(got,
		`"skipped":["/project/kept/.git","/project/kept/sub/.GIT"]`) {
		t.Errorf("%s", got)
	}
	if out := w.Run(talk, "find kept | sort"); out.Stdout != "kept\nkept/a.txt\nkept/sub\n" {
		t.Errorf("%+v", out)
	}
	if got, _ := w.CallFileTool(talk, "file_restore", kit.Call{"path": "/shared/kept", "hash": kept.Kept}); strings.Contains(got,
		"skipped") {
		t.Errorf("outside of a project: %s", got)
	}
	// A temporary file that an interrupted call left behind is not committed.
	w.Run(talk, "echo left > sub/.reeve-0123-left")
	if got, _ := w.CallFileTool(talk, "file_write", kit.Call{"path": "/project/sub/a.txt", "content": "a"}); decodeChange(t,
		got).
		Commit == "" {
		t.Errorf("%s", got)
	}
	if tree := r.git("ls-tree", "-r", "--name-only", "reeve/conv-"+strings.TrimPrefix(talk, "conv_")); strings.Contains(tree, ".reeve-") || !strings.Contains(tree, "sub/a.txt") {
		t.Errorf("the branch holds %s", tree)
	}
	// Files of the vault cannot be copied into a project.
	w.Host.Want(201, nil, "POST", "/api/agents/dev/tools", kit.Object{"tool_id": "vault_copyto"})
	w.Host.Want(200, nil, "PUT", "/api/profiles/engineer", kit.Object{"capabilities": []string{"*"}})
	if got, _ := w.CallFileTool(talk, "vault_copyto", kit.Call{"from": "/vault/key", "to": "/project/key"}); !strings.HasPrefix(got,
		"DENIED") {
		t.Errorf("%s", got)
	}
	// A user who is not a participant cannot read the folder.
	var made api.NewToken
	w.Host.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob", Role: reeve.Member})
	reply := w.Host.Do("POST", "/api/agents/dev/calls", kit.Object{"tool": "file_read", "session": talk,
		"args": kit.Object{"path": "/project/sub/a.txt"}}, "Authorization", "Bearer "+made.Token)
	if reply.Status < 400 {
		t.Errorf("bob reads %s", reply.Body)
	}
}

// Without a project, or if a delegator has none, there is no /project. A setting of the tool gives it to an agent
// without commands. A preview shows the diff against the branch.
func TestW15_FileToolsNeedAProject(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	cfg := kit.FastConfig(t)
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, `- {when: {system: I am lead, said: begin}, calls: [{name: delegate, args: {agent: dev, input: work}}]}
- {when: {system: I am dev, said: work}, calls: [{name: file_read, args: {path: /project/page.txt}}]}
- {when: {system: I am}, text: "Done."}
`)
	h := reevetest.Run(t, cfg)
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	h.Want(201, nil, "POST", "/api/projects", kit.Object{"name": "site", "path": r.dir})
	kit.NewPersona(h, "dev", kit.Object{"kind": "engineer"}, "file_read", kit.Object{"project": "site"}, "file_write",
		kit.Object{"project": "site"}, "file_list")
	kit.NewPersona(h, "lead",
		kit.Object{"kind": "engineer", "policy": kit.Object{"tools": kit.Object{"delegate": "allow"}}},
		"delegate",
		"file_read")
	w := kit.ShellAgent{Host: h}
	talk := h.StartConversation("dev").ID
	if got, _ := w.CallFileTool(talk, "file_read", kit.Call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("%s", got)
	}
	if got, _ := w.CallFileTool(talk, "file_list", kit.Call{"path": "/project"}); !strings.HasPrefix(got, "DENIED") ||
		!strings.Contains(got, "works on no project") {
		t.Errorf("%s", got)
	}
	if got, _ := w.CallFileTool(talk, "file_list", kit.Call{"path": "/"}); strings.Contains(got, "project") {
		t.Errorf("/ holds %s", got)
	}
	res, p, status := kit.TryCall(h, "dev", kit.Call{"tool": "file_write", "session": talk, "preview_only": true,
		"args": kit.Call{"path": "/project/page.txt", "content": "two\n", "overwrite": true}})
	if status != 200 || !res.Preview || !strings.Contains(res.Content, "-one\n+two\n") {
		t.Errorf("%d %+v %+v", status, p, res)
	}
	if got := r.git("log", "--format=%s", "--all"); got != "by hand" {
		t.Errorf("a preview committed: %s", got)
	}
	lead := h.StartConversation("lead")
	var turn reeve.Turn
	h.Want(201, &turn, "POST", "/api/conversations/"+lead.ID+"/turns", kit.Object{"content": "begin"})
	kit.WaitForTurn(h, turn.ID)
	for _, child := range kit.ListChildren(h, turn.ID) {
		infos, said := kit.ListResults(h, child.ID, "file_read")
		if len(infos) != 1 || infos[0].Code != reeve.Denied || !strings.Contains(said[0], "works on no project") {
			t.Errorf("what the lead may not see reached whoever it called: %+v %q", infos, said)
		}
	}
	if len(kit.ListChildren(h, turn.ID)) != 1 {
		t.Errorf("nobody was called: %+v", kit.GetTurn(h, turn.ID))
	}
	h.Want(200, nil, "POST", "/api/branches/"+talk+"/discard", nil)
	h.Want(204, nil, "DELETE", "/api/projects/site", nil)
	if got, _ := w.CallFileTool(talk, "file_read", kit.Call{"path": "/project/page.txt"}); !strings.HasPrefix(got,
		"NOT_FOUND") {
		t.Errorf("without the project: %s", got)
	}
}
