package branch

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reeve"
	"reeve/internal/sandbox/confine"
)

func itoa(n int) string { return strconv.Itoa(n) }

// repository is the git repository of a project. Git runs there as its owner, and gets nothing from agents but data.
type repository struct {
	reeve.Project
	gitDir string // the .git folder, or the folder of a bare repository
}

// openRepository finds the repository of a project on the disk.
func openRepository(p reeve.Project) (repository, error) {
	for _, dir := range []string{filepath.Join(p.Path, ".git"), p.Path} {
		if isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) {
			return repository{p, dir}, nil
		}
	}
	return repository{}, reeve.Errorf(reeve.Unavailable, "the repository of project %q does not exist", p.Name).
		Hintf("its folder was moved or removed; restore it, or delete the project and create it again")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (r repository) objectsDir() string { return filepath.Join(r.gitDir, "objects") }

// listReadablePaths returns the paths of the repository that agents may read. They suffice for a fetch. The config is
// not among them, because it may contain passwords.
func (r repository) listReadablePaths() (list []string) {
	for _, name := range []string{"objects", "refs", "HEAD", "packed-refs"} {
		p := filepath.Join(r.gitDir, name)
		if _, err := os.Stat(p); err == nil {
			list = append(list, p)
		}
	}
	return list
}

// runScript runs a script in the repository.
func (r repository) runScript(ctx context.Context, script string, from *os.File,
	env ...string) (confine.Result, error) {
	dir := "GIT_DIR=" + r.gitDir
	return gitTask{root: r.Path, asOwner: true, script: script, env: append(env, dir, "DEFAULT="+r.DefaultBranch),
		from: from}.run(ctx)
}

// newGitError returns a Conflict error with the messages of git.
func (r repository) newGitError(res confine.Result, problem string) error {
	return reeve.Errorf(reeve.Conflict, "%s in project %q: %s", problem, r.Name, renderStderr(res, r.Path+"/", r.Path))
}

// repositoryState is the state of a repository and of one branch in it.
type repositoryState struct {
	head               string // full name of the checked-out branch; empty if HEAD is detached
	isBare             bool
	isEmpty            bool   // the repository has no commits
	tip                string // commit of the default branch
	branch             string // commit of the requested branch; empty if it does not exist
	isCheckedOut       bool   // the requested branch is checked out in a worktree
	isDefaultElsewhere bool   // the default branch is checked out in a different worktree from the main one
	hasFilters         bool   // the repository configures filter programs
}

const stateScript = `set -u
printf 'head %s\n' "$(git symbolic-ref -q HEAD)"
printf 'bare %s\n' "$(git rev-parse --is-bare-repository)" || exit 1
printf 'any %s\n' "$(git rev-list -n 1 --all)"
printf 'tip %s\n' "$(git rev-parse -q --verify "refs/heads/$DEFAULT^{commit}")"
printf 'branch %s\n' "$(git rev-parse -q --verify "refs/heads/$BRANCH^{commit}")"
git worktree list --porcelain | sed -n 's/^branch /checked /p'
git config --name-only --get-regexp '^filter\.' | sed 's/^/filter /'
git rev-parse --git-dir >/dev/null`

// readState reads the state of the repository and of a branch.
func (r repository) readState(ctx context.Context, branch string) (f repositoryState, err error) {
	res, err := r.runScript(ctx, stateScript, nil, "BRANCH="+branch)
	if err != nil {
		return f, err
	}
	if res.ExitCode != 0 {
		return f, reeve.Errorf(reeve.Unavailable, "cannot read the repository of project %q: %s", r.Name,
			renderStderr(res, r.Path+"/", r.Path))
	}
	hasCommits := false
	checkouts := map[string]int{}
	for line := range strings.Lines(string(res.Stdout)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "head":
			f.head = v
		case "bare":
			f.isBare = v == "true"
		case "any":
			hasCommits = v != ""
		case "tip":
			f.tip = v
		case "branch":
			f.branch = v
		case "checked":
			checkouts[v]++
		case "filter":
			f.hasFilters = true
		}
	}
	f.isEmpty = !hasCommits
	f.isCheckedOut = checkouts["refs/heads/"+branch] > 0
	f.isDefaultElsewhere = checkouts["refs/heads/"+r.DefaultBranch] > 0 &&
		(f.isBare || f.head != "refs/heads/"+r.DefaultBranch)
	return f, nil
}

// getStartCommit returns the commit at which a new branch starts.
func (r repository) getStartCommit(f repositoryState) (string, error) {
	switch {
	case f.isEmpty:
		return "", reeve.Errorf(reeve.Conflict,
			"the repository of project %q has no commits", r.Name).
			Hintf("create a first commit")
	case f.tip == "":
		return "", reeve.Errorf(reeve.Conflict, "the repository of project %q has no branch %q", r.Name,
			r.DefaultBranch).Hintf("create the branch, or create the project again with another default branch")
	}
	return f.tip, nil
}

const importScript = `set -u
case $COUNT in
0) ;;
?|??) git unpack-objects -q --strict || exit 1 ;;
*) git index-pack --stdin --fix-thin --strict >/dev/null || exit 1 ;;
esac
git rev-parse -q --verify "$TIP^{commit}" >/dev/null || { echo "it has no commit $TIP" >&2; exit 1; }
git rev-list --objects --quiet "$TIP" "^$BASE" || exit 1
[ -n "$BRANCH" ] || exit 0
[ -z "$OLD" ] || [ "$OLD" = "$KNOWN" ] || git merge-base --is-ancestor "$OLD" "$TIP" || exit 8
git update-ref -m "$WHY" "refs/heads/$BRANCH" "$TIP" "$OLD"`

