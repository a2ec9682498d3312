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

// repository is a project's own, on which git runs as its owner and with nothing of an agent's but data.
type repository struct {
	reeve.Project
	gitDir string // its git folder
}

// openRepository finds a project's repository on the disk.
func openRepository(p reeve.Project) (repository, error) {
	for _, dir := range []string{filepath.Join(p.Path, ".git"), p.Path} {
		if isDir(filepath.Join(dir, "objects")) && isDir(filepath.Join(dir, "refs")) {
			return repository{p, dir}, nil
		}
	}
	return repository{}, reeve.Errorf(reeve.Unavailable, "the repository of project %q is not there", p.Name).
		Hintf("its folder was moved or removed: bring it back, or delete the project and make it again")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (r repository) objectsDir() string { return filepath.Join(r.gitDir, "objects") }

// listReadablePaths is what agents may read of the repository: enough to fetch from, and not its settings, which may hold
// passwords.
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
func (r repository) runScript(ctx context.Context, script string, from *os.File, env ...string) (confine.Result, error) {
	dir := "GIT_DIR=" + r.gitDir
	return gitTask{root: r.Path, asOwner: true, script: script, env: append(env, dir, "DEFAULT="+r.DefaultBranch),
		from: from}.run(ctx)
}

// newGitError is what git refused, for people.
func (r repository) newGitError(res confine.Result, what string) error {
	return reeve.Errorf(reeve.Conflict, "%s in project %q: %s", what, r.Name, renderStderr(res, r.Path+"/", r.Path))
}

// repositoryState is how a repository stands.
type repositoryState struct {
	head      string // the branch it has checked out, in full; empty when its head is detached
	isBare      bool
	isEmpty     bool   // there is no commit in it
	tip       string // of the default branch
	branch    string // the tip of the branch that was asked for; empty when there is none
	isCheckedOut   bool   // somebody has the branch checked out
	isDefaultElsewhere bool   // the default branch is checked out in another worktree than the repository's own
	hasFilters   bool   // it runs programs of its own over files
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

// readState asks how the repository stands, and a branch in it.
func (r repository) readState(ctx context.Context, branch string) (f repositoryState, err error) {
	res, err := r.runScript(ctx, stateScript, nil, "BRANCH="+branch)
	if err != nil {
		return f, err
	}
	if res.ExitCode != 0 {
		return f, reeve.Errorf(reeve.Unavailable, "the repository of project %q cannot be read: %s", r.Name,
			renderStderr(res, r.Path+"/", r.Path))
	}
	any := false
	checked := map[string]int{}
	for line := range strings.Lines(string(res.Stdout)) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch key {
		case "head":
			f.head = v
		case "bare":
			f.isBare = v == "true"
		case "any":
			any = v != ""
		case "tip":
			f.tip = v
		case "branch":
			f.branch = v
		case "checked":
			checked[v]++
		case "filter":
			f.hasFilters = true
		}
	}
	f.isEmpty = !any
	f.isCheckedOut = checked["refs/heads/"+branch] > 0
	f.isDefaultElsewhere = checked["refs/heads/"+r.DefaultBranch] > 0 && (f.isBare || f.head != "refs/heads/"+r.DefaultBranch)
	return f, nil
}

// getStartCommit is the commit at which a new branch begins.
func (r repository) getStartCommit(f repositoryState) (string, error) {
	switch {
	case f.isEmpty:
		return "", reeve.Errorf(reeve.Conflict,
			"the repository of project %q has no commits yet, so there is nothing to begin a branch at", r.Name).
			Hintf("make a first commit in it")
	case f.tip == "":
		return "", reeve.Errorf(reeve.Conflict, "the repository of project %q has no branch %q", r.Name,
			r.DefaultBranch).Hintf("make the branch, or make the project again with another default branch")
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

// exitDiverged is how bringScript ends when the branch has commits of somebody else's in the repository.
const exitDiverged = 8

// importPack takes in a pack of objects, checked like a stranger's.
func (r repository) importPack(ctx context.Context, pack *os.File, base, tip string) error {
	_, err := r.importAndUpdateBranch(ctx, pack, "", base, "", "", tip)
	return err
}

// importAndUpdateBranch is bring that also points a branch at one of the objects, from where it is, if that is where it was known to
// be, or is part of what it is pointed at. False means that it is not: somebody else has committed there.
func (r repository) importAndUpdateBranch(ctx context.Context, pack *os.File, branch, base, known, is, tip string) (bool, error) {
	count, err := countObjects(pack)
	if err != nil {
		return false, err
	}
	res, err := r.runScript(ctx, importScript, pack, "BRANCH="+branch, "BASE="+base, "TIP="+tip, "WHY=brought by Reeve",
		"COUNT="+itoa(count), "KNOWN="+known, "OLD="+is)
	if err == nil && res.ExitCode != 0 && res.ExitCode != exitDiverged {
		err = r.newGitError(res, "what was committed cannot be taken in")
	}
	return res.ExitCode == 0, err
}

// countObjects counts the objects of a pack, which begins where the file stands, and leaves it there. No pack is none.
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

// createBranch makes a branch at a commit. One that is there already, at that commit, is the same one, made before a crash.
func (r repository) createBranch(ctx context.Context, f repositoryState, branch, at string) error {
	if f.branch == at {
		return nil
	}
	if f.branch != "" {
		return reeve.Errorf(reeve.Conflict,
			"the repository of project %q already has a branch %s, which Reeve did not make", r.Name, branch).
			Hintf("rename or delete it there; then try again")
	}
	res, err := r.runScript(ctx, `git update-ref -m "begun by Reeve" "refs/heads/$BRANCH" "$TIP" ""`, nil, "BRANCH="+branch,
		"TIP="+at)
	if err == nil && res.ExitCode != 0 {
		err = r.newGitError(res, "the branch cannot be made")
	}
	return err
}

// deleteBranch deletes a branch.
func (r repository) deleteBranch(ctx context.Context, branch string) error {
	res, err := r.runScript(ctx, `git update-ref -m "discarded" -d "refs/heads/$BRANCH"`, nil, "BRANCH="+branch)
	if err == nil && res.ExitCode != 0 {
		err = r.newGitError(res, "the branch cannot be deleted")
	}
	return err
}

// unchangedScript refuses if the repository's owner has checked out another branch since it was looked at, or the default
// branch has moved.
const unchangedScript = `[ "$(git symbolic-ref -q HEAD)" = "$HEAD" ] && [ "$(git rev-parse "refs/heads/$DEFAULT")" = "$OLD" ] || { echo "somebody has checked out another branch or moved it meanwhile" >&2; exit 1; }
`

// advanceDefaultBranch moves the default branch from one commit to a later one. If the repository has it checked out, its files come
// along, unless that would overwrite what somebody has changed there.
func (r repository) advanceDefaultBranch(ctx context.Context, f repositoryState, to string) error {
	const hand = "merge the branch by hand, in the repository"
	by := unchangedScript + `git update-ref -m "merged by Reeve" "refs/heads/$DEFAULT" "$TIP" "$OLD"`
	switch here := !f.isBare && f.head == "refs/heads/"+r.DefaultBranch; {
	case f.isDefaultElsewhere:
		return reeve.Errorf(reeve.Conflict, "%s is checked out in another worktree of project %q", r.DefaultBranch,
			r.Name).Hintf("%s", hand)
	case here && f.hasFilters:
		return reeve.Errorf(reeve.Conflict, "project %q has %s checked out, and programs of its own that filter files",
			r.Name, r.DefaultBranch).Hintf("%s", hand)
	case here:
		// Somebody else's git, or one that a server left behind when it died, may have the index for a moment.
		by = `i=0; while [ -e "$GIT_DIR/index.lock" ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i+1)); done
` + unchangedScript + `export GIT_WORK_TREE="$PWD"; git update-index -q --refresh; git merge -q --ff-only --no-stat "$TIP"`
	}
	res, err := r.runScript(ctx, by, nil, "HEAD="+f.head, "OLD="+f.tip, "TIP="+to)
	if err == nil && res.ExitCode != 0 {
		e := reeve.Errorf(reeve.Conflict, "%s of project %q was not moved, and is as it was: %s", r.DefaultBranch,
			r.Name, renderStderr(res, r.Path+"/", r.Path))
		err = e.Hintf("commit or put away what is changed in the repository's folder, or try again if somebody else " +
			"is at work there")
	}
	return err
}
