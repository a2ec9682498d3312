package branch

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"reeve"
)

// folder is the folder of a branch, in which its commands run. It is a repository of its own, which its agent may
// break.
type folder struct {
	path string
	repository
	branch reeve.Branch
}

// isIntact reports whether the folder exists and looks like a repository. It neither follows links nor runs anything.
func (f folder) isIntact() bool {
	root, err := os.OpenRoot(f.path)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, name := range []string{".git", ".git/objects", ".git/refs"} {
		if info, err := root.Lstat(name); err != nil || !info.IsDir() {
			return false
		}
	}
	info, err := root.Lstat(".git/HEAD")
	return err == nil && info.Mode().IsRegular()
}

// create creates the folder with the files of the branch's head. It creates a temporary folder and renames it, so a
// crash leaves no partial folder.
func (f folder) create(ctx context.Context) error {
	temp := f.path + ".new"
	if err := os.RemoveAll(temp); err != nil {
		return newWriteError(err)
	}
	if err := writeEmptyRepository(temp, f.branch.Name, f.repository, len(f.branch.Head)); err != nil {
		return newWriteError(err)
	}
	res, err := gitTask{root: temp, readOnly: []string{f.objectsDir()},
		script: `export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"
git update-ref "refs/remotes/origin/$DEFAULT" "$BASE" &&
	git update-ref "refs/heads/$BRANCH" "$TIP" && git reset -q --hard`,
		env: []string{"BRANCH=" + f.branch.Name, "TIP=" + f.branch.Head, "DEFAULT=" + f.DefaultBranch,
			"BASE=" + f.branch.Base}}.run(ctx)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return reeve.Errorf(reeve.Unavailable, "cannot check out branch %s: %s", f.branch.Name,
			renderStderr(res, f.objectsDir()+"/", temp+"/", f.Path+"/")).
			Hintf("check that commands can read the repository and that it still contains the commits of the branch; " +
				"or discard the branch, so that it starts again")
	}
	if err := os.RemoveAll(f.path); err != nil {
		return newWriteError(err)
	}
	return os.Rename(temp, f.path)
}

func newWriteError(err error) error {
	return reeve.Errorf(reeve.Unavailable, "cannot write to the folder of the branch: %v", err)
}

// saveScript commits the files of the folder. It prints a line with the state and the tip of the branch, followed by a
// pack of the objects that the repository does not have yet. If the agent has broken .git, the script creates it again
// at the last commit that the repository has, and keeps the files.
//
// No other command runs in the folder at that time. So lock files belong to commands that are gone, and are removed.
// Named pipes in .git are removed too, because git would block when it reads one.
const saveScript = `set -u
exec 3>&1 1>&2
find . -type p \( -path './.git/*' -o -name '.git*' \) -delete 2>/dev/null
export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"
ref="refs/heads/$BRANCH"
state=ok
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1 && ! git rev-parse -q --verify "$ref" >/dev/null 2>&1; then
	state=repaired
	chmod -R u+rwX .git 2>/dev/null
	rm -rf .git && mkdir -p .git/objects/info .git/refs/heads &&
		printf 'ref: %s\n' "$ref" >.git/HEAD && printf '%s' "$CONFIG" >.git/config &&
		printf '%s\n' "$OBJECTS" >.git/objects/info/alternates &&
		git update-ref "$ref" "$KNOWN" && git reset -q || exit 1
fi
find .git -name '*.lock' -type f -exec rm -f {} + 2>/dev/null
for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do [ ! -e ".git/$f" ] || state=busy; done
if [ "$(git symbolic-ref -q HEAD)" != "$ref" ]; then
	state=other_branch
elif [ $state != busy ]; then
	git add -A --ignore-errors -- . ':(exclude,glob)**/.reeve-*'
	git diff --cached --quiet || git commit -q --no-verify -m "$MESSAGE" || exit 1
fi
tip=$(git rev-parse -q --verify "$ref^{commit}") || tip=$KNOWN
printf '%s %s\n' "$state" "$tip" >&3
[ "$tip" = "$KNOWN" ] || printf '%s\n^%s\n^%s\n' "$tip" "$KNOWN" "$BASE" |
	git pack-objects -q --revs --thin --stdout >&3`

// saveOutcome is the result of folder.save.
type saveOutcome struct {
	tip  string // the commit that the repository has
	note string // a message for the agent
}

// authorEnv returns the variables that tell git the author of a commit.
func authorEnv(name, mailbox string) []string {
	mailbox += "@reeve.invalid"
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mailbox, "GIT_COMMITTER_NAME=" + name,
		"GIT_COMMITTER_EMAIL=" + mailbox}
}

// save commits the files of the folder and imports the commit into the repository.
func (f folder) save(ctx context.Context, message string, author []string) (s saveOutcome, err error) {
	pack, err := os.CreateTemp(filepath.Dir(f.path), "pack-")
	if err != nil {
		return s, newWriteError(err)
	}
	defer pack.Close()
	if err := os.Remove(pack.Name()); err != nil {
		return s, newWriteError(err)
	}
	res, err := gitTask{root: f.path, readOnly: []string{f.objectsDir()}, script: saveScript, to: pack,
		env: append([]string{"BRANCH=" + f.branch.Name, "KNOWN=" + f.branch.Head, "BASE=" + f.branch.Base,
			"MESSAGE=" + message, "OBJECTS=" + f.objectsDir(), "CONFIG=" + f.renderConfig(len(f.branch.Base))},
			author...)}.run(ctx)
	if err != nil {
		return s, err
	}
	if res.ExitCode != 0 {
		return s, reeve.Errorf(reeve.ToolFailed, "cannot commit the files of the folder: %s",
			renderStderr(res, f.objectsDir()+"/", f.path+"/"))
	}
	state, tip, err := readHeader(pack)
	if err != nil {
		return s, err
	}
	switch s.tip = tip; state {
	case "repaired":
		s.note = "the folder's .git was broken and has been created again; all saved commits are there"
	case "busy":
		s.note = "nothing was committed, because a merge or rebase is in progress; finish or abort it"
	case "other_branch":
		s.note = "nothing was committed, because another branch is checked out; people see only " + f.branch.Name +
			", so run: git switch " + f.branch.Name
	}
	if tip == f.branch.Head {
		return s, nil
	}
	current, err := f.readState(ctx, f.branch.Name)
	if err != nil {
		return s, err
	}
	if current.isCheckedOut {
		s.tip, s.note = f.branch.Head,
			"a person has this branch checked out in the repository; the commit is imported once they check out "+
				"another branch"
		return s, nil
	}
	isImported, err := f.importAndUpdateBranch(ctx, pack, f.branch.Name, f.branch.Base, f.branch.Head, current.branch,
		tip)
	if err == nil && !isImported {
		s.tip, s.note = f.branch.Head,
			"a person has committed to this branch in the repository; to import your commits, merge theirs first: "+
				"git fetch, then git merge origin/"+f.branch.Name
	}
	return s, err
}

// readHeader reads the line before the pack and leaves the file at the beginning of the pack. The agent's code may have
// written the line, so it is checked.
func readHeader(f *os.File) (state, tip string, err error) {
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return "", "", err
	}
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	state, tip, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if !isCommit(tip) {
		return "", "", reeve.Errorf(reeve.ToolFailed,
			"cannot commit the files of the folder: git prints unexpected output")
	}
	_, err = f.Seek(int64(len(line)), io.SeekStart)
	return state, tip, err
}
