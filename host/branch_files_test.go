package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// fileTools are those that see a project's folder.
var fileTools = []string{"file_read", "file_search", "file_write", "file_edit", "file_delete", "file_restore"}

// file calls a file tool in a conversation and gives what it came to: its result as text, or the code of why not.
func (w worker) file(conversation, tool string, args call) (content string, r reeve.Result) {
	w.h.T.Helper()
	r, p, status := do(w.h, "dev", call{"tool": tool, "session": conversation, "args": args})
	if status != 200 {
		return string(p.Code) + " " + p.Detail, r
	}
	return r.Content, r
}

// landed is where a file tool's change went.
func landed(t *testing.T, content string) (s struct{ Branch, Commit, Note, State string }) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), &s); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	return s
}

// newFileWorker is newWorker with the file tools attached.
func newFileWorker(t *testing.T, r repo) (worker, bool) {
	w, ok := newWorker(t, r, nil)
	for _, tool := range fileTools {
		w.h.Want(201, nil, "POST", "/api/agents/dev/tools", object{"tool_id": tool})
	}
	w.h.Want(200, nil, "PATCH", "/api/agents/dev",
		object{"policy": object{"tools": object{"shell_exec": "allow", "file_delete": "allow"}}})
	return w, ok
}

// TestW15_FileToolsWorkOnTheBranch: what commands call /project is there for the file tools too, each change is a
// commit, undo is one more, and another conversation sees nothing of it.
func TestW15_FileToolsWorkOnTheBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n", "dir/other.txt": "same\n", "run.sh": "echo hi\n"})
	w, ok := newFileWorker(t, r)
	if !ok {
		return
	}
	main := r.git("rev-parse", "main")
	first, second := w.talk(), w.talk()
	name := "reeve/conv-" + strings.TrimPrefix(first, "conv_")
	if got, _ := w.file(first, "file_list", call{"path": "/"}); !strings.Contains(got, `"name":"project"`) ||
		!strings.Contains(got, `"name":"shared"`) {
		t.Errorf("/ holds %s", got)
	}
	if got, _ := w.file(first, "file_list", call{"path": "/project"}); !strings.Contains(got, `"total":3`) ||
		strings.Contains(got, ".git") {
		t.Errorf("/project holds %s", got)
	}
	if got, _ := w.file(first, "file_read", call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("%s", got)
	}
	if r.git("rev-parse", name) != main {
		t.Error("reading changed the branch")
	}
	got, res := w.file(first, "file_write", call{"path": "/project/src/new.txt", "content": "needle here\n"})
	s := landed(t, got)
	if s.Branch != name || s.Commit == "" || r.git("rev-parse", name) != s.Commit ||
		r.git("show", name+":src/new.txt") != "needle here" {
		t.Errorf("%s", got)
	}
	if said := r.git("log", "-1", "--format=%an %B", name); !strings.HasPrefix(said, "dev file_write src/new.txt\n") ||
		!strings.Contains(said, "Reeve-Conversation: "+first) ||
		!strings.Contains(said, "Reeve-Operation: "+res.OperationID) {
		t.Errorf("the commit says %q", said)
	}
	if got, _ := w.file(first, "file_write", call{"path": "/project/src/new.txt", "content": "needle here\n",
		"overwrite": true}); landed(t, got).Commit != "" {
		t.Errorf("nothing changed: %s", got)
	}
	if got, _ := w.file(first, "file_search", call{"query": "needle"}); !strings.Contains(got,
		`"path":"/project/src/new.txt"`) {
		t.Errorf("%s", got)
	}
	got, res = w.file(first, "file_edit", call{"path": "/project/page.txt", "old": "one", "new": "two"})
	if landed(t, got).Commit == "" || r.git("show", name+":page.txt") != "two" {
		t.Errorf("%s", got)
	}
	if got := w.run(first, "cat page.txt src/new.txt; ls -A; echo three >> page.txt"); got.Stdout != "two\nneedle here\n.git\ndir\npage.txt\nrun.sh\nsrc\n" || got.Commit == "" {
		t.Errorf("commands see %+v", got)
	}
	if got, _ := w.file(first, "file_read", call{"path": "/project/page.txt"}); !strings.Contains(got, `two\nthree\n`) {
		t.Errorf("%s", got)
	}
	got, res = w.file(first, "file_delete", call{"path": "/project/dir", "recursive": true})
	if landed(t, got).Commit == "" || strings.Contains(r.git("ls-tree", "-r", "--name-only", name), "dir/") {
		t.Errorf("%s", got)
	}
	var undone reeve.Result
	w.h.Want(200, &undone, "POST", "/api/operations/"+res.OperationID+"/undo", nil)
	if landed(t, undone.Content).Commit == "" || r.git("show", name+":dir/other.txt") != "same" {
		t.Errorf("undone: %s", undone.Content)
	}
	if _, err := w.file(first, "file_write", call{"path": "/project/run.sh", "content": "echo ho\n",
		"overwrite": true}); err.IsError || !strings.HasPrefix(r.git("ls-tree", name, "run.sh"), "100755") {
		t.Errorf("it cannot be run any more: %s", r.git("ls-tree", name))
	}

	// What is there can be sent to the people, once there is a branch.
	w.h.Want(201, nil, "POST", "/api/agents/dev/tools", object{"tool_id": "send_media"})
	if got, res := w.file(second, "send_media", call{"path": "/project/page.txt"}); res.Code != reeve.Conflict ||
		!strings.Contains(got, "/project is empty") {
		t.Errorf("without a branch: %s", got)
	}
	if got, res := w.file(first, "send_media", call{"path": "/project/src/new.txt"}); res.IsError ||
		len(sent(w.h, first)) != 1 {
		t.Errorf("%s", got)
	}

	// The other conversation, the default branch and the workspace's own files are as they were.
	if got, _ := w.file(second, "file_read", call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("the second sees %s", got)
	}
	if got, _ := w.file(second, "file_list", call{"path": "/project/src"}); !strings.Contains(got, "not found") {
		t.Errorf("the second sees %s", got)
	}
	if r.git("rev-parse", "main") != main || r.git("status", "--porcelain") != "" {
		t.Errorf("the default branch changed: %s", r.git("log", "--oneline", "--all"))
	}
	if got, _ := w.file(first, "file_list", call{"path": "/shared"}); !strings.Contains(got, `"total":0`) {
		t.Errorf("/shared holds %s", got)
	}
	// Merged on a person's word, and gone when it is discarded.
	if _, p, status := w.merge(first); status != 200 || r.read("src/new.txt") != "needle here\n" {
		t.Errorf("%d %+v", status, p)
	}
	w.h.Want(200, nil, "POST", "/api/branches/"+first+"/discard", nil)
	if got, _ := w.file(first, "file_read", call{"path": "/project/src/new.txt"}); !strings.Contains(got, "needle") {
		t.Errorf("the branch begins anew: %s", got)
	}
}

