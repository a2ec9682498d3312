package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	"reeve"
)

// change is a replacement of what is at a path by the bytes of a file.
type change struct {
	path vpath
	base string // the state it was worked out from; empty means whatever is there
	next func(old found) (data []byte, executable bool, err error)
	mode string // the permissions it is to have; empty means those of the file that is there, or a new one's
}

// done is what a change came to.
type done struct {
	before, after state
	size          int
	mode          string // of what was before; empty if that is not known
}

// replace makes a change: old bytes kept, new ones flushed beside the target, then one rename.
func (p *Pack) replace(ctx context.Context, inv *reeve.Invocation, g ground, c change) (done, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return done{}, err
	}
	defer release()
	pl, err := p.at(g, c.path)
	if err != nil {
		return done{}, err
	}
	defer func() { pl.close() }()
	old, err := p.lookAtFile(ctx, pl)
	if err != nil {
		return done{}, err
	}
	if c.base != "" && c.base != old.String() {
		return done{}, movedOn(c.path)
	}
	data, executable, err := c.next(old)
	if err != nil {
		return done{}, err
	}
	d := done{before: old.state, after: fileState(data, executable), size: len(data), mode: old.permissions()}
	if d.before == d.after {
		return d, nil
	}
	if old.kind != absent {
		if err := p.keeper(ctx, inv.Workspace)(old.data); err != nil {
			return done{}, err
		}
	}
	if pl.dir == nil {
		if pl, err = p.makeWay(g, c.path); err != nil {
			return done{}, err
		}
	}
	return d, p.swapIn(ctx, inv, pl, old, data, fitting(c.mode, old, executable))
}

// lookAtFile is look for a target that must be a file or nothing.
func (p *Pack) lookAtFile(ctx context.Context, pl place) (found, error) {
	if pl.dir != nil {
		info, err := pl.dir.Lstat(pl.name)
		if err == nil && info.IsDir() {
			return found{}, isFolder(pl.path)
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return found{}, isLink(pl.path)
		}
	}
	return p.look(ctx, pl, nil)
}

// swapIn writes data beside the target and renames it there, if the target is still as it was found.
func (p *Pack) swapIn(ctx context.Context, inv *reeve.Invocation, pl place, old found, data []byte,
	mode fs.FileMode) error {
	if inv.Attempt > 1 {
		sweep(inv, pl)
	}
	tmp := ownName(inv)
	if err := p.writeFile(pl.dir, tmp, data, mode); err != nil {
		pl.dir.Remove(tmp)
		return fault(err, pl.path)
	}
	defer pl.dir.Remove(tmp) // gone already when the rename was made
	if err := ctx.Err(); err != nil {
		return err
	}
	if old.kind == absent {
		switch err := pl.dir.Link(tmp, pl.name); {
		case errors.Is(err, fs.ErrExist):
			return movedOn(pl.path)
		case err == nil:
			pl.dir.Remove(tmp)
			return p.settled(pl)
		}
		// Some file systems have no links: look once more and rename.
	}
	now, err := p.lookAtFile(ctx, pl)
	if err != nil {
		return err
	}
	if now.state != old.state {
		return movedOn(pl.path)
	}
	if err := pl.dir.Rename(tmp, pl.name); err != nil {
		return fault(err, pl.path)
	}
	return p.settled(pl)
}

// settled flushes the folder after a change in it. If that fails, the change may or may not outlive a crash of the
// machine.
func (p *Pack) settled(pl place) error {
	if err := flush(pl.dir); err != nil {
		return &reeve.Error{Code: reeve.UnknownOutcome, Message: "the change to " + pl.path.String() +
			" may not have reached the disk",
			Err: bare(err)}
	}
	return nil
}

// writeFile makes a new file and flushes it.
func (p *Pack) writeFile(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if p.cfg.Made != nil {
		if info, err := f.Stat(); err == nil {
			p.cfg.Made(info)
		}
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// flush makes a folder's entries outlive a crash of the machine.
func flush(dir *os.Root) error {
	if runtime.GOOS == "windows" { // folders cannot be flushed there
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // EINVAL: this file system has no such thing
		return err
	}
	return nil
}

// ownNames begins the names of an operation's files beside the target. Attempts do not share names: one that should be
// dead may still be writing.
func ownNames(inv *reeve.Invocation) string {
	return ownPrefix + reeve.Hash([]byte(inv.Operation))[:16] + "-"
}

func ownName(inv *reeve.Invocation) string { return ownNames(inv) + reeve.RandomSecret(8) }

// sweep removes what an earlier attempt of the same operation left beside the target when it was cut off.
func sweep(inv *reeve.Invocation, pl place) {
	if inv.Operation == "" || pl.dir == nil {
		return
	}
	f, err := pl.dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, ownNames(inv)) {
			pl.dir.RemoveAll(name)
		}
	}
}

// report tells the gate what changed and how to take it back.
func report(inv *reeve.Invocation, v vpath, d done) {
	if d.before == d.after {
		return
	}
	inv.Emit(reeve.SemanticKey, "FILE")
	inv.Emit(reeve.EntityID, v.String())
	switch d.before.kind {
	case "": // an earlier attempt whose base nobody recorded
	case absent:
		inv.UndoWith("file_delete", deleteArgs{Path: v.String(), Recursive: d.after.kind == folder,
			Expect: d.after.String()})
	default:
		inv.UndoWith("file_restore", restoreArgs{Path: v.String(), Hash: d.before.String(), Expect: d.after.String(),
			Mode: d.mode})
	}
}

// settle compares what is there with what was before and after a change: that is how an earlier attempt is judged. If
// it was made in a project, it is committed now, unless it was.
func (p *Pack) settle(ctx context.Context, inv *reeve.Invocation, v vpath, d done,
	base, tool string) (o reeve.Outcome, s saved, err error) {
	g, leave, err := p.working(ctx, inv, v, tool)
	if err != nil {
		return reeve.CannotTell, s, err
	}
	defer func() { s = leave(o == reeve.Applied) }()
	o, err = p.judge(ctx, inv, g, v, d, base)
	return o, s, err
}

func (p *Pack) judge(ctx context.Context, inv *reeve.Invocation, g ground, v vpath, d done,
	base string) (reeve.Outcome, error) {
	pl, err := p.at(g, v)
	if err != nil {
		return reeve.CannotTell, err
	}
	defer pl.close()
	now, err := p.look(ctx, pl, nil)
	switch {
	case err != nil:
		return reeve.CannotTell, err
	case now.state == d.after:
		sweep(inv, pl)
		report(inv, v, d)
		return reeve.Applied, nil
	case base != "" && now.String() == base:
		return reeve.NotApplied, nil
	}
	return reeve.CannotTell, nil
}
