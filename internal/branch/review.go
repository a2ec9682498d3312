package branch

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"reeve"
	"reeve/internal/sandbox/confine"
)

// scratch is an empty temporary repository that reads the objects of a project. It has no settings of users or agents.
type scratch struct {
	dir string
	repository
}

func (d *Service) newScratch(r repository, idLength int) (scratch, error) {
	dir, err := os.MkdirTemp(d.Dir, "scratch-")
	if err != nil {
		return scratch{}, newWriteError(err)
	}
	if err := writeEmptyRepository(dir, "none", r, idLength); err != nil {
		_ = os.RemoveAll(dir)
		return scratch{}, newWriteError(err)
	}
	return scratch{dir, r}, nil
}

func (s scratch) close() { _ = os.RemoveAll(s.dir) }

func (s scratch) runScript(ctx context.Context, script string, to *os.File, env ...string) (confine.Result, error) {
	return gitTask{root: s.dir, readOnly: []string{s.objectsDir()}, script: `export GIT_DIR="$PWD/.git"; ` + script,
		env: env,
		to:  to}.run(ctx)
}

// comparison is a scratch repository for comparing a branch with the default branch.
type comparison struct {
	scratch
	facts repositoryState
	env   []string
}

// openComparison prepares a comparison of a branch with the default branch. The caller must close it.
func (d *Service) openComparison(ctx context.Context, b reeve.Branch) (a comparison, err error) {
	r, err := d.getRepository(ctx, b.WorkspaceID, b.ProjectID)
	if err != nil {
		return a, err
	}
	if b.State != reeve.BranchReady {
		return a, reeve.Errorf(reeve.Conflict, "branch %s is %s", b.Name, b.State).
			Hintf("the next command on the branch creates it again")
	}
	if a.facts, err = r.readState(ctx, b.Name); err != nil {
		return a, err
	}
	if _, err := r.getStartCommit(a.facts); err != nil {
		return a, err
	}
	if a.facts.branch == "" {
		return a, reeve.Errorf(reeve.Conflict, "the repository of project %q no longer has the branch %s", r.Name,
			b.Name).Hintf("discard the branch, or let the agent continue: its next commit creates the branch again")
	}
	a.scratch, err = d.newScratch(r, len(a.facts.tip))
	a.env = []string{"INTO=" + a.facts.tip, "TIP=" + a.facts.branch}
	return a, err
}

// rangeScript sets base to the commit where a branch left the default branch, or to the default branch if they have no
// common history.
const rangeScript = `base=$(git merge-base "$INTO" "$TIP") || base=$INTO; `

// Diff returns the changes of a branch.
func (d *Service) Diff(ctx context.Context, b reeve.Branch) (out reeve.BranchDiff, err error) {
	a, err := d.openComparison(ctx, b)
	if err != nil {
		return out, err
	}
	defer a.close()
	out = reeve.BranchDiff{Branch: b, Into: a.facts.tip, Files: []reeve.FileChange{}}
	stat, err := a.runGit(ctx,
		rangeScript+`git diff --no-ext-diff --no-textconv --no-renames --numstat -z "$base" "$TIP"`)
	if err != nil {
		return out, err
	}
	for row := range bytes.SplitSeq(bytes.TrimSuffix(stat.Stdout, []byte{0}), []byte{0}) {
		f := strings.SplitN(string(row), "\t", 3)
		if len(f) != 3 {
			continue
		}
		c := reeve.FileChange{Path: reeve.SanitizeText(f[2]), Binary: f[0] == "-"}
		c.Added, _ = strconv.Atoi(f[0])
		c.Removed, _ = strconv.Atoi(f[1])
		out.Files = append(out.Files, c)
	}
	patch, err := a.runGit(ctx,
		rangeScript+`git diff --no-ext-diff --no-textconv --no-renames --no-color "$base" "$TIP"`)
	out.Patch, out.Truncated = reeve.SanitizeText(string(patch.Stdout)), patch.Truncated || stat.Truncated
	return out, err
}

func (a comparison) runGit(ctx context.Context, script string) (confine.Result, error) {
	r, err := a.runScript(ctx, script, nil, a.env...)
	if err == nil && r.ExitCode != 0 {
		err = a.newGitError(r, "git failed")
	}
	return r, err
}

// maxLogCommits is the number of commits that Log returns at most.
const maxLogCommits = 200

// Log returns the commits of a branch that the default branch does not have, newest first.
func (d *Service) Log(ctx context.Context, b reeve.Branch) (out reeve.BranchLog, err error) {
	a, err := d.openComparison(ctx, b)
	if err != nil {
		return out, err
	}
	defer a.close()
	r, err := a.runGit(ctx, `git log -z --no-show-signature --format='%H%x1f%an%x1f%ct%x1f%B' -n `+
		strconv.Itoa(maxLogCommits)+` "$INTO..$TIP"`)
	if err != nil {
		return out, err
	}
	out = reeve.BranchLog{Branch: b, Commits: []reeve.Commit{}}
	for row := range strings.SplitSeq(string(r.Stdout), "\x00") {
		f := strings.SplitN(row, "\x1f", 4)
		if len(f) != 4 {
			continue
		}
		at, _ := strconv.ParseInt(f[2], 10, 64)
		out.Commits = append(out.Commits, reeve.Commit{ID: f[0], Author: reeve.SanitizeText(f[1]), At: time.Unix(at, 0).
			UTC(), Message: reeve.SanitizeText(strings.TrimSpace(f[3]))})
	}
	return out, nil
}
