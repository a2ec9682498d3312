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
	"reeve/internal/keylock"
)

// change replaces a file, or creates it.
type change struct {
	path       vpath
	base       string // required state before the change; empty means any
	newContent contentFunc
	mode       string // new permissions; empty means those of the old file, or the defaults
}

// contentFunc returns the new content of a file, or an error if the change is not possible.
type contentFunc func(old snapshot) (data []byte, executable bool, err error)

// changeResult describes a change that was made.
type changeResult struct {
	before, after state
	size          int
	mode          string // old permissions; empty if they are the defaults or unknown
}

// fileWriter changes files: all of a change happens, or nothing.
type fileWriter struct {
	*workspaceDir
	*projectAccess
	*contentStore
	onCreate func(fs.FileInfo)
	locks    keylock.Map // by workspace, so that one call at a time changes files in it
}

// replace makes a change. It stores the old bytes, writes the new bytes to a temporary file and renames that file.
func (p *fileWriter) replace(ctx context.Context, inv *reeve.Invocation, roots rootSet,
	c change) (changeResult, error) {
	release, err := p.locks.Wait(ctx, inv.Workspace)
	if err != nil {
		return changeResult{}, err
	}
	defer release()
	loc, err := p.locate(roots, c.path)
	if err != nil {
		return changeResult{}, err
	}
	defer func() { loc.close() }()
	old, err := p.readFileSnapshot(ctx, loc)
	if err != nil {
		return changeResult{}, err
	}
	if c.base != "" && c.base != old.String() {
		return changeResult{}, staleError(c.path)
	}
	data, executable, err := c.newContent(old)
	if err != nil {
		return changeResult{}, err
	}
	d := changeResult{before: old.state, after: fileState(data, executable), size: len(data), mode: old.permissions()}
	if d.before == d.after {
		return d, nil
	}
	if old.kind != absent {
		if err := p.newBlobSaver(ctx, inv.Workspace)(old.data); err != nil {
			return changeResult{}, err
		}
	}
	if loc.dir == nil {
		if loc, err = p.createParents(roots, c.path); err != nil {
			return changeResult{}, err
		}
	}
	return d, p.writeAndRename(ctx, inv, loc, old, data, choosePermissions(c.mode, old, executable))
}

// readFileSnapshot is like readSnapshot but fails if the entry is a folder or a link.
func (p *contentStore) readFileSnapshot(ctx context.Context, loc location) (snapshot, error) {
	if loc.dir != nil {
		info, err := loc.dir.Lstat(loc.name)
		if err == nil && info.IsDir() {
			return snapshot{}, folderError(loc.path)
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return snapshot{}, linkError(loc.path)
		}
	}
	return p.readSnapshot(ctx, loc, nil)
}

// writeAndRename writes data to a temporary file and renames it to the target. It fails with Stale if the target no
// longer has the state of old.
func (p *fileWriter) writeAndRename(ctx context.Context, inv *reeve.Invocation, loc location, old snapshot, data []byte,
	mode fs.FileMode) error {
	if inv.Attempt > 1 {
		removeLeftovers(inv, loc)
	}
	tmp := newTempName(inv)
	if err := p.writeFile(loc.dir, tmp, data, mode); err != nil {
		loc.dir.Remove(tmp)
		return convertError(err, loc.path)
	}
	defer loc.dir.Remove(tmp) // fails after the rename, which is fine
	if err := ctx.Err(); err != nil {
		return err
	}
	if old.kind == absent {
		switch err := loc.dir.Link(tmp, loc.name); {
		case errors.Is(err, fs.ErrExist):
			return staleError(loc.path)
		case err == nil:
			loc.dir.Remove(tmp)
			return p.syncParent(loc)
		}
		// Some file systems do not support links. There the state is compared again before a rename.
	}
	now, err := p.readFileSnapshot(ctx, loc)
	if err != nil {
		return err
	}
	if now.state != old.state {
		return staleError(loc.path)
	}
	if err := loc.dir.Rename(tmp, loc.name); err != nil {
		return convertError(err, loc.path)
	}
	return p.syncParent(loc)
}