// TestW15_FileToolsStayInTheirProject: a hostile agent plants links and folders with its commands, and names what is
// not its own with the file tools.
func TestW15_FileToolsStayInTheirProject(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newFileWorker(t, r)
	if !ok {
		return
	}
	outside := filepath.Join(t.TempDir(), "secret.txt")
	if err := os.WriteFile(outside, []byte("treasure"), 0o644); err != nil {
		t.Fatal(err)
	}
	talk := w.talk()
	w.run(talk, "ln -s "+outside+
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
			args := map[string]call{"file_read": {}, "file_write": {"content": "x", "overwrite": true},
				"file_edit": {"old": "o", "new": "x"}, "file_delete": {"recursive": true}}[tool]
			args["path"] = path
			got, res := w.file(talk, tool, args)
			if tool == "file_delete" && (path == "/project/link" || path == "/project/pipe") || tool == "file_read" &&
				strings.Trim(path, "/") == "project" {
				continue // a link may be deleted, itself; a folder is no file
			}
			if !strings.HasPrefix(got, code) && string(res.Code) != code {
				t.Errorf("%s %s: %s", tool, path, got)
			}
			if strings.Contains(got, "treasure") || strings.Contains(got, outside) && path != "/project/slash"+outside {
				t.Errorf("%s %s gives %s", tool, path, got)
			}
		}
	}
	if got, _ := w.file(talk, "file_search", call{"query": "repositoryformatversion",
		"path": "/project"}); !strings.Contains(got, `"matches":[]`) {
		t.Errorf("git's own is searched: %s", got)
	}
	if b, err := os.ReadFile(outside); err != nil || string(b) != "treasure" {
		t.Errorf("outside is %q, %v", b, err)
	}
	// A folder that was kept elsewhere brings no .git along.
	for _, path := range []string{"/shared/kept/.git/config", "/shared/kept/sub/.GIT", "/shared/kept/a.txt"} {
		w.file(talk, "file_write", call{"path": path, "content": "[core]\n"})
	}
	var kept struct{ Kept string }
	got, _ := w.file(talk, "file_delete", call{"path": "/shared/kept", "recursive": true})
	if err := json.Unmarshal([]byte(got), &kept); err != nil {
		t.Fatal(err, got)
	}
	if got, _ := w.file(talk, "file_restore", call{"path": "/project/kept", "hash": kept.Kept}); !strings.Contains(got,
		`"skipped":["/project/kept/.git","/project/kept/sub/.GIT"]`) {
		t.Errorf("%s", got)
	}
	if out := w.run(talk, "find kept | sort"); out.Stdout != "kept\nkept/a.txt\nkept/sub\n" {
		t.Errorf("%+v", out)
	}
	if got, _ := w.file(talk, "file_restore", call{"path": "/shared/kept", "hash": kept.Kept}); strings.Contains(got,
		"skipped") {
		t.Errorf("outside of a project: %s", got)
	}
	// What a call that was cut off left beside its target is not committed.
	w.run(talk, "echo left > sub/.reeve-0123-left")
	if got, _ := w.file(talk, "file_write", call{"path": "/project/sub/a.txt", "content": "a"}); landed(t, got).
		Commit == "" {
		t.Errorf("%s", got)
	}
	if tree := r.git("ls-tree", "-r", "--name-only", "reeve/conv-"+strings.TrimPrefix(talk,
		"conv_")); strings.Contains(tree, ".reeve-") || !strings.Contains(tree, "sub/a.txt") {
		t.Errorf("the branch holds %s", tree)
	}
	// The vault is not for repositories.
	w.h.Want(201, nil, "POST", "/api/agents/dev/tools", object{"tool_id": "vault_copyto"})
	w.h.Want(200, nil, "PUT", "/api/profiles/engineer", object{"capabilities": []string{"*"}})
	if got, _ := w.file(talk, "vault_copyto", call{"from": "/vault/key", "to": "/project/key"}); !strings.HasPrefix(got,
		"DENIED") {
		t.Errorf("%s", got)
	}
	// Who takes no part in the conversation has no way there.
	var made api.NewToken
	w.h.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: "bob", User: "bob", Role: reeve.Member})
	reply := w.h.Do("POST", "/api/agents/dev/calls", object{"tool": "file_read", "session": talk,
		"args": object{"path": "/project/sub/a.txt"}}, "Authorization", "Bearer "+made.Token)
	if reply.Status < 400 {
		t.Errorf("bob reads %s", reply.Body)
	}
}

