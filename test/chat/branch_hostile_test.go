package chat_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
)

// An agent leaves programs wherever git might run one. None runs outside its folder, and people can keep working with
// the branch.
func TestW15_NothingPlantedRunsOutside(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	outside := t.TempDir()
	if err := os.Chmod(outside, 0o777); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(outside, "ran")
	conversation := w.StartConversation()
	w.Run(conversation, "ls")
	folder := filepath.Join(w.Host.Dir(), "branches", w.GetBranch(conversation).ID)
	evil := `printf '#!/bin/sh\ntouch ` + mark + ` ` + r.dir + `/ran ` + r.dir + `/.git/ran ` + folder +
		`/ran\nexit 0\n' > /project/evil && chmod +x /project/evil; `
	for i, plant := range []string{
		`for h in pre-commit post-commit prepare-commit-msg commit-msg post-checkout post-merge post-index-change reference-transaction pre-auto-gc post-rewrite; do cp evil .git/hooks/$h 2>/dev/null || (mkdir -p .git/hooks && cp evil .git/hooks/$h); done`,
		`git config core.hooksPath /project`,
		`git config core.fsmonitor /project/evil; git config core.sshCommand /project/evil; git config core.editor /project/evil; git config core.pager /project/evil; git config core.askPass /project/evil; git config core.gitProxy /project/evil`,
		`git config filter.x.clean /project/evil; git config filter.x.smudge /project/evil; git config filter.x.process /project/evil; git config diff.x.textconv /project/evil; git config diff.x.command /project/evil; git config merge.x.driver /project/evil; echo '* filter=x diff=x merge=x' > .gitattributes`,
		`git config diff.external /project/evil; git config uploadpack.packObjectsHook /project/evil; git config gpg.program /project/evil; git config commit.gpgSign true; git config alias.log '!/project/evil'; git config alias.diff '!/project/evil'`,
		`git config core.alternateRefsCommand /project/evil; git config core.worktree /; git config include.path /project/evil; git config remote.origin.url "ext::/project/evil"; git config remote.origin.promisor true`,
		`printf '[core]\n\tfsmonitor = /project/evil\n\thooksPath = /project\n[filter "x"]\n\tclean = /project/evil\n' > .gitconfig; mkdir -p .config/git; cp .gitconfig .config/git/config`,
		`mkdir -p .git/refs/heads/reeve; echo /etc > .git/commondir`,
		`rm -rf .git; ln -s /etc .git`,
		`rm -rf .git; echo 'gitdir: ` + r.dir + `/.git' > .git`,
		`rm -rf .git; git init -q --bare .git; git -C .git config core.fsmonitor /project/evil; git -C .git config core.bare false`,
		`rm -rf .git; mkdir .git; echo nonsense > .git/HEAD; mkdir .git/objects .git/refs; echo '[nonsense' > .git/config`,
		`echo / > .git/objects/info/alternates; chmod -R 000 .git`,
		`git checkout -q -b elsewhere; git branch -q -D $(git for-each-ref --format='%(refname:short)' refs/heads/reeve)`,
	} {
		w.Run(conversation, evil+plant+"; echo "+strconv.Itoa(i)+" >> page.txt; true")
		for _, do := range []func(){
			func() { w.Host.Do("GET", "/api/branches/"+conversation+"/diff", nil) },
			func() { w.Host.Do("GET", "/api/branches/"+conversation+"/log", nil) },
			func() { w.Merge(conversation) },
		} {
			do()
			for _, p := range []string{mark, r.dir + "/ran", r.dir + "/.git/ran"} {
				if _, err := os.Lstat(p); err == nil {
					t.Fatalf("%s made %s", plant, p)
				}
			}
		}
		if got := w.Run(conversation,
			"git switch -q $(git for-each-ref --format='%(refname:short)' refs/heads/reeve) 2>/dev/null; git log -1 "+
				"--format=%H; echo next >> page.txt"); got.ExitCode != 0 {
			t.Errorf("%s: afterwards %+v", plant, got)
		}
	}
	for _, dirty := range []string{"hooks/post-checkout", "hooks/post-merge", "hooks/reference-transaction"} {
		if _, err := os.Lstat(filepath.Join(r.dir, ".git", dirty)); err == nil {
			t.Errorf("the repository has %s", dirty)
		}
	}
	if out := r.git("config", "--local", "--list"); strings.Contains(out, "evil") {
		t.Errorf("the repository's settings: %s", out)
	}
	if out := r.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Errorf("fsck: %s", out)
	}
	w.Host.Want(200, nil, "POST", "/api/branches/"+conversation+"/discard", nil)
	if got := w.Run(conversation, "git status --porcelain; git log --oneline | wc -l"); got.Note != "" ||
		got.ExitCode != 0 {
		t.Errorf("afresh: %+v", got)
	}
}