// syncParent syncs the folder of a changed entry. If that fails, the change may not survive a crash of the machine, and
// the error has the code UnknownOutcome.
func (p *fileWriter) syncParent(loc location) error {
	if err := syncDir(loc.dir); err != nil {
		return &reeve.Error{Code: reeve.UnknownOutcome, Err: stripPaths(err),
			Message: "the change to " + loc.path.String() + " may not be on disk"}
	}
	return nil
}

// writeFile creates a file and syncs it. It fails if the name is taken.
func (p *fileWriter) writeFile(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	if p.onCreate != nil {
		if info, err := f.Stat(); err == nil {
			p.onCreate(info)
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

// syncDir syncs a folder, so that its entries survive a crash of the machine.
func syncDir(dir *os.Root) error {
	if runtime.GOOS == "windows" { // Windows cannot sync folders
		return nil
	}
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // EINVAL: not supported by this file system
		return err
	}
	return nil
}

// tempNamePrefix returns the prefix of the temporary files of an operation.
func tempNamePrefix(inv *reeve.Invocation) string {
	return tempPrefix + reeve.Hash([]byte(inv.Operation))[:16] + "-"
}

// newTempName returns a new name for a temporary file. Attempts of an operation do not share names, because an earlier
// attempt may still be writing.
func newTempName(inv *reeve.Invocation) string { return tempNamePrefix(inv) + reeve.RandomSecret(8) }

// removeLeftovers removes the temporary files that interrupted attempts of the same operation left beside the target.
func removeLeftovers(inv *reeve.Invocation, loc location) {
	if inv.Operation == "" || loc.dir == nil {
		return
	}
	f, err := loc.dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, tempNamePrefix(inv)) {
			loc.dir.RemoveAll(name)
		}
	}
}

// reportChange records the changed file and its undo on the call.
func reportChange(inv *reeve.Invocation, v vpath, d changeResult) {
	if d.before == d.after {
		return
	}
	inv.Emit(reeve.SemanticKey, "FILE")
	inv.Emit(reeve.EntityID, v.String())
	switch d.before.kind {
	case "": // an earlier attempt without a recorded base has no undo
	case absent:
		inv.UndoWith("file_delete", deleteArgs{Path: v.String(), Recursive: d.after.kind == folder,
			Expect: d.after.String()})
	default:
		inv.UndoWith("file_restore", restoreArgs{Path: v.String(), Hash: d.before.String(), Expect: d.after.String(),
			Mode: d.mode})
	}
}

// verifyChange determines whether an earlier attempt made a change. If the change is in a project and was made,
// verifyChange commits it, unless it is committed already.
func (p *fileWriter) verifyChange(ctx context.Context, inv *reeve.Invocation, v vpath, d changeResult,
	base, tool string) (o reeve.Outcome, s commitInfo, err error) {
	roots, finish, err := p.openForWriting(ctx, inv, v, tool)
	if err != nil {
		return reeve.CannotTell, s, err
	}
	defer func() { s = finish(o == reeve.Applied) }()
	o, err = p.determineOutcome(ctx, inv, roots, v, d, base)
	return o, s, err
}

// determineOutcome compares the entry at v with the states before and after a change.
func (p *fileWriter) determineOutcome(ctx context.Context, inv *reeve.Invocation, roots rootSet, v vpath,
	d changeResult,
	base string) (reeve.Outcome, error) {
	loc, err := p.locate(roots, v)
	if err != nil {
		return reeve.CannotTell, err
	}
	defer loc.close()
	now, err := p.readSnapshot(ctx, loc, nil)
	switch {
	case err != nil:
		return reeve.CannotTell, err
	case now.state == d.after:
		removeLeftovers(inv, loc)
		reportChange(inv, v, d)
		return reeve.Applied, nil
	case base != "" && now.String() == base:
		return reeve.NotApplied, nil
	}
	return reeve.CannotTell, nil
}