// TestW15_FileToolsNeedAProject: without one, and where whoever led to the call has none, there is no /project; a
// tool's own setting gives it to an agent without commands; a preview shows the diff against the branch.
func TestW15_FileToolsNeedAProject(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	cfg := quick(t)
	cfg.Models.Default, cfg.Models.Script = "rehearsal", scriptFile(t, `- {when: {system: I am lead, said: begin}, calls: [{name: delegate, args: {agent: dev, input: work}}]}
- {when: {system: I am dev, said: work}, calls: [{name: file_read, args: {path: /project/page.txt}}]}
- {when: {system: I am}, text: "Done."}
`)
	h := reevetest.Run(t, cfg)
	if reason := shellBroken(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	h.Want(201, nil, "POST", "/api/projects", object{"name": "site", "path": r.dir})
	persona(h, "dev", object{"kind": "engineer"}, "file_read", object{"project": "site"}, "file_write",
		object{"project": "site"}, "file_list")
	persona(h, "lead", object{"kind": "engineer", "policy": object{"tools": object{"delegate": "allow"}}}, "delegate",
		"file_read")
	w := worker{h: h}
	talk := h.StartConversation("dev").ID
	if got, _ := w.file(talk, "file_read", call{"path": "/project/page.txt"}); !strings.Contains(got,
		`"text":"one\n"`) {
		t.Errorf("%s", got)
	}
	if got, _ := w.file(talk, "file_list", call{"path": "/project"}); !strings.HasPrefix(got, "DENIED") ||
		!strings.Contains(got, "works on no project") {
		t.Errorf("%s", got)
	}
	if got, _ := w.file(talk, "file_list", call{"path": "/"}); strings.Contains(got, "project") {
		t.Errorf("/ holds %s", got)
	}
	res, p, status := do(h, "dev", call{"tool": "file_write", "session": talk, "preview_only": true,
		"args": call{"path": "/project/page.txt", "content": "two\n", "overwrite": true}})
	if status != 200 || !res.Preview || !strings.Contains(res.Content, "-one\n+two\n") {
		t.Errorf("%d %+v %+v", status, p, res)
	}
	if got := r.git("log", "--format=%s", "--all"); got != "by hand" {
		t.Errorf("a preview committed: %s", got)
	}
	lead := h.StartConversation("lead")
	var turn reeve.Turn
	h.Want(201, &turn, "POST", "/api/conversations/"+lead.ID+"/turns", object{"content": "begin"})
	over(h, turn.ID)
	for _, child := range children(h, turn.ID) {
		infos, said := results(h, child.ID, "file_read")
		if len(infos) != 1 || infos[0].Code != reeve.Denied || !strings.Contains(said[0], "works on no project") {
			t.Errorf("what the lead may not see reached whoever it called: %+v %q", infos, said)
		}
	}
	if len(children(h, turn.ID)) != 1 {
		t.Errorf("nobody was called: %+v", detail(h, turn.ID))
	}
	h.Want(200, nil, "POST", "/api/branches/"+talk+"/discard", nil)
	h.Want(204, nil, "DELETE", "/api/projects/site", nil)
	if got, _ := w.file(talk, "file_read", call{"path": "/project/page.txt"}); !strings.HasPrefix(got, "NOT_FOUND") {
		t.Errorf("without the project: %s", got)
	}
}
