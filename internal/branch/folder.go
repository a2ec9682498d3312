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

// folder is where the commands of a branch run: a repository of its own, which its agent may break.
type folder struct {
	path string
	repository
	branch reeve.Branch
}

// isIntact tells whether the folder is there and looks like a repository. Nothing in it is followed or run.
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

// create makes the folder with the files of the branch's head, beside it first: what a crash leaves is made again.
func (f folder) create(ctx context.Context) error {
	fresh := f.path + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return newWriteError(err)
	}
	if err := writeEmptyRepository(fresh, f.branch.Name, f.repository, len(f.branch.Head)); err != nil {
		return newWriteError(err)
	}
	res, err := gitTask{root: fresh, readOnly: []string{f.objectsDir()},
		script: `export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"; git update-ref "refs/remotes/origin/$DEFAULT" "$BASE" && git update-ref "refs/heads/$BRANCH" "$TIP" && git reset -q --hard`,
		env: []string{"BRANCH=" + f.branch.Name, "TIP=" + f.branch.Head, "DEFAULT=" + f.DefaultBranch,
			"BASE=" + f.branch.Base}}.run(ctx)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return reeve.Errorf(reeve.Unavailable, "the files of branch %s cannot be laid out: %s", f.branch.Name,
			renderStderr(res, f.objectsDir()+"/", fresh+"/", f.Path+"/")).
			Hintf("commands must be able to read the repository, and the branch's commits must still be in it; " +
				"discarding the branch begins it anew")
	}
	if err := os.RemoveAll(f.path); err != nil {
		return newWriteError(err)
	}
	return os.Rename(fresh, f.path)
}

func newWriteError(err error) error {
	return reeve.Errorf(reeve.Unavailable, "the branch's folder cannot be written: %v", err)
}

// saveScript commits what is there, and gives what the repository does not have yet: a line that says how it stands,
// and a pack. A .git that its agent broke is made anew at the last commit that the repository has; the files stay. It
// runs when nothing else does in the folder, so that locks in it are a dead command's. Nor does anybody write into a
// named pipe there: where git would read one, it would wait for that.
const saveScript = `set -u
exec 3>&1 1>&2
find . -type p \( -path './.git/*' -o -name '.git*' \) -delete 2>/dev/null
export GIT_DIR="$PWD/.git" GIT_WORK_TREE="$PWD"
ref="refs/heads/$BRANCH"
state=kept
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1 && ! git rev-parse -q --verify "$ref" >/dev/null 2>&1; then
	state=mended
	chmod -R u+rwX .git 2>/dev/null
	rm -rf .git && mkdir -p .git/objects/info .git/refs/heads && printf 'ref: %s\n' "$ref" >.git/HEAD && printf '%s' "$CONFIG" >.git/config &&
		printf '%s\n' "$OBJECTS" >.git/objects/info/alternates && git update-ref "$ref" "$KNOWN" && git reset -q || exit 1
fi
find .git -name '*.lock' -type f -exec rm -f {} + 2>/dev/null
for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD rebase-merge rebase-apply; do [ ! -e ".git/$f" ] || state=busy; done
if [ "$(git symbolic-ref -q HEAD)" != "$ref" ]; then
	state=away
elif [ $state != busy ]; then
	git add -A --ignore-errors -- . ':(exclude,glob)**/.reeve-*'
	git diff --cached --quiet || git commit -q --no-verify -m "$MESSAGE" || exit 1
fi
tip=$(git rev-parse -q --verify "$ref^{commit}") || tip=$KNOWN
printf '%s %s\n' "$state" "$tip" >&3
[ "$tip" = "$KNOWN" ] || printf '%s\n^%s\n^%s\n' "$tip" "$KNOWN" "$BASE" | git pack-objects -q --revs --thin --stdout >&3`

// saveOutcome is what became of what a command left behind.
type saveOutcome struct {
	tip  string
	note string // what an agent should know
}

// authorEnv tells git whose a commit is.
func authorEnv(name, mailbox string) []string {
	mailbox += "@reeve.invalid"
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + mailbox, "GIT_COMMITTER_NAME=" + name,
		"GIT_COMMITTER_EMAIL=" + mailbox}
}

// save commits what is in the folder, and brings it into the repository.
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
		return s, reeve.Errorf(reeve.ToolFailed, "what is in the folder could not be committed: %s",
			renderStderr(res, f.objectsDir()+"/", f.path+"/"))
	}
	state, tip, err := readHeader(pack)
	if err != nil {
		return s, err
	}
	switch s.tip = tip; state {
	case "mended":
		s.note = "the folder's .git was broken, and was made anew; what was committed before is there"
	case "busy":
		s.note = "a merge or rebase is under way, so nothing was committed; finish or abort it"
	case "away":
		s.note = "another branch is checked out, so nothing was committed; only " + f.branch.Name +
			" is shown to people: git switch " + f.branch.Name
	}
	if tip == f.branch.Head {
		return s, nil
	}
	facts, err := f.readState(ctx, f.branch.Name)
	if err != nil {
		return s, err
	}
	if facts.isCheckedOut {
		s.tip, s.note = f.branch.Head,
			"somebody has this branch checked out in the repository; what was committed is brought there once they "+
				"do not"
		return s, nil
	}
	brought, err := f.importAndUpdateBranch(ctx, pack, f.branch.Name, f.branch.Base, f.branch.Head, facts.branch, tip)
	if err == nil && !brought {
		s.tip, s.note = f.branch.Head,
			"somebody has committed to this branch in the repository; what was committed here is brought there once "+
				"it has that too: git fetch, then git merge origin/"+f.branch.Name
	}
	return s, err
}

// readHeader reads the line before the pack, which code of the agent's may have written, and leaves the file at its end.
func readHeader(f *os.File) (state, tip string, err error) {
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return "", "", err
	}
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n')
	state, tip, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if !isCommit(tip) {
		return "", "", reeve.Errorf(reeve.ToolFailed,
			"what is in the folder could not be committed: git in it does not answer as git does")
	}
	_, err = f.Seek(int64(len(line)), io.SeekStart)
	return state, tip, err
}
