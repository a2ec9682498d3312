package chat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// An agent works in two conversations. The test reads the repository in between.
func TestW15_ABranchForEachConversation(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n", "dir/other.txt": "same\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	main := r.git("rev-parse", "main")
	first, second := w.StartConversation(), w.StartConversation()
	if got := r.git("branch", "--list", "reeve/*"); got != "" {
		t.Errorf("there are branches before anybody needed one: %s", got)
	}
	got := w.Run(first, "pwd; cat page.txt; git log --oneline | wc -l")
	name := "reeve/conv-" + strings.TrimPrefix(first, "conv_")
	if got.Stdout != "/project\none\n1\n" || got.Branch != name || got.Commit != "" || got.Note != "" {
		t.Errorf("%+v", got)
	}
	if at := r.git("rev-parse", name); at != main {
		t.Errorf("it began at %s, not at %s", at, main)
	}
	got = w.Run(first, "echo two >> page.txt; echo new > new.txt; rm dir/other.txt")
	if got.Commit == "" || r.git("rev-parse", name) != got.Commit {
		t.Errorf("%+v", got)
	}
	if said := r.git("log", "-1", "--format=%an %B", name); !strings.HasPrefix(said, "dev $ echo two >> page.txt") ||
		!strings.Contains(said, "Reeve-Conversation: "+first) || !strings.Contains(said, "Reeve-Operation: op_") {
		t.Errorf("the commit says %q", said)
	}
	if again := w.Run(first, "cat page.txt"); again.Stdout != "one\ntwo\n" || again.Commit != "" {
		t.Errorf("%+v", again)
	}
	if other := w.Run(second, "cat page.txt; ls; echo three > page.txt"); other.Stdout != "one\ndir\npage.txt\n" ||
		other.Branch == name {
		t.Errorf("the second sees %+v", other)
	}
	if r.git("rev-parse", "main") != main || r.git("status", "--porcelain") != "" || r.read("page.txt") != "one\n" {
		t.Errorf("the default branch changed: %s", r.git("log", "--oneline", "--all"))
	}
	if list := strings.Fields(r.git("branch", "--list", "--format=%(refname:short)", "reeve/*")); len(list) != 2 {
		t.Errorf("branches: %v", list)
	}

	// The result has the exit code, the output and the timeout. Changes made before the timeout are committed.
	if got := w.Run(first, "echo out; echo err >&2; exit 7"); got.ExitCode != 7 || got.Stdout != "out\n" ||
		got.Stderr != "err\n" {
		t.Errorf("%+v", got)
	}
	if got := w.Run(first, "echo late > late.txt; sleep 1000", "timeout_ms", 500); !got.TimedOut ||
		got.ExitCode != 137 || got.Commit == "" {
		t.Errorf("%+v", got)
	}
	if got := w.Run(first, "cat late.txt", "cwd", "/project"); got.Stdout != "late\n" {
		t.Errorf("%+v", got)
	}
	if _, p, _ := w.TryRun(first, "ls", "cwd", "/shared"); p.Code != reeve.Validation {
		t.Errorf("%+v", p)
	}

	// The agent's own commits count too.
	got = w.Run(first, "echo own > own.txt && git add own.txt && git commit -q -m 'My own words' && git log -1 "+
		"--format=%an")
	if got.Stdout != "dev\n" || got.Commit == "" || r.git("log", "-1", "--format=%s", name) != "My own words" {
		t.Errorf("%+v", got)
	}
}

