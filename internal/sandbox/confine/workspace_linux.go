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

// prepare makes the workspace accessible to the user who runs the command. That user differs from the server's only if
// the server is root. Without namespaces, prepare also creates the folder for temporary files. The caller must call
// undo, even after an error.
func (j *job) prepare(ctx context.Context) (undo func(), err error) {
	undo = func() {}
	uid, _, err := commandUser(j.Command)
	if err != nil {
		return undo, startError("workspace", err)
	}
	if os.Getuid() == 0 && !j.Owner {
		root, err := os.OpenRoot(j.Root)
		if err != nil {
			return undo, startError("workspace", err)
		}
		defer root.Close()
		if err := chownTree(ctx, root, 0); err != nil {
			return undo, startError("workspace", err)
		}
	}
	if j.Mode == Namespaces {
		return undo, nil
	}
	if os.Getuid() == 0 && uid != 0 {
		if err := checkReachable(j.Root); err != nil {
			return undo, err
		}
	}
	// Without a user namespace, the process limit counts all processes of the user.
	j.Tasks = countTasks(uid)
	temp, err := newTempFolder(uid)
	if err != nil {
		return undo, startError("temporary folder", err)
	}
	j.TempDir = temp.path
	if !j.Owner { // a command with Owner continues if the server dies, so its session is not recorded for Sweep
		j.recordStart = temp.recordSession
	}
	return temp.remove, nil
}

// commandUser returns the user and group id, outside namespaces, as which a command runs. They are the server's own,
// unless the server is root.
func commandUser(c Command) (uid, gid int, err error) {
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

// maxDepth is the depth to which chownTree descends. Each folder on the way stays open, and a command can nest more
// folders than the server may open. Deeper files are created only by commands, which own them already, because the file
// tools do not create folders that deep.
const maxDepth = 200

// chownTree changes the owner of a folder and its contents to nobody. It does not follow links. It skips files with
// several names, because another name may be outside the workspace.
func chownTree(ctx context.Context, dir *os.Root, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := chownAndList(dir)
	if err != nil || depth == maxDepth {
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
				continue // the folder was replaced in the meantime
			}
			err = chownTree(ctx, sub, depth+1)
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

// chownAndList changes the owner of a folder to nobody and returns its entries.
func chownAndList(dir *os.Root) ([]fs.DirEntry, error) {
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

// checkReachable returns an error if a folder above dir is closed to other users. Without namespaces the unprivileged
// user must be able to reach dir by its path.
func checkReachable(dir string) error {
	for at := filepath.Dir(dir); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return startError("workspace", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return reeve.Errorf(reeve.Unsupported,
				"commands of a server that runs as root cannot reach the workspace: a folder above it is closed to "+
					"other users").
				Hintf("run Reeve as an ordinary user, or enable user namespaces")
		}
		if at == "/" {
			return nil
		}
	}
}

// countTasks returns the number of a user's processes and threads.
func countTasks(uid int) (n int) {
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
