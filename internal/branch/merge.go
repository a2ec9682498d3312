package branch

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reeve"
)

// mergeScript computes a merge without a working tree. It prints the id of the merge commit and a pack, or exits with
// exitConflict and the names of conflicting files on stderr. If the branch is merged already, it prints the last merge
// of the branch by Reeve: commit, time and user.
const mergeScript = `set -u
exec 3>&1
if git merge-base --is-ancestor "$TIP" "$INTO"; then
	echo "uptodate $INTO" >&3
	git log --first-parent --merges -n 1 --grep "^Reeve-Branch: $ID\$" \
		--format='%H %ct %(trailers:key=Reeve-Merged-By,valueonly)' "$INTO" "^$TIP" >&3
	exit
fi
tree=$(git merge-tree --write-tree --name-only --no-messages "$INTO" "$TIP" 2>.git/why); code=$?
case $code in
0) ;;
1) printf '%s\n' "$tree" | tail -n +2 >&2; exit 9 ;;
*) cat .git/why >&2; exit 1 ;;
esac
commit=$(git commit-tree "$tree" -p "$INTO" -p "$TIP" -m "$MESSAGE") || exit 1
printf 'merged %s\n' "$commit" >&3
printf '%s\n^%s\n^%s\n' "$commit" "$INTO" "$TIP" | git pack-objects -q --revs --stdout >&3`

// exitConflict is the exit code of mergeScript if the branches conflict.
const exitConflict = 9

// Merge merges a branch into the default branch of its project, at the request of a person. If it fails, the default
// branch is unchanged.
func (d *Service) Merge(ctx context.Context, who reeve.Principal, b reeve.Branch,
	message string) (out reeve.MergeResult, err error) {
	unlock, err := d.tryLockBranch(b, "merged")
	if err != nil {
		return out, err
	}
	defer unlock()
	unlockProject, err := d.locks.Wait(ctx, b.ProjectID)
	if err != nil {
		return out, err
	}
	defer unlockProject()
	if b, err = d.getBranch(ctx, b.WorkspaceID, b.ID); err != nil {
		return out, err
	}
	if b, err = d.saveLeftovers(ctx, b); err != nil {
		return out, err
	}
	a, err := d.openComparison(ctx, b)
	if err != nil {
		return out, err
	}
	defer a.close()
	if strings.TrimSpace(message) == "" {
		message = "Merge " + b.Name
	}
	pack, err := os.CreateTemp(d.Dir, "pack-")
	if err != nil {
		return out, newWriteError(err)
	}
	defer pack.Close()
	if err := os.Remove(pack.Name()); err != nil {
		return out, newWriteError(err)
	}
	user := strings.Map(replaceControl, who.User)
	if user == "" {
		user = "reeve"
	}
	res, err := a.runScript(ctx, mergeScript, pack, append(append(a.env, authorEnv(user, b.WorkspaceID)...), "ID="+b.ID,
		"MESSAGE="+message+"\n\nReeve-Branch: "+b.ID+"\nReeve-Merged-By: "+user)...)
	switch {
	case err != nil:
		return out, err
	case res.ExitCode == exitConflict:
		return out, newConflictError(b, a.DefaultBranch, string(res.Stderr))
	case res.ExitCode != 0:
		return out, a.newGitError(res, "cannot merge the branch")
	}
	state, commit, err := readHeader(pack)
	if err != nil {
		return out, err
	}
	out = reeve.MergeResult{Branch: b, Into: a.DefaultBranch, UpToDate: state == "uptodate"}
	// From here on, the merge is completed and recorded even if the request is cancelled.
	detached := context.WithoutCancel(ctx)
	if out.UpToDate {
		out.Branch, err = d.recordFoundMerge(detached, b, pack)
		return out, err
	}
	if err := a.importPack(ctx, pack, a.facts.tip, commit); err != nil {
		return out, err
	}
	if err := a.advanceDefaultBranch(detached, a.facts, commit); err != nil {
		return out, err
	}
	now := reeve.Now()
	b.Merged, b.MergedHead, b.MergedBy, b.MergedAt = commit, b.Head, who.User, &now
	out.Branch, err = d.updateBranch(detached, b)
	out.Commit = commit
	return out, err
}

