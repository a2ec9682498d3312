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

// location is a resolved path: an open folder and a name in it. The folder stays the same if another process renames
// it.
type location struct {
	dir  *os.Root // nil if a folder above the target does not exist
	name string
	path vpath
}

func (loc location) close() {
	if loc.dir != nil {
		loc.dir.Close()
	}
}

// workspaceDir is the folder that has one folder per workspace.
type workspaceDir struct {
	path string
}

// openRoot opens one root of a call. It creates the folders of a workspace on first use.
func (p *workspaceDir) openRoot(roots rootSet, name string) (*os.Root, error) {
	v := vpath{root: name}
	if name == projectRoot {
		dir, err := os.OpenRoot(roots.project)
		if err != nil {
			return nil, reeve.Errorf(reeve.Unavailable, "cannot open the folder of the branch: %v", stripPaths(err))
		}
		return dir, nil
	}
	if err := checkWorkspace(roots.workspace); err != nil {
		return nil, err
	}
	base, err := os.OpenRoot(p.path)
	if err != nil {
		// The error does not wrap its cause: callers treat fs.ErrNotExist as a missing file.
		return nil, reeve.Errorf(reeve.Unavailable, "cannot open the folder for workspaces: %v", stripPaths(err))
	}
	defer base.Close()
	workspace, err := openOrCreateSubdir(base, roots.workspace, v)
	if err != nil {
		return nil, err
	}
	defer workspace.Close()
	return openOrCreateSubdir(workspace, name, v)
}

// openSubdir opens the folder name in dir. It fails if name is a symbolic link. v is the path of the folder, for
// errors.
func openSubdir(dir *os.Root, name string, v vpath) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, convertError(err, v)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return nil, linkError(v)
	case !mode.IsDir():
		return nil, convertError(syscall.ENOTDIR, v)
	}
	sub, err := dir.OpenRoot(name + "/.") // the dot implies O_DIRECTORY, so a pipe does not block
	if err != nil {
		return nil, convertError(err, v)
	}
	// A link may have replaced the folder since Lstat: compare the opened folder with the one before.
	if opened, err := sub.Stat("."); err != nil || !os.SameFile(info, opened) {
		sub.Close()
		return nil, linkError(v)
	}
	return sub, nil
}

// openOrCreateSubdir is like openSubdir but creates the folder if it does not exist.
func openOrCreateSubdir(dir *os.Root, name string, v vpath) (*os.Root, error) {
	sub, err := openSubdir(dir, name, v)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	if err := dir.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, convertError(err, v)
	}
	if err := syncDir(dir); err != nil {
		return nil, convertError(err, v)
	}
	return openSubdir(dir, name, v)
}

// dirOpener opens a folder in a folder: openSubdir or openOrCreateSubdir.
type dirOpener func(dir *os.Root, name string, v vpath) (*os.Root, error)

// openDir opens the folder at a path. It opens each folder on the way with next.
func (p *workspaceDir) openDir(roots rootSet, v vpath, next dirOpener) (*os.Root, error) {
	dir, err := p.openRoot(roots, v.root)
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

// locate returns the location of a path below a root. If a folder above the target does not exist, the location has a
// nil dir, and the error is nil.
func (p *workspaceDir) locate(roots rootSet, v vpath) (location, error) {
	last := len(v.names) - 1
	dir, err := p.openDir(roots, vpath{root: v.root, names: v.names[:last]}, openSubdir)
	if errors.Is(err, fs.ErrNotExist) {
		return location{path: v, name: v.names[last]}, nil
	}
	return location{dir: dir, name: v.names[last], path: v}, err
}

// createParents is like locate but creates the missing folders above the target.
func (p *workspaceDir) createParents(roots rootSet, v vpath) (location, error) {
	last := len(v.names) - 1
	dir, err := p.openDir(roots, vpath{root: v.root, names: v.names[:last]}, openOrCreateSubdir)
	return location{dir: dir, name: v.names[last], path: v}, err
}

// openFile opens a regular file for reading. It never blocks and never follows a link.
func (loc location) openFile() (*os.File, fs.FileInfo, error) {
	if loc.dir == nil {
		return nil, nil, convertError(fs.ErrNotExist, loc.path)
	}
	info, err := loc.dir.Lstat(loc.name)
	if err != nil {
		return nil, nil, convertError(err, loc.path)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, nil, folderError(loc.path)
	case mode&fs.ModeSymlink != 0:
		return nil, nil, linkError(loc.path)
	case !mode.IsRegular():
		return nil, nil, specialFileError(loc.path, mode)
	}
	f, err := loc.dir.OpenFile(loc.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, convertError(err, loc.path)
	}
	opened, err := f.Stat()
	if err != nil || !os.SameFile(info, opened) {
		f.Close()
		return nil, nil, reeve.Errorf(reeve.ToolFailed, "%s was replaced while it was being opened", loc.path).
			Hintf("try again")
	}
	return f, opened, nil
}

// readFile reads a regular file of at most max bytes. It fails with TooLarge if the file is larger.
func (loc location) readFile(ctx context.Context, max int64) ([]byte, fs.FileInfo, error) {
	f, info, err := loc.openFile()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > max {
		return nil, nil, tooLargeError(loc.path, max)
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1)) // the file may grow during the read
	if err != nil {
		return nil, nil, convertError(err, loc.path)
	}
	if int64(len(b)) > max {
		return nil, nil, tooLargeError(loc.path, max)
	}
	return b, info, nil
}

// lstat describes the entry at the location. It does not follow links.
func (loc location) lstat() (fs.FileInfo, error) {
	if loc.dir == nil {
		return nil, convertError(fs.ErrNotExist, loc.path)
	}
	info, err := loc.dir.Lstat(loc.name)
	return info, convertError(err, loc.path)
}
