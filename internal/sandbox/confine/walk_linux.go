//go:build amd64 || arm64

package confine

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// visitor is told of each thing below a folder: the open folder that it is in, its name there, and what it is. A
// folder comes after all that is in it.
type visitor func(dir int, name string, s *unix.Statx_t)

// errMoved says that folders were moved while they were walked through.
var errMoved = errors.New("its folders were moved meanwhile")

// level is one folder of those that a walk is in.
type level struct {
	dir  *os.File
	dev  [2]uint32
	ino  uint64
	name string
	info unix.Statx_t
	todo []string // folders that were not entered yet
}

const (
	openDir  = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	statMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
)

// walk visits all below a folder and follows no links. It has two folders open at most, however deep a command nested
// them: it goes up by "..", and stops with errMoved where that is not the folder it came from.
func walk(ctx context.Context, root string, visit visitor) error {
	fd, err := unix.Open(root, openDir, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	var at []level
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
		if len(here.todo) > 0 {
			name := here.todo[len(here.todo)-1]
			here.todo = here.todo[:len(here.todo)-1]
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

// enter opens a level: it visits what is no folder, and notes the folders. The folder above is closed.
func enter(at []level, fd int, name string, info unix.Statx_t, visit visitor) ([]level, error) {
	l := level{dir: os.NewFile(uintptr(fd), name), name: name, info: info}
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
		case errors.Is(err, unix.ENOENT): // it is gone by now
		case err != nil:
			return at, os.NewSyscallError("statx", err)
		case s.Mode&unix.S_IFMT == unix.S_IFDIR:
			l.todo = append(l.todo, name)
		default:
			visit(fd, name, &s)
		}
	}
	at[len(at)-1] = l
	return at, nil
}

// descend enters a folder of the last level. One that its owner closed to themselves is opened to them first: what is
// hidden in it takes room too.
func descend(at []level, name string, visit visitor) ([]level, error) {
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

// ignoreGone leaves out what was removed, or swapped for something else, meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return os.NewSyscallError("open", err)
}

// ascend leaves the last level for the one above it.
func ascend(at []level) ([]level, error) {
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