// recordFoundMerge records that the default branch has all of the branch. If the server stopped between a merge and its
// record, the rest of the output of mergeScript names the merge.
func (d *Service) recordFoundMerge(ctx context.Context, b reeve.Branch, rest io.Reader) (reeve.Branch, error) {
	line, err := io.ReadAll(io.LimitReader(rest, 4096))
	last := strings.SplitN(strings.TrimSpace(string(line)), " ", 3)
	if err != nil {
		return b, err
	}
	if len(last) == 3 && isCommit(last[0]) && last[0] != b.Merged {
		seconds, err := strconv.ParseInt(last[1], 10, 64)
		if err != nil {
			return b, err
		}
		at := reeve.FromMillis(1000 * seconds)
		b.Merged, b.MergedBy, b.MergedAt = last[0], last[2], &at
	} else if b.MergedHead == b.Head {
		return b, nil
	}
	b.MergedHead = b.Head
	return d.updateBranch(ctx, b)
}

// tryLockBranch locks a branch for an operation of a person. It fails with Conflict if the branch is locked. The
// operation is named in the errors of later callers.
func (d *Service) tryLockBranch(b reeve.Branch, operation string) (unlock func(), err error) {
	release := d.locks.Try(b.ID)
	if release == nil {
		return nil, d.newBusyError(b)
	}
	d.exclusiveOps.Store(b.ID, operation)
	return func() { d.exclusiveOps.Delete(b.ID); release() }, nil
}

func (d *Service) newBusyError(b reeve.Branch) error {
	if operation, ok := d.exclusiveOps.Load(b.ID); ok {
		return reeve.Errorf(reeve.Conflict, "branch %s is being %s by another request", b.Name, operation).
			Hintf("try again when that request has ended")
	}
	return reeve.Errorf(reeve.Conflict, "a command is running on branch %s", b.Name).
		Hintf("try again when the command has ended")
}

// newConflictError returns an error that names the conflicting files.
func newConflictError(b reeve.Branch, into, list string) error {
	e := reeve.Errorf(reeve.Conflict, "branch %s and %s have conflicting changes; %s is unchanged", b.Name, into, into).
		Hintf("let the agent resolve them (git fetch, then git merge origin/%s), or merge the branch by hand in the "+
			"repository", into)
	for line := range strings.Lines(list) {
		if p := reeve.SanitizeText(strings.TrimSuffix(line, "\n")); p != "" && len(e.Fields) < 100 {
			e.Fields = append(e.Fields, reeve.Field{Path: p, Message: "is in conflict"})
		}
	}
	return e
}

// saveLeftovers commits and imports changes that a killed command has left in the folder of a branch.
func (d *Service) saveLeftovers(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	if b.State != reeve.BranchReady {
		return b, nil
	}
	r, err := d.getRepository(ctx, b.WorkspaceID, b.ProjectID)
	if err != nil {
		return b, err
	}
	f := folder{filepath.Join(d.Dir, b.ID), r, b}
	if !f.isIntact() {
		return b, nil // the folder has no changes to save
	}
	s, err := f.save(ctx, "Save changes of an interrupted command", authorEnv("Reeve", "reeve"))
	if err != nil || s.tip == b.Head {
		return b, err
	}
	b.Head = s.tip
	return d.updateBranch(ctx, b)
}

// Discard deletes a branch and its folder, at the request of a person. The next command of the branch's owner creates
// the branch again.
func (d *Service) Discard(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	unlock, err := d.tryLockBranch(b, "discarded")
	if err != nil {
		return b, err
	}
	defer unlock()
	b, err = d.getBranch(ctx, b.WorkspaceID, b.ID)
	if err != nil {
		return b, err
	}
	if b.State == reeve.BranchDiscarded {
		return b, reeve.Errorf(reeve.Conflict, "branch %s has been discarded already", b.Name)
	}
	r, err := d.getRepository(ctx, b.WorkspaceID, b.ProjectID)
	if reeve.CodeOf(err) == reeve.Unavailable { // the repository is gone, and its branch with it
		r, err = repository{}, nil
	}
	if err != nil {
		return b, err
	}
	if r.Path != "" {
		f, err := r.readState(ctx, b.Name)
		if err != nil {
			return b, err
		}
		if f.isCheckedOut {
			return b, reeve.Errorf(reeve.Conflict, "branch %s is checked out in the repository of project %q",
				b.Name, b.Project).Hintf("check out another branch there first")
		}
	}
	b.State = reeve.BranchDiscarding
	detached := context.WithoutCancel(ctx) // the discard is completed even if the request is cancelled
	if b, err = d.updateBranch(detached, b); err != nil {
		return b, err
	}
	return d.finishDiscard(detached, r, b)
}

