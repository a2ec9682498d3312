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
	Expect    string `json:"expect,omitempty" maxLength:"80" doc:"Delete only if the file is in this state. Set by undo"`
}

type deleteResult struct {
	Path string `json:"path"`
	Kind string `json:"kind" doc:"file, dir or link"`
	Kept string `json:"kept" doc:"State that was deleted, as hash for file_restore"`
	Left bool   `json:"left_over,omitempty" doc:"True if it is deleted but its disk space is not free yet"`
	saved
}

func deleted(v vpath, was state) deleteResult {
	r := deleteResult{Path: v.String(), Kind: string(was.kind), Kept: was.String()}
	if was.kind == file || was.kind == program {
		r.Kind = "file"
	}
	return r
}

func (p *Pack) deleteTool() reeve.Tool {
	t := declare("file_delete", "Delete file",
		"Delete a file under /shared, /tmp or /project, or with recursive a folder and its contents. The old "+
			"contents are kept, so the deletion can be undone.", capWrite, reeve.Verifiable, writeTime)
	t.Risk = reeve.HighRisk
	t.Identity = []string{"path"}
	t.Check = checks(p, func(in deleteArgs) (vpath, error) { return targetPath("path", in.Path) })
	t.Preview = p.previewDelete
	t.Verify = p.verifyDelete
	return reeve.MustTool(t, p.delete)
}

// doomed looks at what a call would delete, and keeps it if told to.
func (p *Pack) doomed(ctx context.Context, pl place, in deleteArgs, keep keepBytes) (found, error) {
	info, err := pl.lstat()
	if err != nil {
		return found{}, err
	}
	if info.IsDir() && !in.Recursive {
		return found{}, reeve.Errorf(reeve.ToolFailed, "%s is a folder", pl.path).
			Hintf("pass recursive true to delete it with all that is in it")
	}
	was, err := p.look(ctx, pl, keep)
	if err == nil && was.kind == absent {
		err = fault(fs.ErrNotExist, pl.path)
	}
	if err == nil && in.Expect != "" && in.Expect != was.String() {
		err = movedOn(pl.path)
	}
	return was, err
}

func (p *Pack) delete(ctx context.Context, in deleteArgs) (deleteResult, error) {
	v, err := targetPath("path", in.Path)
	if err != nil {
		return deleteResult{}, err
	}
	inv := reeve.InvocationFrom(ctx)
	g, leave, err := p.working(ctx, inv, v, "file_delete")
	if err != nil {
		return deleteResult{}, err
	}
	out, err := p.take(ctx, inv, g, v, in)
	out.saved = leave(err == nil)
	return out, err
}

// take deletes what is at a path.
func (p *Pack) take(ctx context.Context, inv *reeve.Invocation, g ground, v vpath,
	in deleteArgs) (deleteResult, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return deleteResult{}, err
	}
	defer release()
	pl, err := p.at(g, v)
	if err != nil {
		return deleteResult{}, err
	}
	defer pl.close()
	was, err := p.doomed(ctx, pl, in, p.keeper(ctx, inv.Workspace))
	switch {
	case inv.Base != "" && errors.Is(err, fs.ErrNotExist):
		return deleteResult{}, movedOn(v)
	case err != nil:
		return deleteResult{}, err
	case inv.Base != "" && inv.Base != was.String():
		return deleteResult{}, movedOn(v)
	}
	if inv.Attempt > 1 {
		sweep(inv, pl)
	}
	out := deleted(v, was.state)
	if out.Left, err = p.remove(ctx, inv, pl, was.state); err != nil {
		return deleteResult{}, err
	}
	reportDeleted(inv, v, was)
	return out, nil
}