// An agent commits trees that git would not write: files in .git and paths that lead out.
func TestW15_ForgedTreeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	main := r.git("rev-parse", "main")
	for _, forged := range []string{
		`blob=$(echo evil | git hash-object -w --stdin); sub=$(printf '100755 blob %s\tpost-checkout\n' $blob | git mktree); tree=$(printf '40000 .git\0' > t; bytes $sub >> t; git hash-object -t tree -w --literally t; rm t)`,
		`blob=$(echo evil | git hash-object -w --stdin); tree=$(printf '100644 ..\0' > t; bytes $blob >> t; git hash-object -t tree -w --literally t; rm t)`,
		`tree=$(printf '100644 missing\0' > t; bytes 1234567890123456789012345678901234567890 >> t; git hash-object -t tree -w --literally t; rm t)`,
	} {
		conversation := w.StartConversation()
		got := w.Run(conversation, `bytes() { printf "$(echo $1 | sed 's/../\\x&/g')"; }; `+forged+
			`; commit=$(echo forged | git commit-tree $tree -p HEAD); git update-ref $(git symbolic-ref HEAD) $commit; git rev-parse HEAD`)
		if !isHex(strings.TrimSpace(got.Stdout)) {
			t.Fatalf("it was not forged: %+v", got)
		}
		b := w.GetBranch(conversation)
		if got.Commit != "" || got.Note == "" || r.git("rev-parse", b.Name) != main || b.Head != main {
			t.Errorf("taken in: %+v", got)
		}
		if _, p, status := w.Merge(conversation); status == 200 {
			t.Errorf("merged: %+v", p)
		}
	}
	if out := r.git("fsck", "--strict", "--full"); strings.Contains(out, "error") ||
		r.git("rev-parse", "main") != main {
		t.Errorf("fsck: %s", out)
	}
}

// A named pipe in place of a file that git reads would block it for minutes.
func TestW15_NamedPipesDoNotBlockGit(t *testing.T) {
	t.Parallel()
	w, ok := newShellAgent(t, newRepo(t, map[string]string{"page.txt": "one\n"}), nil)
	if !ok {
		return
	}
	conversation := w.StartConversation()
	for i, plant := range []string{"mkfifo .gitignore", "mkfifo .gitattributes", "mkdir -p sub; mkfifo sub/.gitignore",
		"rm .git/HEAD; mkfifo .git/HEAD", "rm .git/index; mkfifo .git/index", "rm .git/config; mkfifo .git/config"} {
		got := w.Run(conversation, plant+"; echo "+strconv.Itoa(i)+" > page.txt")
		if got.ExitCode != 0 || got.Commit == "" || strings.Contains(got.Note, "took longer") {
			t.Errorf("%s: %+v", plant, got)
		}
	}
}

func isHex(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }

