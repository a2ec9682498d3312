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

// mergeScript works a merge out, without any files: it names the files in conflict, or gives the commit and a pack.
// Where there is nothing to merge, it tells of the last merge that Reeve made of the branch: the commit, when, and who
// said so.
const mergeScript = `set -u
exec 3>&1
if git merge-base --is-ancestor "$TIP" "$INTO"; then
	echo "uptodate $INTO" >&3
	git log --first-parent --merges -n 1 --grep "^Reeve-Branch: $ID\$" --format='%H %ct %(trailers:key=Reeve-Merged-By,valueonly)' "$INTO" "^$TIP" >&3
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

// exitConflict is how mergeScript ends when the two sides disagree.
const exitConflict = 9

// Merge merges a branch into its project's default branch, on a person's word. If it cannot, the default branch is as
// it was.
func (d *Service) Merge(ctx context.Context, who reeve.Principal, b reeve.Branch,
	message string) (out reeve.MergeResult, err error) {
	leave, err := d.tryLockBranch(b, "merged")
	if err != nil {
		return out, err
	}
	defer leave()
	done, err := d.locks.Wait(ctx, b.ProjectID)
	if err != nil {
		return out, err
	}
	defer done()
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
		return out, a.newGitError(res, "the branch cannot be merged")
	}
	state, commit, err := readHeader(pack)
	if err != nil {
		return out, err
	}
	out = reeve.MergeResult{Branch: b, Into: a.DefaultBranch, UpToDate: state == "uptodate"}
	// git is not stopped halfway, and what it has done is noted, though nobody waits for it
	keep := context.WithoutCancel(ctx)
	if out.UpToDate {
		out.Branch, err = d.recordFoundMerge(keep, b, pack)
		return out, err
	}
	if err := a.importPack(ctx, pack, a.facts.tip, commit); err != nil {
		return out, err
	}
	if err := a.advanceDefaultBranch(keep, a.facts, commit); err != nil {
		return out, err
	}
	now := reeve.Now()
	b.Merged, b.MergedBy, b.MergedAt = commit, who.User, &now
	out.Branch, err = d.updateBranch(keep, b)
	out.Commit = commit
	return out, err
}

// recordFoundMerge notes a merge that was made and not noted, because the server stopped in between. What is left to read says
// which.
func (d *Service) recordFoundMerge(ctx context.Context, b reeve.Branch, rest io.Reader) (reeve.Branch, error) {
	line, err := io.ReadAll(io.LimitReader(rest, 4096))
	last := strings.SplitN(strings.TrimSpace(string(line)), " ", 3)
	if err != nil || len(last) < 3 || !isCommit(last[0]) || last[0] == b.Merged {
		return b, err
	}
	seconds, err := strconv.ParseInt(last[1], 10, 64)
	if err != nil {
		return b, err
	}
	at := reeve.FromMillis(1000 * seconds)
	b.Merged, b.MergedBy, b.MergedAt = last[0], last[2], &at
	return d.updateBranch(ctx, b)
}

// tryLockBranch has nobody else work on a branch while a person's word is done, and refuses if somebody does. What is done is
// told those who come meanwhile.
func (d *Service) tryLockBranch(b reeve.Branch, what string) (leave func(), err error) {
	free := d.locks.Try(b.ID)
	if free == nil {
		return nil, d.newBusyError(b)
	}
	d.exclusiveOps.Store(b.ID, what)
	return func() { d.exclusiveOps.Delete(b.ID); free() }, nil
}

func (d *Service) newBusyError(b reeve.Branch) error {
	if what, ok := d.exclusiveOps.Load(b.ID); ok {
		return reeve.Errorf(reeve.Conflict, "branch %s is just being %s, by another request", b.Name, what).
			Hintf("look at it when that has ended")
	}
	return reeve.Errorf(reeve.Conflict, "a command is running on branch %s", b.Name).
		Hintf("try again when it has ended")
}

// newConflictError names the files on which a branch and the default branch disagree.
func newConflictError(b reeve.Branch, into, list string) error {
	e := reeve.Errorf(reeve.Conflict, "branch %s and %s changed the same places; %s is as it was", b.Name, into, into).
		Hintf("let the agent settle them (git fetch, then git merge origin/%s), or merge the branch by hand in the "+
			"repository", into)
	for line := range strings.Lines(list) {
		if p := reeve.SanitizeText(strings.TrimSuffix(line, "\n")); p != "" && len(e.Fields) < 100 {
			e.Fields = append(e.Fields, reeve.Field{Path: p, Message: "is in conflict"})
		}
	}
	return e
}

// saveLeftovers commits what a command that was killed left in the branch's folder, and brings it in.
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
		return b, nil // what the repository has is all there is
	}
	s, err := f.save(ctx, "What an interrupted command left", authorEnv("Reeve", "reeve"))
	if err != nil || s.tip == b.Head {
		return b, err
	}
	b.Head = s.tip
	return d.updateBranch(ctx, b)
}

// Discard deletes a branch and its folder, on a person's word. The next command of whose it was begins it anew.
func (d *Service) Discard(ctx context.Context, b reeve.Branch) (reeve.Branch, error) {
	leave, err := d.tryLockBranch(b, "discarded")
	if err != nil {
		return b, err
	}
	defer leave()
	b, err = d.getBranch(ctx, b.WorkspaceID, b.ID)
	if err != nil {
		return b, err
	}
	if b.State == reeve.BranchDiscarded {
		return b, reeve.Errorf(reeve.Conflict, "branch %s is discarded already", b.Name)
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
			return b, reeve.Errorf(reeve.Conflict, "somebody has %s checked out in the repository of project %q",
				b.Name, b.Project).Hintf("check something else out there first")
		}
	}
	b.State = reeve.BranchDiscarding
	keep := context.WithoutCancel(ctx) // what is begun is finished, though nobody waits for it
	if b, err = d.updateBranch(keep, b); err != nil {
		return b, err
	}
	return d.finishDiscard(keep, r, b)
}

// finishDiscard finishes a discard.
func (d *Service) finishDiscard(ctx context.Context, r repository, b reeve.Branch) (reeve.Branch, error) {
	if r.Path != "" && b.Base != "" { // one that was never begun is not ours to delete
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

// NewProject checks that a folder is a repository on which agents can work, and gives the project that it would be.
func (d *Service) NewProject(ctx context.Context, who reeve.Principal,
	q reeve.ProjectRequest) (p reeve.Project, err error) {
	p = reeve.Project{WorkspaceID: who.Workspace, Name: q.Name, DefaultBranch: q.DefaultBranch, CreatedBy: who.User}
	wrong := func(message, expected string) error { return reeve.InvalidField("/path", message, expected) }
	if !filepath.IsAbs(q.Path) || strings.ContainsAny(q.Path, "\x00\n") {
		return p, wrong("is not an absolute path", "the repository's folder on the server's disk, such as /srv/site")
	}
	if p.Path, err = filepath.EvalSymlinks(q.Path); err != nil || !isDir(p.Path) {
		return p, wrong("is not a folder on the server's disk", "a git repository")
	}
	if filepath.Base(p.Path) == ".git" {
		return p, wrong("is the inside of a repository that has its files checked out", "the folder that it is in: "+
			filepath.Dir(q.Path))
	}
	data, err := filepath.EvalSymlinks(filepath.Dir(d.Dir))
	if err != nil {
		return p, newWriteError(err)
	}
	if isWithin(p.Path, data) || isWithin(data, p.Path) {
		return p, wrong("is in Reeve's own data directory, or around it", "a repository that no agent can write")
	}
	r, err := openRepository(p)
	if err != nil {
		if _, e := os.Stat(filepath.Join(p.Path, ".git")); e == nil {
			return p, wrong("is a worktree of another repository", "the folder of the repository itself")
		}
		return p, wrong("is not a git repository", "a folder with a .git in it, or a bare repository")
	}
	if _, err := os.Stat(filepath.Join(r.objectsDir(), "info", "alternates")); err == nil {
		return p, wrong("is a repository that borrows objects from another",
			"one of its own: git repack -a -d, then remove .git/objects/info/alternates")
	}
	f, err := r.readState(ctx, "none")
	if err != nil {
		return p, err
	}
	head, onBranch := strings.CutPrefix(f.head, "refs/heads/")
	switch {
	case p.DefaultBranch == "" && !onBranch:
		return p, reeve.InvalidField("/default_branch", "is missing, and the repository's head is detached",
			"the branch that others begin at and are merged into")
	case p.DefaultBranch == "":
		p.DefaultBranch = head
	case isInvalidBranchName(p.DefaultBranch):
		return p, reeve.InvalidField("/default_branch", "is not the name of a branch", "a name such as main")
	case f.tip == "" && !f.isEmpty:
		return p, reeve.InvalidField("/default_branch", "is not in the repository", "one of its branches")
	}
	return p, nil
}

// isInvalidBranchName refuses what git would, and what is ours.
func isInvalidBranchName(s string) bool {
	return strings.HasPrefix(s, "-") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "reeve/") ||
		strings.HasSuffix(s, ".lock") || strings.HasSuffix(s, "/") || strings.Contains(s, "..") ||
		strings.Contains(s, "//") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") ||
		strings.Map(replaceControl, s) != s
}

// isWithin tells whether a path is another, or below it.
func isWithin(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