// exitDiverged is the exit code of importScript if the branch has commits in the repository that the new tip does not
// contain.
const exitDiverged = 8

// importPack imports a pack of objects, with the checks for an untrusted push.
func (r repository) importPack(ctx context.Context, pack *os.File, base, tip string) error {
	_, err := r.importAndUpdateBranch(ctx, pack, "", base, "", "", tip)
	return err
}

// importAndUpdateBranch imports a pack and points a branch at one of its commits. The branch must be at the commit
// known, or at a commit that tip contains. It returns false if it is not, because a person has committed to the branch.
func (r repository) importAndUpdateBranch(ctx context.Context, pack *os.File,
	branch, base, known, current, tip string) (bool, error) {
	count, err := countObjects(pack)
	if err != nil {
		return false, err
	}
	res, err := r.runScript(ctx, importScript, pack, "BRANCH="+branch, "BASE="+base, "TIP="+tip,
		"WHY=imported by Reeve",
		"COUNT="+itoa(count), "KNOWN="+known, "OLD="+current)
	if err == nil && res.ExitCode != 0 && res.ExitCode != exitDiverged {
		err = r.newGitError(res, "cannot import the commits")
	}
	return res.ExitCode == 0, err
}

// countObjects returns the number of objects in the pack at the current position of a file, which it does not change.
// It returns 0 if there is no pack.
func countObjects(f *os.File) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	var b [12]byte
	if n, _ := f.ReadAt(b[:], at); n < len(b) || string(b[:4]) != "PACK" {
		return 0, nil
	}
	return int(binary.BigEndian.Uint32(b[8:]) & (1<<31 - 1)), nil
}

// createBranch creates a branch at a commit. If the branch exists at that commit, a previous attempt has created it,
// and createBranch succeeds. If it exists elsewhere, createBranch fails with Conflict.
func (r repository) createBranch(ctx context.Context, state repositoryState, branch, commit string) error {
	if state.branch == commit {
		return nil
	}
	if state.branch != "" {
		return reeve.Errorf(reeve.Conflict,
			"the repository of project %q already has a branch %s that Reeve did not create", r.Name, branch).
			Hintf("rename or delete the branch, then try again")
	}
	res, err := r.runScript(ctx, `git update-ref -m "created by Reeve" "refs/heads/$BRANCH" "$TIP" ""`, nil,
		"BRANCH="+branch,
		"TIP="+commit)
	if err == nil && res.ExitCode != 0 {
		err = r.newGitError(res, "cannot create the branch")
	}
	return err
}

func (r repository) deleteBranch(ctx context.Context, branch string) error {
	res, err := r.runScript(ctx, `git update-ref -m "discarded" -d "refs/heads/$BRANCH"`, nil, "BRANCH="+branch)
	if err == nil && res.ExitCode != 0 {
		err = r.newGitError(res, "cannot delete the branch")
	}
	return err
}

// unchangedScript fails if HEAD or the default branch has changed since readState.
const unchangedScript = `[ "$(git symbolic-ref -q HEAD)" = "$HEAD" ] &&
	[ "$(git rev-parse "refs/heads/$DEFAULT")" = "$OLD" ] || {
	echo "the checked-out branch or the default branch has changed meanwhile" >&2
	exit 1
}
`

// advanceDefaultBranch moves the default branch forward to a later commit. If the branch is checked out in the
// repository, the files are updated too, unless that would overwrite local changes.
func (r repository) advanceDefaultBranch(ctx context.Context, f repositoryState, to string) error {
	const hint = "merge the branch by hand in the repository"
	script := unchangedScript + `git update-ref -m "merged by Reeve" "refs/heads/$DEFAULT" "$TIP" "$OLD"`
	switch isCheckedOut := !f.isBare && f.head == "refs/heads/"+r.DefaultBranch; {
	case f.isDefaultElsewhere:
		return reeve.Errorf(reeve.Conflict, "%s is checked out in another worktree of project %q", r.DefaultBranch,
			r.Name).Hintf("%s", hint)
	case isCheckedOut && f.hasFilters:
		return reeve.Errorf(reeve.Conflict, "project %q has %s checked out and configures filter programs",
			r.Name, r.DefaultBranch).Hintf("%s", hint)
	case isCheckedOut:
		// Wait for another git process that uses the index, for example one of a server that was killed.
		script = `i=0; while [ -e "$GIT_DIR/index.lock" ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done
` + unchangedScript + `export GIT_WORK_TREE="$PWD"; git update-index -q --refresh
git merge -q --ff-only --no-stat "$TIP"`
	}
	res, err := r.runScript(ctx, script, nil, "HEAD="+f.head, "OLD="+f.tip, "TIP="+to)
	if err == nil && res.ExitCode != 0 {
		e := reeve.Errorf(reeve.Conflict, "%s of project %q is unchanged: %s", r.DefaultBranch,
			r.Name, renderStderr(res, r.Path+"/", r.Path))
		err = e.Hintf("commit or stash local changes in the repository, or try again if another process is working " +
			"there")
	}
	return err
}
