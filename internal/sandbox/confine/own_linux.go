//go:build amd64 || arm64

package confine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"reeve"
)

// prepare makes the workspace fit for the user who will run the command, who is another only if the server is root.
// What it gives must be called in any case.
func (j *job) prepare(ctx context.Context) (undo func(), err error) {
	undo = func() {}
	uid, _, err := user(j.Command)
	if err != nil {
		return undo, broken("workspace", err)
	}
	if os.Getuid() == 0 && !j.Owner {
		root, err := os.OpenRoot(j.Root)
		if err != nil {
			return undo, broken("workspace", err)
		}
		defer root.Close()
		if err := give(ctx, root, 0); err != nil {
			return undo, broken("workspace", err)
		}
	}
	if j.Mode == Namespaces {
		return undo, nil
	}
	if os.Getuid() == 0 && uid != 0 {
		if err := reachable(j.Root); err != nil {
			return undo, err
		}
	}
	// the kernel counts a user's processes wherever they run; in a namespace of its own it begins at none
	j.Tasks = tasksOf(uid)
	temp, err := newTempFolder(uid)
	if err != nil {
		return undo, broken("temporary folder", err)
	}
	j.TempDir = temp.path
	if !j.Owner { // which goes on if the server dies
		j.started = temp.started
	}
	return temp.remove, nil
}

// user is who a command runs as outside: the server's own user, unless that is root.
func user(c Command) (uid, gid int, err error) {
	switch {
	case os.Getuid() != 0:
		return os.Getuid(), os.Getgid(), nil
	case !c.Owner:
		return nobody, nobody, nil
	}
	info, err := os.Stat(c.Root)
	if err != nil {
		return 0, 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.ErrUnsupported
	}
	return int(s.Uid), int(s.Gid), nil
}

// deepest is how far down things are given. Each folder on the way is open meanwhile, and a command may nest more of
// them than the server may open files. Only commands go so deep, whose user has what they make: the file tools do not.
const deepest = 200

// give makes a folder and all in it the unprivileged user's. Links are given, not followed; a file with other names may
// be somebody else's too, and is left alone.
func give(ctx context.Context, dir *os.Root, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := take(dir)
	if err != nil || depth == deepest {
		return err
	}
	for _, e := range entries {
		info, err := dir.Lstat(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok:
		case info.IsDir():
			sub, err := dir.OpenRoot(e.Name())
			if err != nil {
				continue // it was swapped for something else meanwhile
			}
			err = give(ctx, sub, depth+1)
			_ = sub.Close()
			if err != nil {
				return err
			}
		case s.Uid != nobody && s.Nlink == 1:
			if err := dir.Lchown(e.Name(), nobody, nobody); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// take gives a folder itself, and lists what is in it.
func take(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Chown(nobody, nobody); err != nil {
		return nil, err
	}
	return f.ReadDir(-1)
}

// reachable tells whether everybody may walk to a folder, which the unprivileged user must without namespaces.
func reachable(dir string) error {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return broken("workspace", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return reeve.Errorf(reeve.Unsupported,
				"the server is root, its commands are not, and they cannot reach the workspace: a folder above it is "+
					"closed to others").
				Hintf("run Reeve as an ordinary user, or allow user namespaces")
		}
		if at == "/" {
			return nil
		}
	}
}

// tasksOf counts a user's processes and threads.
func tasksOf(uid int) (n int) {
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if info, err := e.Info(); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == uid {
				tasks, _ := os.ReadDir("/proc/" + e.Name() + "/task")
				n += len(tasks)
			}
		}
	}
	return n
}
