package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"reeve"
)

const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// place is where a path leads: an open folder and a name in it. The folder stays the same one whatever happens to its
// name.
type place struct {
	dir  *os.Root // nil when a folder above the target is not there
	name string
	path vpath
}

func (pl place) close() {
	if pl.dir != nil {
		pl.dir.Close()
	}
}

// root opens one root of a call, making a workspace's on first use.
func (p *Pack) root(g ground, name string) (*os.Root, error) {
	v := vpath{root: name}
	if name == projectRoot {
		dir, err := os.OpenRoot(g.project)
		if err != nil {
			return nil, reeve.Errorf(reeve.Unavailable, "the branch's folder cannot be opened: %v", bare(err))
		}
		return dir, nil
	}
	if err := checkWorkspace(g.workspace); err != nil {
		return nil, err
	}
	all, err := os.OpenRoot(p.cfg.Dir)
	if err != nil {
		// Not the cause itself: a missing folder here must not pass for a missing file.
		return nil, reeve.Errorf(reeve.Unavailable, "the folder for workspaces cannot be opened: %v", bare(err))
	}
	defer all.Close()
	own, err := enterOrMake(all, g.workspace, v)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	return enterOrMake(own, name, v)
}

// enter opens a folder in a folder, and no link to one. v is its path, for errors.
func enter(dir *os.Root, name string, v vpath) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, fault(err, v)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return nil, isLink(v)
	case !mode.IsDir():
		return nil, fault(syscall.ENOTDIR, v)
	}
	sub, err := dir.OpenRoot(name + "/.") // the dot makes it an open with O_DIRECTORY, on which a pipe does not block
	if err != nil {
		return nil, fault(err, v)
	}
	// It may have been swapped for a link since: what was opened must be what was looked at.
	if here, err := sub.Stat("."); err != nil || !os.SameFile(info, here) {
		sub.Close()
		return nil, isLink(v)
	}
	return sub, nil
}

func enterOrMake(dir *os.Root, name string, v vpath) (*os.Root, error) {
	sub, err := enter(dir, name, v)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	if err := dir.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault(err, v)
	}
	if err := flush(dir); err != nil {
		return nil, fault(err, v)
	}
	return enter(dir, name, v)
}

// step is how a walk goes from one folder to the next.
type step func(dir *os.Root, name string, v vpath) (*os.Root, error)

// folder opens the folder a path names.
func (p *Pack) folder(g ground, v vpath, next step) (*os.Root, error) {
	dir, err := p.root(g, v.root)
	at := vpath{root: v.root}
	for _, name := range v.names {
		if err != nil {
			return nil, err
		}
		at = at.child(name)
		var sub *os.Root
		sub, err = next(dir, name, at)
		dir.Close()
		dir = sub
	}
	return dir, err
}

// at finds the place of a path below a root. That a folder above is missing is not an error: the place has no folder
// then.
func (p *Pack) at(g ground, v vpath) (place, error) {
	last := len(v.names) - 1
	dir, err := p.folder(g, vpath{root: v.root, names: v.names[:last]}, enter)
	if errors.Is(err, fs.ErrNotExist) {
		return place{path: v, name: v.names[last]}, nil
	}
	return place{dir: dir, name: v.names[last], path: v}, err
}

// makeWay is like at, and makes the folders that are missing.
func (p *Pack) makeWay(g ground, v vpath) (place, error) {
	last := len(v.names) - 1
	dir, err := p.folder(g, vpath{root: v.root, names: v.names[:last]}, enterOrMake)
	return place{dir: dir, name: v.names[last], path: v}, err
}

// open opens a plain file for reading. It never blocks and never follows a link.
func (pl place) open() (*os.File, fs.FileInfo, error) {
	if pl.dir == nil {
		return nil, nil, fault(fs.ErrNotExist, pl.path)
	}
	info, err := pl.dir.Lstat(pl.name)
	if err != nil {
		return nil, nil, fault(err, pl.path)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, nil, isFolder(pl.path)
	case mode&fs.ModeSymlink != 0:
		return nil, nil, isLink(pl.path)
	case !mode.IsRegular():
		return nil, nil, isSpecial(pl.path, mode)
	}
	f, err := pl.dir.OpenFile(pl.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fault(err, pl.path)
	}
	got, err := f.Stat()
	if err != nil || !os.SameFile(info, got) {
		f.Close()
		return nil, nil, reeve.Errorf(reeve.ToolFailed, "%s was replaced while it was being opened", pl.path).
			Hintf("try again")
	}
	return f, got, nil
}

// bytes reads a plain file of at most max bytes.
func (pl place) bytes(ctx context.Context, max int64) ([]byte, fs.FileInfo, error) {
	f, info, err := pl.open()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > max {
		return nil, nil, tooLarge(pl.path, max)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1)) // it may grow while it is read
	if err != nil {
		return nil, nil, fault(err, pl.path)
	}
	if int64(len(b)) > max {
		return nil, nil, tooLarge(pl.path, max)
	}
	return b, info, nil
}

// lstat describes what is at the place, itself and not what it may point to.
func (pl place) lstat() (fs.FileInfo, error) {
	if pl.dir == nil {
		return nil, fault(fs.ErrNotExist, pl.path)
	}
	info, err := pl.dir.Lstat(pl.name)
	return info, fault(err, pl.path)
}
