package files

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"reeve"
)

type deleteArgs struct {
	Path      string `json:"path" minLength:"1" maxLength:"4096" doc:"A file or folder under /shared, /tmp or /project"`
	Recursive bool   `json:"recursive,omitempty" doc:"True to delete a folder and its contents"`
	Expect    string `json:"expect,omitempty" maxLength:"80" doc:"Delete only in this state. Set by undo"`
}

type deleteResult struct {
	Path string `json:"path"`
	Kind string `json:"kind" doc:"file, dir or link"`
	Kept string `json:"kept" doc:"State that was deleted, as hash for file_restore"`
	Left bool   `json:"left_over,omitempty" doc:"True if it is deleted but its disk space is not free yet"`
	commitInfo
}

func newDeleteResult(v vpath, was state) deleteResult {
	r := deleteResult{Path: v.String(), Kind: string(was.kind), Kept: was.String()}
	if was.kind == file || was.kind == program {
		r.Kind = "file"
	}
	return r
}

// deleter is the tool that deletes files and folders.
type deleter struct {
	*fileWriter
}

func (p *deleter) deleteTool() reeve.Tool {
	t := newTool("file_delete", "Delete file",
		"Delete a file under /shared, /tmp or /project, or with recursive a folder and its contents. The old "+
			"contents are kept, so the deletion can be undone.", capWrite, reeve.Verifiable, writeTimeout)
	t.Risk = reeve.HighRisk
	t.Identity = []string{"path"}
	t.Check = newPathCheck(p.projectAccess, func(in deleteArgs) (vpath, error) {
		return parseWritePath("path", in.Path)
	})
	t.Preview = p.previewDelete
	t.Verify = p.verifyDelete
	return reeve.MustTool(t, p.delete)
}

// snapshotForDelete reads the entry that a call would delete and passes its contents to save, unless save is nil. It
// fails if the entry is a folder and the call is not recursive, and if the state is not the expected one.
func (p *deleter) snapshotForDelete(ctx context.Context, loc location, in deleteArgs,
	save blobSaver) (snapshot, error) {
	info, err := loc.lstat()
	if err != nil {
		return snapshot{}, err
	}
	if info.IsDir() && !in.Recursive {
		return snapshot{}, reeve.Errorf(reeve.ToolFailed, "%s is a folder", loc.path).
			Hintf("set recursive to true to delete it with its contents")
	}
	was, err := p.readSnapshot(ctx, loc, save)
	if err == nil && was.kind == absent {
		err = convertError(fs.ErrNotExist, loc.path)
	}
	if err == nil && in.Expect != "" && in.Expect != was.String() {
		err = staleError(loc.path)
	}
	return was, err
}

func (p *deleter) delete(ctx context.Context, in deleteArgs) (deleteResult, error) {
	v, err := parseWritePath("path", in.Path)
	if err != nil {
		return deleteResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	roots, finish, err := p.openForWriting(ctx, inv, v, "file_delete")
	if err != nil {
		return deleteResult{}, err
	}
	out, err := p.deleteAt(ctx, inv, roots, v, in)
	out.commitInfo = finish(err == nil)
	return out, err
}

// deleteAt stores the contents of the entry at a path and deletes the entry.
func (p *deleter) deleteAt(ctx context.Context, inv *reeve.Invocation, roots rootSet, v vpath,
	in deleteArgs) (deleteResult, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return deleteResult{}, err
	}
	defer release()
	loc, err := p.locate(roots, v)
	if err != nil {
		return deleteResult{}, err
	}
	defer loc.close()
	was, err := p.snapshotForDelete(ctx, loc, in, p.newBlobSaver(ctx, inv.Workspace))
	switch {
	case inv.Base != "" && errors.Is(err, fs.ErrNotExist):
		return deleteResult{}, staleError(v)
	case err != nil:
		return deleteResult{}, err
	case inv.Base != "" && inv.Base != was.String():
		return deleteResult{}, staleError(v)
	}
	if inv.Attempt > 1 {
		removeLeftovers(inv, loc)
	}
	out := newDeleteResult(v, was.state)
	if out.Left, err = p.moveAndRemove(ctx, inv, loc, was.state); err != nil {
		return deleteResult{}, err
	}
	reportDelete(inv, v, was)
	return out, nil
}