// Projects have repositories that are empty, bare, dirty, detached, or have the branch already.
func TestW15_RepositoriesAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRepo(t, nil)
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	conversation := w.StartConversation()
	if res, _, _ := w.TryRun(conversation, "ls"); res.Code != reeve.Conflict ||
		!strings.Contains(res.Content, "no commits") {
		t.Errorf("empty: %+v", res)
	}
	r.commit(map[string]string{"page.txt": "one\n"})
	r.git("branch", "reeve/conv-"+strings.TrimPrefix(conversation, "conv_"))
	if res, _, _ := w.TryRun(conversation, "ls"); res.Code != reeve.Conflict ||
		!strings.Contains(res.Content, "already has a branch") {
		t.Errorf("there already: %+v", res)
	}
	if r.git("rev-parse", "reeve/conv-"+strings.TrimPrefix(conversation, "conv_")) != r.git("rev-parse", "main") {
		t.Error("somebody's branch was moved")
	}
	w.Host.Want(200, nil, "POST", "/api/branches/"+conversation+"/discard", nil)
	if _, err := r.tryGit("rev-parse", "--verify", "reeve/conv-"+strings.TrimPrefix(conversation, "conv_")); err != nil {
		t.Error("somebody's branch was deleted")
	}
	r.git("branch", "-D", "reeve/conv-"+strings.TrimPrefix(conversation, "conv_"))
	w.Run(conversation, "echo two > page.txt; echo new > new.txt")

	// A person has changed the same file without a commit. The merge is refused and changes nothing.
	main := r.git("rev-parse", "main")
	r.write("page.txt", "mine\n")
	if _, p, status := w.Merge(conversation); status != 409 || !strings.Contains(p.Detail, "page.txt") ||
		r.git("rev-parse", "main") != main || r.read("page.txt") != "mine\n" || !strings.HasPrefix(r.read("new.txt"),
		"no: ") {
		t.Errorf("dirty: %d %+v", status, p)
	}
	r.git("checkout", "-q", "page.txt")
	r.write("aside.txt", "not committed\n") // in nobody's way
	if _, p, status := w.Merge(conversation); status != 200 || r.read("page.txt") != "two\n" ||
		r.read("aside.txt") != "not committed\n" {
		t.Errorf("%d %+v", status, p)
	}

	// With a detached head or another branch checked out, a merge does not change the checked-out files.
	r.git("checkout", "-q", "--detach")
	w.Run(conversation, "echo three > page.txt")
	if _, p, status := w.Merge(conversation); status != 200 || r.read("page.txt") != "two\n" ||
		r.git("show", "main:page.txt") != "three" {
		t.Errorf("detached: %d %+v", status, p)
	}
	name := w.GetBranch(conversation).Name
	r.git("checkout", "-q", name)
	if got := w.Run(conversation, "echo four > page.txt"); got.Commit != "" ||
		!strings.Contains(got.Note, "checked out") || r.git("status", "--porcelain") != "?? aside.txt" {
		t.Errorf("checked out: %+v", got)
	}
	w.Host.Want(409, nil, "POST", "/api/branches/"+conversation+"/discard", nil)
	r.git("checkout", "-q", "main")
	if got := w.Run(conversation, "ls"); got.Commit == "" || r.git("show", name+":page.txt") != "four" {
		t.Errorf("it was not brought later: %+v", got)
	}

	// A filter program may come from the agent, so a merge that would run one at the checkout is refused.
	r.git("config", "filter.tidy.smudge", "./tidy.sh")
	if _, p, status := w.Merge(conversation); status != 409 || !strings.Contains(p.Detail, "filter") {
		t.Errorf("filters: %d %+v", status, p)
	}
	r.git("config", "--unset", "filter.tidy.smudge")

	// A bare one.
	bare := repo{t, filepath.Join(filepath.Dir(r.dir), "bare.git")}
	r.git("clone", "-q", "--bare", r.dir, bare.dir)
	w.Host.Want(201, nil, "POST", "/api/projects", map[string]any{"name": "bare", "path": bare.dir})
	w.Configure(map[string]any{"project": "bare"})
	conversation = w.StartConversation()
	w.Run(conversation, "echo five > page.txt")
	if _, p, status := w.Merge(conversation); status != 200 || bare.git("show", "main:page.txt") != "five" {
		t.Errorf("bare: %d %+v", status, p)
	}
}

// A project that is not a repository, or that agents could write, is refused.
func TestW15_ProjectsAreChecked(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"page.txt": "one\n"})
	w, ok := newShellAgent(t, r, nil)
	if !ok {
		return
	}
	plain := t.TempDir()
	mine := repo{t, filepath.Join(w.Host.Dir(), "workspaces", "default", "shared", "trap")}
	if err := os.MkdirAll(mine.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mine.git("init", "-q", "-b", "main")
	linked := filepath.Join(t.TempDir(), "linked")
	r.git("worktree", "add", "-q", "-b", "side", linked)
	shared := filepath.Join(t.TempDir(), "shared")
	r.git("clone", "-q", "--shared", r.dir, shared)
	for name, body := range map[string]map[string]any{
		"relative": {"path": "site"}, "missing": {"path": "/no/such/folder"},
		"a file": {"path": filepath.Join(r.dir, "page.txt")}, "its inside": {"path": filepath.Join(r.dir, ".git")},
		"no repository": {"path": plain},
		"a worktree":    {"path": linked}, "ours": {"path": mine.dir}, "around ours": {"path": "/"},
		"borrowed": {"path": shared}, "no such branch": {"path": r.dir, "default_branch": "nothing"},
		"an option": {"path": r.dir, "default_branch": "--all"}, "a line break": {"path": r.dir + "\nx"},
	} {
		body["name"] = "x"
		var p api.Problem
		rep := w.Host.Do("POST", "/api/projects", body)
		rep.Decode(t, &p)
		if rep.Status != 400 || p.Code != reeve.Validation || len(p.Errors) != 1 || p.Errors[0].Expected == "" {
			t.Errorf("%s: %d %+v", name, rep.Status, p)
		}
	}
	w.Host.Want(409, nil, "POST", "/api/projects", map[string]any{"name": "site", "path": r.dir})
	// The default branch is checked out in another worktree, out of reach.
	r.git("checkout", "-q", "--detach")
	away := filepath.Join(t.TempDir(), "away")
	r.git("worktree", "add", "-q", away, "main")
	conversation := w.StartConversation()
	w.Run(conversation, "echo two > page.txt")
	if _, p, status := w.Merge(conversation); status != 409 || !strings.Contains(p.Detail, "another worktree") {
		t.Errorf("%d %+v", status, p)
	}
	w.Host.Want(409, nil, "DELETE", "/api/projects/site", nil)
}
