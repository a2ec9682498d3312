//go:build amd64 || arm64

package confine

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// visitor is called for each file and folder below a folder, with the descriptor of the folder that contains it, its
// name and its attributes. A folder is visited after its contents.
type visitor func(dir int, name string, s *unix.Statx_t)

// errMoved means that a folder was moved during a walk.
var errMoved = errors.New("a folder was moved during the walk")

// walkLevel is one folder on the path from the root of a walk to its current folder.
type walkLevel struct {
	dir       *os.File
	dev       [2]uint32
	ino       uint64
	name      string
	info      unix.Statx_t
	unvisited []string // subfolders that have not been entered yet
}

const (
	openDir  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
)

// walk visits all files and folders below root. It does not follow links. It has at most two folders open, because a
// command may nest folders deeper than the server may open files. It goes up by "..", and returns errMoved if that is
// not the folder it came from.
func walk(ctx context.Context, root string, visit visitor) error {
	fd, err := unix.Open(root, openDir, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	var at []walkLevel
	defer func() {
		if len(at) > 0 {
			_ = at[len(at)-1].dir.Close()
		}
	}()
	if at, err = enter(at, fd, "", unix.Statx_t{}, visit); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		here := &at[len(at)-1]
		if len(here.unvisited) > 0 {
			name := here.unvisited[len(here.unvisited)-1]
			here.unvisited = here.unvisited[:len(here.unvisited)-1]
			if at, err = descend(at, name, visit); err != nil {
				return err
			}
			continue
		}
		if len(at) == 1 {
			return nil
		}
		if at, err = ascend(at); err != nil {
			return err
		}
		visit(int(at[len(at)-1].dir.Fd()), here.name, &here.info)
	}
}

// enter adds a level for the open folder fd and closes the folder above. It visits the files in the folder and lists
// its subfolders.
func enter(at []walkLevel, fd int, name string, info unix.Statx_t, visit visitor) ([]walkLevel, error) {
	l := walkLevel{dir: os.NewFile(uintptr(fd), name), name: name, info: info}
	if len(at) > 0 {
		_ = at[len(at)-1].dir.Close()
	}
	at = append(at, l)
	var own unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, statMask, &own); err != nil {
		return at, os.NewSyscallError("statx", err)
	}
	names, err := l.dir.Readdirnames(-1)
	if err != nil {
		return at, err
	}
	l.dev, l.ino = [2]uint32{own.Dev_major, own.Dev_minor}, own.Ino
	for _, name := range names {
		var s unix.Statx_t
		switch err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW, statMask, &s); {
		case errors.Is(err, unix.ENOENT): // removed in the meantime
		case err != nil:
			return at, os.NewSyscallError("statx", err)
		case s.Mode&unix.S_IFMT == unix.S_IFDIR:
			l.unvisited = append(l.unvisited, name)
		default:
			visit(fd, name, &s)
		}
	}
	at[len(at)-1] = l
	return at, nil
}

// descend enters a subfolder of the last level. If its permissions exclude the owner, descend changes them first,
// because its contents count too.
func descend(at []walkLevel, name string, visit visitor) ([]walkLevel, error) {
	dir := int(at[len(at)-1].dir.Fd())
	var s unix.Statx_t
	if err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW, statMask, &s); err != nil {
		return at, ignoreGone(err)
	}
	fd, err := unix.Openat(dir, name, openDir, 0)
	if errors.Is(err, unix.EACCES) {
		if err = unix.Fchmodat(dir, name, uint32(s.Mode)&0o7777|0o700, 0); err == nil {
			fd, err = unix.Openat(dir, name, openDir, 0)
		}
	}
	if err != nil {
		return at, ignoreGone(err)
	}
	return enter(at, fd, name, s, visit)
}

// ignoreGone returns nil if err means that the folder was removed or replaced in the meantime.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return os.NewSyscallError("open", err)
}

// ascend leaves the last level for the one above it.
func ascend(at []walkLevel) ([]walkLevel, error) {
	last, above := at[len(at)-1], &at[len(at)-2]
	fd, err := unix.Openat(int(last.dir.Fd()), "..", openDir, 0)
	if err != nil {
		return at, os.NewSyscallError("open", err)
	}
	var s unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, statMask, &s)
	if err != nil || s.Ino != above.ino || [2]uint32{s.Dev_major, s.Dev_minor} != above.dev {
		_ = unix.Close(fd)
		return at, errMoved
	}
	_ = last.dir.Close()
	above.dir = os.NewFile(uintptr(fd), above.name)
	return at[:len(at)-1], nil
}