// moveAndRemove renames the target to a temporary name and then removes it, so that a crash leaves all of it or nothing
// under its name. After the rename other processes cannot reach the target by its name. Only then it is compared with
// the state that was stored. moveAndRemove reports whether removing the temporary files failed.
func (p *deleter) moveAndRemove(ctx context.Context, inv *reeve.Invocation, loc location,
	was state) (left bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	tmp := location{dir: loc.dir, name: newTempName(inv), path: loc.path}
	if err := loc.dir.Rename(loc.name, tmp.name); err != nil {
		return false, convertError(err, loc.path)
	}
	now, err := p.readSnapshot(context.WithoutCancel(ctx), tmp, nil) // finish even if the call times out
	if err != nil || now.state != was {
		if back := putBack(tmp, loc); back != nil {
			return false, &reeve.Error{Code: reeve.UnknownOutcome, Err: stripPaths(back),
				Message: loc.path.String() + " changed during the deletion and could not be renamed back"}
		}
		if err != nil {
			return false, err
		}
		return false, staleError(loc.path)
	}
	if err := p.syncParent(loc); err != nil {
		return false, err
	}
	return loc.dir.RemoveAll(tmp.name) != nil, nil
}

// putBack undoes a rename. It fails if another entry has the name now.
func putBack(from, to location) error {
	info, err := from.lstat()
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && from.dir.Link(from.name, to.name) == nil {
		return from.dir.Remove(from.name)
	}
	if _, err := to.lstat(); err == nil {
		return fs.ErrExist
	}
	return from.dir.Rename(from.name, to.name)
}

// reportDelete records the deleted file and its undo on the call.
func reportDelete(inv *reeve.Invocation, v vpath, was snapshot) {
	inv.Emit(reeve.SemanticKey, "FILE")
	inv.Emit(reeve.EntityID, v.String())
	if was.kind == link && !staysInside(v.names, string(was.data)) {
		return // file_restore does not create links that point outside, so there is no undo
	}
	inv.UndoWith("file_restore", restoreArgs{Path: v.String(), Hash: was.String(), Expect: string(absent),
		Mode: was.permissions()})
}

// staysInside reports whether the target of a link at a path below a root is below that root.
func staysInside(names []string, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") {
		return false
	}
	to := path.Join(path.Join(names[:len(names)-1]...), target)
	return to != ".." && !strings.HasPrefix(to, "../")
}

func (p *deleter) previewDelete(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[deleteArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	v, err := parseWritePath("path", in.Path)
	if err != nil {
		return reeve.Preview{}, err
	}
	roots, err := p.resolveRoots(ctx, inv, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	loc, err := p.locate(roots, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	defer loc.close()
	was, err := p.snapshotForDelete(ctx, loc, in, nil)
	if err != nil {
		return reeve.Preview{}, err
	}
	return reeve.Preview{Change: renderDelete(inv, v, was), Base: was.String()}, nil
}

func (p *deleter) verifyDelete(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[deleteArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, err := parseWritePath("path", in.Path)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	roots, finish, err := p.openForWriting(ctx, inv, v, "file_delete")
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	o, out, err := p.determineDeleteOutcome(ctx, inv, roots, v)
	out.commitInfo = finish(o == reeve.Applied)
	return o, out, err
}

// determineDeleteOutcome determines whether an earlier attempt deleted the entry at a path.
func (p *deleter) determineDeleteOutcome(ctx context.Context, inv *reeve.Invocation, roots rootSet,
	v vpath) (reeve.Outcome, deleteResult, error) {
	loc, err := p.locate(roots, v)
	if err != nil {
		return reeve.CannotTell, deleteResult{}, err
	}
	defer loc.close()
	now, err := p.readSnapshot(ctx, loc, nil)
	was := parseBase(inv.Base)
	switch {
	case err != nil:
		return reeve.CannotTell, deleteResult{}, err
	case now.kind == absent && was.hash != "":
		removeLeftovers(inv, loc)
		old := snapshot{state: was} // the permissions are unknown
		if was.kind == link {       // reportDelete needs the target
			old.data, _ = p.getBlob(ctx, inv.Workspace, was.hash)
		}
		reportDelete(inv, v, old)
		return reeve.Applied, newDeleteResult(v, was), nil
	case inv.Base != "" && now.String() == inv.Base:
		return reeve.NotApplied, deleteResult{}, nil
	}
	return reeve.CannotTell, deleteResult{}, nil
}