// finishDiscard deletes the reference and the folder of a branch in state discarding.
func (d *Service) finishDiscard(ctx context.Context, r repository, b reeve.Branch) (reeve.Branch, error) {
	if r.Path != "" && b.Base != "" { // without a base, Reeve did not create the reference
		if err := r.deleteBranch(ctx, b.Name); err != nil {
			return b, err
		}
	}
	if err := os.RemoveAll(filepath.Join(d.Dir, b.ID)); err != nil {
		return b, newWriteError(err)
	}
	b.State = reeve.BranchDiscarded
	return d.updateBranch(ctx, b)
}

// NewProject returns a project for a repository on the server's disk. It fails with Validation if agents cannot work on
// the repository.
func (d *Service) NewProject(ctx context.Context, who reeve.Principal,
	q reeve.ProjectRequest) (p reeve.Project, err error) {
	p = reeve.Project{WorkspaceID: who.Workspace, Name: q.Name, DefaultBranch: q.DefaultBranch, CreatedBy: who.User}
	invalidPath := func(message, expected string) error { return reeve.InvalidField("/path", message, expected) }
	if !filepath.IsAbs(q.Path) || strings.ContainsAny(q.Path, "\x00\n") {
		return p, invalidPath("is not an absolute path",
			"the folder of the repository on the server's disk, such as /srv/site")
	}
	if p.Path, err = filepath.EvalSymlinks(q.Path); err != nil || !isDir(p.Path) {
		return p, invalidPath("is not a folder on the server's disk", "a git repository")
	}
	if filepath.Base(p.Path) == ".git" {
		return p, invalidPath("is the .git folder of a repository", "its parent folder: "+filepath.Dir(q.Path))
	}
	data, err := filepath.EvalSymlinks(filepath.Dir(d.Dir))
	if err != nil {
		return p, newWriteError(err)
	}
	if isWithin(p.Path, data) || isWithin(data, p.Path) {
		return p, invalidPath("is inside Reeve's data directory or contains it",
			"a repository that no agent can write to")
	}
	r, err := openRepository(p)
	if err != nil {
		if _, e := os.Stat(filepath.Join(p.Path, ".git")); e == nil {
			return p, invalidPath("is a worktree of another repository", "the folder of the repository itself")
		}
		return p, invalidPath("is not a git repository", "a folder with a .git in it, or a bare repository")
	}
	if _, err := os.Stat(filepath.Join(r.objectsDir(), "info", "alternates")); err == nil {
		return p, invalidPath("is a repository with alternates",
			"a complete repository: run git repack -a -d, then remove .git/objects/info/alternates")
	}
	f, err := r.readState(ctx, "none")
	if err != nil {
		return p, err
	}
	head, onBranch := strings.CutPrefix(f.head, "refs/heads/")
	switch {
	case p.DefaultBranch == "" && !onBranch:
		return p, reeve.InvalidField("/default_branch", "is required, because the repository's HEAD is detached",
			"the branch that new branches start at and are merged into")
	case p.DefaultBranch == "":
		p.DefaultBranch = head
	case isInvalidBranchName(p.DefaultBranch):
		return p, reeve.InvalidField("/default_branch", "is not a valid branch name", "a name such as main")
	case f.tip == "" && !f.isEmpty:
		return p, reeve.InvalidField("/default_branch", "is not in the repository", "one of its branches")
	}
	return p, nil
}

// isInvalidBranchName reports whether git would refuse a branch name, or the name is reserved for Reeve.
func isInvalidBranchName(s string) bool {
	return strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "reeve/") ||
		strings.HasSuffix(s, ".lock") || strings.HasSuffix(s, "/") || strings.Contains(s, "..") ||
		strings.Contains(s, "//") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") ||
		strings.Map(replaceControl, s) != s
}

// isWithin reports whether a path is dir, or below it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