// A person reads diff and log, merges, meets a conflict, and discards.
func TestW15_PersonMergesABranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n", "gone.txt": "x\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	first, second := w.StartConversation(), w.StartConversation()
	w.Run(first, "echo two > page.txt; printf '\\0\\1' > data.bin; rm gone.txt")
	w.Run(second, "echo deux > page.txt; echo extra > extra.txt")

	var diff reeve.BranchDiff
	w.Host.Want(200, &diff, "GET", "/api/branches/"+first+"/diff", nil)
	if len(diff.Files) != 3 || !strings.Contains(diff.Patch, "-one\n+two\n") || diff.Files[0].Path != "data.bin" ||
		!diff.Files[0].Binary || diff.Files[2].Added != 1 {
		t.Errorf("%+v", diff)
	}
	var log reeve.BranchLog
	w.Host.Want(200, &log, "GET", "/api/branches/"+first+"/log", nil)
	if len(log.Commits) != 1 || log.Commits[0].Author != "dev" || !strings.Contains(log.Commits[0].Message, first) {
		t.Errorf("%+v", log)
	}
	m, p, status := w.Merge(first)
	if status != 200 || m.Commit == "" || r.git("rev-parse", "main") != m.Commit || m.MergedBy != "owner" ||
		m.Into != "main" || m.Head == "" || m.MergedHead != m.Head {
		t.Fatalf("%d %+v %+v", status, m, p)
	}
	if r.read("page.txt") != "two\n" || r.git("status", "--porcelain") != "" || !strings.HasPrefix(r.read("gone.txt"),
		"no: ") {
		t.Errorf("the repository's own files did not come along: %q, %s", r.read("page.txt"), r.git("status"))
	}
	if m, _, status := w.Merge(first); status != 200 || !m.UpToDate || m.Commit != "" {
		t.Errorf("%d %+v", status, m)
	}
	main := r.git("rev-parse", "main")
	_, p, status = w.Merge(second)
	if status != 409 || p.Code != reeve.Conflict || len(p.Errors) != 1 || !strings.Contains(p.Detail, "is unchanged") {
		t.Fatalf("%d %+v", status, p)
	}
	if p.Errors[0].Path != "page.txt" {
		t.Errorf("%+v", p.Errors)
	}
	if r.git("rev-parse", "main") != main || r.git("status", "--porcelain") != "" {
		t.Error("a merge that failed changed something")
	}

	// The agent resolves the conflict. Then the branch can be merged.
	if got := w.Run(second, "git fetch -q && git merge -q origin/main"); got.ExitCode == 0 ||
		!strings.Contains(got.Note, "in progress") || got.Commit != "" {
		t.Errorf("%+v", got)
	}
	w.Run(second, "git push origin HEAD:main && exit 1; (echo both > page.txt; git add page.txt; git commit -q "+
		"--no-edit)")
	if m, p, status := w.Merge(second); status != 200 || r.read("page.txt") != "both\n" ||
		r.read("extra.txt") != "extra\n" {
		t.Errorf("%d %+v %+v %s", status, m, p, r.read("page.txt"))
	}

	// Work continues on a merged branch. After a discard, the next command creates a new branch.
	if got := w.Run(first, "echo more > more.txt"); got.Commit == "" {
		t.Errorf("%+v", got)
	}
	w.Host.Want(200, &diff, "GET", "/api/branches/"+first+"/diff", nil)
	if len(diff.Files) != 1 || diff.Files[0].Path != "more.txt" || diff.MergedHead == "" ||
		diff.MergedHead == diff.Head {
		t.Errorf("%+v", diff)
	}
	var b reeve.Branch
	w.Host.Want(200, &b, "POST", "/api/branches/"+first+"/discard", nil)
	if out, err := r.tryGit("rev-parse", "--verify", "-q", b.Name); err == nil || b.State != reeve.BranchDiscarded {
		t.Errorf("%+v, %s", b, out)
	}
	if left, _ := filepath.Glob(filepath.Join(w.Host.Dir(), "branches", b.ID+"*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	w.Host.Want(409, nil, "GET", "/api/branches/"+first+"/diff", nil)
	w.Host.Want(409, nil, "POST", "/api/branches/"+first+"/discard", nil)
	if got := w.Run(first, "cat page.txt; ls more.txt"); got.Stdout != "both\n" || got.ExitCode == 0 {
		t.Errorf("%+v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(w.Host.Dir(), "branches", "*-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A reviewer of a branch sees no stored secret, but everything that only looks like one.
func TestG21_BranchReviewHidesStoredSecrets(t *testing.T) {
	t.Parallel()
	const secret, looks = "copper-meadow-lamp", "AKIAIOSFODNN7EXAMPLE"
	r := newRepo(t, map[string]string{"a.txt": "key " + secret + " end\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	w.Host.Want(204, nil, "PUT", "/api/secrets/LAMP", kit.Object{"value": secret})
	c := w.StartConversation()
	w.Run(c, "git mv a.txt copper-meadow-lamp.txt; echo 'aws "+looks+
		"' > b.txt; git add -A; git commit -qm 'moved '$(cut -d' ' -f2 copper*)")
	for _, at := range []string{"/diff", "/log"} {
		got := string(w.Host.Want(200, nil, "GET", "/api/branches/"+c+at, nil).Body)
		if strings.Contains(got, secret) || !strings.Contains(got, reeve.Redacted) {
			t.Errorf("%s: %s", at, got)
		}
		if at == "/diff" && !strings.Contains(got, looks) {
			t.Errorf("a reviewer does not see what is added: %s", got)
		}
	}
}

// Parts of a stored secret beside a change are hidden too. The same letters in other files are shown.
func TestG21_BranchHidesPartsOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "Zx9!quite-a-value-77"
	r := newRepo(t, map[string]string{"a.txt": "pw=" + secret + "\n", "b.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	w.Host.Want(204, nil, "PUT", "/api/secrets/LAMP", kit.Object{"value": secret})
	c := w.StartConversation()
	w.Run(c, "sed -i 's/-77$//' a.txt; echo 'and this is new' >> a.txt; echo 'quite another' > b.txt; git commit "+
		"-qam shorter")
	var d reeve.BranchDiff
	w.Host.Want(200, &d, "GET", "/api/branches/"+c+"/diff", nil)
	for _, line := range []string{"-pw=[REDACTED]", "+pw=[REDACTED]", "+and this is new", "+quite another"} {
		if !strings.Contains(d.Patch, "\n"+line+"\n") {
			t.Errorf("%s is not in %s", line, d.Patch)
		}
	}
}

// Parts of a stored secret in another file, a file name or a commit message are hidden. A single word of it is shown.
func TestG21_BranchHidesPartsOfASecretElsewhere(t *testing.T) {
	t.Parallel()
	const secret = "Zq8sPw4LtXv9Kd2Jm7"
	r := newRepo(t, map[string]string{"a.txt": "key=" + secret + "\n", "tok-" + secret + ".txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	w.Host.Want(204, nil, "PUT", "/api/secrets/LAMP", kit.Object{"value": secret})
	c := w.StartConversation()
	w.Run(c, "echo no > a.txt; echo "+secret[:16]+" > new.txt; echo 'for Zq8s' > for.txt; git mv tok-"+secret+
		".txt tok-"+secret[2:]+".txt; git add -A; git commit -qm 'not "+secret+" but "+secret[3:]+"'")
	var d reeve.BranchDiff
	diff := string(w.Host.Want(200, &d, "GET", "/api/branches/"+c+"/diff", nil).Body)
	for _, line := range []string{"-key=[REDACTED]", "+[REDACTED]", "+for Zq8s", "+++ b/tok-[REDACTED].txt"} {
		if !strings.Contains(d.Patch, "\n"+line+"\n") {
			t.Errorf("%s is not in %s", line, d.Patch)
		}
	}
	log := string(w.Host.Want(200, nil, "GET", "/api/branches/"+c+"/log", nil).Body)
	for i := range len(secret) - 8 {
		if part := secret[i : i+8]; strings.Contains(diff, part) || strings.Contains(log, part) {
			t.Errorf("%s is shown: %s\n%s", part, diff, log)
		}
	}
}

// The agent's next command does not remove a person's commit from the branch. The agent is told, and delivers both
// after it has merged.
func TestW15_WhatAPersonCommitsToABranchStays(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	talk := w.StartConversation()
	branch := w.Run(talk, "echo two > page.txt").Branch
	r.git("checkout", "-q", branch)
	r.commit(map[string]string{"review.txt": "by a person\n"})
	r.git("checkout", "-q", "main")
	theirs := r.git("rev-parse", branch)
	got := w.Run(talk, "echo three > page.txt")
	if got.Commit != "" || !strings.Contains(got.Note, "git merge origin/"+branch) ||
		r.git("rev-parse", branch) != theirs {
		t.Errorf("the branch is at %s, and not at %s: %+v", r.git("rev-parse", branch), theirs, got)
	}
	if got := w.Run(talk, "git fetch -q && git merge -q origin/"+branch); got.Commit == "" || got.Note != "" ||
		r.git("rev-parse", branch) != got.Commit {
		t.Errorf("merged: %+v", got)
	}
	if got := r.git("show", branch+":review.txt") + " " + r.git("show", branch+":page.txt"); got != "by a person three" {
		t.Errorf("the branch has %q", got)
	}
	// the agent may remove its own commits
	if got := w.Run(talk, "git reset -q --hard HEAD~1"); got.Commit == "" || r.git("rev-parse", branch) != got.Commit {
		t.Errorf("taken back: %+v", got)
	}
}

// An automation works on a project.
func TestW15_AutomationUsesItsBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	w.Host.Want(201, nil, "POST", "/api/automations",
		map[string]any{"name": "dev",
			"source": `await Items.withItem("page", "page", () => Tools.call("shell_exec", {command: "echo scripted > page.txt"}))`})
	w.Host.Want(201, nil, "POST", "/api/automations/dev/runs", map[string]any{})
	w.Host.RunUntilIdle(t.Context())
	if got := w.Run("", "echo by hand >> page.txt; cat page.txt"); got.Stdout != "scripted\nby hand\n" ||
		got.Branch != "reeve/auto-"+strings.TrimPrefix(w.Agent.ID, "agt_") {
		t.Errorf("%+v", got)
	}
	talk := w.Host.Agent("other", "shell_exec")
	w.Host.Want(200, nil, "PATCH", "/api/agents/"+talk.ID,
		map[string]any{"kind": "engineer", "policy": map[string]any{"tools": map[string]any{"shell_exec": "allow"}}})
	w.Host.Want(204, nil, "DELETE", "/api/agents/other/tools/shell_exec", nil)
	w.Host.Want(201, nil, "POST", "/api/agents/other/tools", map[string]any{"tool_id": "shell_exec",
		"config": map[string]any{"project": "site"}})
	res, _, _ := kit.TryCall(w.Host, "other",
		kit.Call{"tool": "shell_exec", "args": map[string]any{"command": "cat page.txt"}})
	if !strings.Contains(res.Content, "reeve/agent-"+strings.TrimPrefix(talk.ID, "agt_")) ||
		!strings.Contains(res.Content, `"one\n"`) {
		t.Errorf("%+v", res)
	}
}

// A trial of a script reads the project as runs of the automation do.
func TestW15_TrialSeesTheBranchOfTheAutomation(t *testing.T) {
	t.Parallel()
	w, ok := newShellAgent(t, newRepo(t, map[string]string{"page.txt": "one\n"}), nil)
	if !ok {
		return
	}
	w.Host.Want(201, nil, "POST", "/api/automations",
		map[string]any{"name": "dev",
			"source": `await Items.withItem("page", "page", () => Tools.call("shell_exec", {command: "touch scripted.txt"}))`})
	w.Host.Want(201, nil, "POST", "/api/automations/dev/runs", map[string]any{})
	w.Host.RunUntilIdle(t.Context())
	a := &kit.Automation{Host: w.Host, T: t, Name: "dev"}
	if out := a.TalkToPlanner()(
		`scripts_eval {"automation": "dev", "source": "JSON.stringify(await Tools.call('file_list', {path: '/project'}))"}`); !strings.Contains(out, "scripted.txt") {
		t.Errorf("the trial came to %s", out)
	}
}

// An automation, and an agent in a conversation, delegate work to another agent.
func TestW15_CalledAgentWorksOnTheBranchOfItsCaller(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	cfg := kit.FastConfig(t)
	cfg.Models.Default, cfg.Models.Script = "rehearsal", kit.WriteScript(t, `- {when: {system: I am lead, said: begin}, calls: [{name: delegate, args: {agent: dev, input: work}}]}
- {when: {system: I am lead}, text: "Handed on."}
- {when: {system: I am dev, said: work}, calls: [{name: shell_exec, args: {command: "echo called >> page.txt"}}]}
- {when: {system: I am dev}, text: "Done."}
`)
	h := reevetest.Run(t, cfg)
	if reason := kit.ShellUnavailable(h); reason != "" {
		t.Log("no confinement here: ", reason)
		return
	}
	h.Want(201, nil, "POST", "/api/projects", kit.Object{"name": "site", "path": r.dir})
	free := kit.Object{"kind": "engineer",
		"policy": kit.Object{"tools": kit.Object{"shell_exec": "allow", "delegate": "allow"}}}
	kit.NewPersona(h, "dev", free, "shell_exec", kit.Object{"project": "site"})
	kit.NewPersona(h, "lead", free, "delegate", "shell_exec")
	var night reeve.Automation
	h.Want(201, &night, "POST", "/api/automations",
		kit.Object{"name": "night", "tools": []string{"delegate", "shell_exec"},
			"source": `await Items.withItem("page", "page", () => Agents.delegate({ agent: "dev", input: "work" }))`})
	h.Want(200, nil, "PATCH", "/api/agents/night", free)
	h.Want(201, nil, "POST", "/api/automations/night/runs", kit.Object{})
	if run := kit.WaitForAutomationRun(h, "night"); run.Run.State != reeve.RunCompleted {
		t.Fatalf("%+v", run.Run)
	}
	if got := r.git("show", "reeve/auto-"+strings.TrimPrefix(night.AgentID, "agt_")+":page.txt"); got != "one\ncalled" {
		t.Errorf("the automation's branch has %q", got)
	}
	talk := h.StartConversation("lead")
	var turn reeve.Turn
	h.Want(201, &turn, "POST", "/api/conversations/"+talk.ID+"/turns", kit.Object{"content": "begin"})
	kit.Eventually(t, "the turn ends", func() bool {
		h.Want(200, &turn, "GET", "/api/turns/"+turn.ID, nil)
		return turn.State.IsFinal()
	})
	if got, err := r.tryGit("show", "reeve/conv-"+strings.TrimPrefix(talk.ID, "conv_")+":page.txt"); err != nil ||
		got != "one\ncalled" {
		t.Errorf("the conversation's branch has %q; there are %s", got, r.git("branch", "--list"))
	}
	// A second agent of the conversation, which a person speaks to, works there too.
	h.Want(201, nil, "POST", "/api/conversations/"+talk.ID+"/participants", kit.Object{"kind": "agent", "id": "dev"})
	h.Want(201, &turn, "POST", "/api/conversations/"+talk.ID+"/turns", kit.Object{"content": "work", "agent": "dev"})
	kit.WaitForTurn(h, turn.ID)
	if got, err := r.tryGit("show", "reeve/conv-"+strings.TrimPrefix(talk.ID, "conv_")+":page.txt"); err != nil ||
		got != "one\ncalled\ncalled" {
		t.Errorf("the conversation's branch has %q; there are %s", got, r.git("branch", "--list"))
	}
	if list := strings.Fields(r.git("branch", "--list", "--format=%(refname:short)", "reeve/*")); len(list) != 2 {
		t.Errorf("branches: %v", list)
	}
}

// Users outside a conversation cannot find, merge or discard its branch. Only owners see the path of a project on disk.
func TestW15_BranchBelongsToItsConversation(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	as := func(user string, role reeve.Role) []string {
		var made api.NewToken
		w.Host.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: user, User: user, Role: role})
		return []string{"Authorization", "Bearer " + made.Token}
	}
	ann, bob, eve := as("ann", reeve.Member), as("bob", reeve.Member), as("eve", reeve.Viewer)
	var talk reeve.Conversation
	w.Host.Want(201, &talk, "POST", "/api/conversations", kit.Object{"agent": "dev", "participants": []string{"eve"}},
		ann...)
	main := r.git("rev-parse", "main")
	w.Host.Want(200, nil, "POST", "/api/agents/dev/calls", kit.Object{"tool": "shell_exec", "session": talk.ID,
		"args": kit.Object{"command": "echo two > page.txt"}}, ann...)
	b := w.GetBranch(talk.ID)
	for _, id := range []string{b.ID, talk.ID} {
		for method, paths := range map[string][]string{"GET": {"", "/diff", "/log"}, "POST": {"/merge", "/discard"}} {
			for _, p := range paths {
				w.Host.Want(404, nil, method, "/api/branches/"+id+p, map[string]any{}, bob...)
			}
		}
	}
	var list api.BranchList
	if w.Host.Want(200, &list, "GET", "/api/branches", nil, bob...); len(list.Branches) != 0 {
		t.Errorf("bob sees %+v", list)
	}
	if w.Host.Want(200, &list, "GET", "/api/branches", nil, eve...); len(list.Branches) != 1 {
		t.Errorf("eve sees %+v", list)
	}
	w.Host.Want(200, nil, "GET", "/api/branches/"+talk.ID+"/diff", nil, eve...)
	w.Host.Want(403, nil, "POST", "/api/branches/"+talk.ID+"/merge", kit.Object{}, eve...)
	if r.git("rev-parse", "main") != main {
		t.Error("somebody merged who may not")
	}
	var p reeve.Project
	if w.Host.Want(200, &p, "GET", "/api/projects/site", nil, ann...); p.Path != "" {
		t.Errorf("ann sees %s", p.Path)
	}
	w.Host.Want(403, nil, "POST", "/api/projects", kit.Object{"name": "mine", "path": r.dir}, ann...)
	var m reeve.MergeResult
	if w.Host.Want(200, &m, "POST", "/api/branches/"+talk.ID+"/merge", kit.Object{"message": "Two pages"}, ann...); m.MergedBy != "ann" || r.git("log", "-1", "--format=%an %s", "main") != "ann Two pages" {
		t.Errorf("%+v", m)
	}
}

// A missing repository is reported where an agent is set to work on it. Everything else works.
func TestW16_NoRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	w.Host.Want(201, nil, "POST", "/api/projects", map[string]any{"name": "nowhere", "path": r.dir,
		"default_branch": "main"})
	w.Configure(map[string]any{"project": "nowhere"})
	w.Host.Want(204, nil, "DELETE", "/api/projects/nowhere", nil)
	conversation := w.StartConversation()
	if _, p, status := w.TryRun(conversation, "ls"); status != 404 || p.Code != reeve.NotFound ||
		!strings.Contains(p.Detail, `project "nowhere" does not exist`) ||
		!strings.Contains(p.Hint, "reeve projects create") {
		t.Errorf("%d %+v", status, p)
	}
	if res := w.Host.Call("dev", "file_list", map[string]any{"path": "/"}); res.IsError {
		t.Errorf("%+v", res)
	}
	w.Configure(map[string]any{})
	if got := w.Run(conversation, "pwd"); got.Stdout != "/shared\n" || got.Branch != "" {
		t.Errorf("%+v", got)
	}
	w.Configure(nil)
	w.Run(conversation, "ls")
	if err := os.Rename(r.dir, r.dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, p, status := w.TryRun(conversation, "ls"); status != 503 || p.Code != reeve.Unavailable ||
			!strings.Contains(p.Detail, "does not exist") || strings.Contains(p.Detail, r.dir) {
			t.Errorf("%d %+v", status, p)
		}
	}
	if _, p, _ := w.Merge(conversation); p.Code != reeve.Unavailable {
		t.Errorf("%+v", p)
	}
	w.Host.Want(200, nil, "POST", "/api/branches/"+conversation+"/discard", nil)
	w.Host.Want(204, nil, "DELETE", "/api/projects/site", nil)
	if _, p, status := w.TryRun(conversation, "ls"); status != 404 {
		t.Errorf("%d %+v", status, p)
	}
}
