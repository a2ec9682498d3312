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

// scratch is an empty repository that reads a project's objects, for one question. No setting of anybody's is in it.
type scratch struct {
	dir string
	repository
}

func (d *Service) scratch(r repository, hexes int) (scratch, error) {
	dir, err := os.MkdirTemp(d.Dir, "scratch-")
	if err != nil {
		return scratch{}, unwritable(err)
	}
	if err := skeleton(dir, "none", r, hexes); err != nil {
		_ = os.RemoveAll(dir)
		return scratch{}, unwritable(err)
	}
	return scratch{dir, r}, nil
}

func (s scratch) close() { _ = os.RemoveAll(s.dir) }

func (s scratch) do(ctx context.Context, script string, to *os.File, env ...string) (confine.Result, error) {
	return task{root: s.dir, readOnly: []string{s.objects()}, script: `export GIT_DIR="$PWD/.git"; ` + script, env: env,
		to: to}.run(ctx)
}

// against is a branch beside the default branch, ready to be compared.
type against struct {
	scratch
	facts facts
	env   []string
}

// compare opens a branch for comparison with the default branch. Close it.
func (d *Service) compare(ctx context.Context, b reeve.Branch) (a against, err error) {
	r, err := d.find(ctx, b.WorkspaceID, b.ProjectID)
	if err != nil {
		return a, err
	}
	if b.State != reeve.BranchReady {
		return a, reeve.Errorf(reeve.Conflict, "branch %s is %s", b.Name, b.State).
			Hintf("it is there again after the next command on it")
	}
	if a.facts, err = r.look(ctx, b.Name); err != nil {
		return a, err
	}
	if _, err := r.start(a.facts); err != nil {
		return a, err
	}
	if a.facts.branch == "" {
		return a, reeve.Errorf(reeve.Conflict, "the repository of project %q has no branch %s any more", r.Name,
			b.Name).Hintf("discard it here too, or let the agent go on: the next commit brings it back")
	}
	a.scratch, err = d.scratch(r, len(a.facts.tip))
	a.env = []string{"INTO=" + a.facts.tip, "TIP=" + a.facts.branch}
	return a, err
}

// span is the range of what a branch changed: since it left the default branch, or, if they have nothing in common,
// all.
const span = `base=$(git merge-base "$INTO" "$TIP") || base=$INTO; `

// Diff gives what a branch would change.
func (d *Service) Diff(ctx context.Context, b reeve.Branch) (out reeve.BranchDiff, err error) {
	a, err := d.compare(ctx, b)
	if err != nil {
		return out, err
	}
	defer a.close()
	out = reeve.BranchDiff{Branch: b, Into: a.facts.tip, Files: []reeve.FileChange{}}
	stat, err := a.ask(ctx, span+`git diff --no-ext-diff --no-textconv --no-renames --numstat -z "$base" "$TIP"`)
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
	patch, err := a.ask(ctx, span+`git diff --no-ext-diff --no-textconv --no-renames --no-color "$base" "$TIP"`)
	out.Patch, out.Truncated = reeve.SanitizeText(string(patch.Stdout)), patch.Truncated || stat.Truncated
	return out, err
}

func (a against) ask(ctx context.Context, script string) (confine.Result, error) {
	r, err := a.do(ctx, script, nil, a.env...)
	if err == nil && r.ExitCode != 0 {
		err = a.refuse(r, "git cannot tell")
	}
	return r, err
}

// mostCommits is how many commits a log shows.
const mostCommits = 200

// Log gives the commits that a branch has and the default branch has not, newest first.
func (d *Service) Log(ctx context.Context, b reeve.Branch) (out reeve.BranchLog, err error) {
	a, err := d.compare(ctx, b)
	if err != nil {
		return out, err
	}
	defer a.close()
	r, err := a.ask(ctx, `git log -z --no-show-signature --format='%H%x1f%an%x1f%ct%x1f%B' -n `+
		strconv.Itoa(mostCommits)+` "$INTO..$TIP"`)
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