// remove takes the target out of its folder with one rename, so that a crash leaves all of it or nothing. Only then,
// when nobody can change it by its name any more, it is compared with what was kept.
func (p *Pack) remove(ctx context.Context, inv *reeve.Invocation, pl place, was state) (left bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	aside := place{dir: pl.dir, name: ownName(inv), path: pl.path}
	if err := pl.dir.Rename(pl.name, aside.name); err != nil {
		return false, fault(err, pl.path)
	}
	now, err := p.look(context.WithoutCancel(ctx), aside, nil) // it must be put back or removed, time or no time
	if err != nil || now.state != was {
		if back := putBack(aside, pl); back != nil {
			return false, &reeve.Error{Code: reeve.UnknownOutcome, Err: bare(back),
				Message: pl.path.String() + " changed while it was being deleted, and could not be put back"}
		}
		if err != nil {
			return false, err
		}
		return false, movedOn(pl.path)
	}
	if err := p.settled(pl); err != nil {
		return false, err
	}
	return pl.dir.RemoveAll(aside.name) != nil, nil
}

// putBack undoes a rename without replacing what came to be there meanwhile.
func putBack(from, to place) error {
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

func reportDeleted(inv *reeve.Invocation, v vpath, was found) {
	inv.Emit(reeve.SemanticKey, "FILE")
	inv.Emit(reeve.EntityID, v.String())
	if was.kind == link && !staysInside(v.names, string(was.data)) {
		return // file_restore makes no link that leads out, so there is no undo to offer
	}
	inv.UndoWith("file_restore", restoreArgs{Path: v.String(), Hash: was.String(), Expect: string(absent),
		Mode: was.permissions()})
}

// staysInside tells whether a link at a path below a root points below that root.
func staysInside(names []string, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") {
		return false
	}
	to := path.Join(path.Join(names[:len(names)-1]...), target)
	return to != ".." && !strings.HasPrefix(to, "../")
}

func (p *Pack) previewDelete(ctx context.Context, inv *reeve.Invocation) (reeve.Preview, error) {
	in, err := reeve.Args[deleteArgs](inv)
	if err != nil {
		return reeve.Preview{}, err
	}
	v, err := targetPath("path", in.Path)
	if err != nil {
		return reeve.Preview{}, err
	}
	g, err := p.ground(ctx, inv, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	pl, err := p.at(g, v)
	if err != nil {
		return reeve.Preview{}, err
	}
	defer pl.close()
	was, err := p.doomed(ctx, pl, in, nil)
	if err != nil {
		return reeve.Preview{}, err
	}
	return reeve.Preview{Change: describeDelete(inv, v, was), Base: was.String()}, nil
}

func (p *Pack) verifyDelete(ctx context.Context, inv *reeve.Invocation) (reeve.Outcome, any, error) {
	in, err := reeve.Args[deleteArgs](inv)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	v, err := targetPath("path", in.Path)
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	g, leave, err := p.working(ctx, inv, v, "file_delete")
	if err != nil {
		return reeve.CannotTell, nil, err
	}
	o, out, err := p.verifyGone(ctx, inv, g, v)
	out.saved = leave(o == reeve.Applied)
	return o, out, err
}

// verifyGone tells whether an earlier attempt deleted what was at a path.
func (p *Pack) verifyGone(ctx context.Context, inv *reeve.Invocation, g ground,
	v vpath) (reeve.Outcome, deleteResult, error) {
	pl, err := p.at(g, v)
	if err != nil {
		return reeve.CannotTell, deleteResult{}, err
	}
	defer pl.close()
	now, err := p.look(ctx, pl, nil)
	was := baseState(inv.Base)
	switch {
	case err != nil:
		return reeve.CannotTell, deleteResult{}, err
	case now.kind == absent && was.hash != "":
		sweep(inv, pl)
		gone := found{state: was} // its permissions went with it
		if was.kind == link {     // an undo is offered only for one that stays inside
			gone.data, _ = p.kept(ctx, inv.Workspace, was.hash)
		}
		reportDeleted(inv, v, gone)
		return reeve.Applied, deleted(v, was), nil
	case inv.Base != "" && now.String() == inv.Base:
		return reeve.NotApplied, deleteResult{}, nil
	}
	return reeve.CannotTell, deleteResult{}, nil
}
