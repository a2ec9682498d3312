//go:build amd64 || arm64

package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"reeve"
)

// A command without namespaces has a folder of its own for temporary files, in one that is the server's: there is
// also the file that says which session of processes the command is. The server keeps a lock on it for as long as it
// attends to the command, so that another server can tell what one that died has left.
const (
	tempPrefix  = "reeve-command-"
	sessionFile = "session"
)

// tempFolder is a folder for the temporary files of one command.
type tempFolder struct {
	lock *os.File
	path string // of the command's own part
}

// newTempFolder makes one for a user.
func newTempFolder(uid int) (tempFolder, error) {
	for {
		top, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return tempFolder{}, err
		}
		lock, err := lockFolder(top)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			continue // another server took it for a leftover before it was locked
		}
		t := tempFolder{lock, filepath.Join(top, "tmp")}
		if err == nil {
			err = os.Chmod(top, 0o711) // the command passes through it
		}
		if err == nil {
			err = os.Mkdir(t.path, 0o700)
		}
		if err == nil {
			err = os.Chown(t.path, uid, -1)
		}
		if errors.Is(err, os.ErrNotExist) {
			_ = lock.Close()
			continue
		}
		if err != nil {
			t.remove()
		}
		return t, err
	}
}

// started notes which session of processes the command is.
func (t tempFolder) started(pid int) error {
	return os.WriteFile(filepath.Join(filepath.Dir(t.path), sessionFile), []byte(strconv.Itoa(pid)), 0o600)
}

func (t tempFolder) remove() {
	_ = os.RemoveAll(filepath.Dir(t.path))
	_ = t.lock.Close()
}

// lockFolder opens a folder of this user and locks it. It fails if another process has it locked.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
			err = os.ErrPermission
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// quietTime is how old a folder without a session must be to be taken for a leftover: a trusted command goes on
// without its server, and may still use its own.
const quietTime = time.Hour

// Sweep clears away what servers left that died while they ran commands without namespaces: processes that go on, and
// temporary files. With namespaces the kernel does so.
func Sweep() {
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, top := range list {
		lock, err := lockFolder(top)
		if err != nil {
			continue // it is in use, or not ours
		}
		info, err := lock.Stat()
		said, none := os.ReadFile(filepath.Join(top, sessionFile))
		session, odd := strconv.Atoi(string(said))
		switch {
		case none == nil && odd == nil && session > 1:
			killSession(session)
			_ = os.RemoveAll(top)
		case err == nil && reeve.Now().Sub(info.ModTime()) > quietTime:
			_ = os.RemoveAll(top)
		}
		_ = lock.Close()
	}
}

// killSession kills the confined processes of a session. They cannot leave it, but its number may be another's by
// now: so only those are killed that are confined as a command is and run as its user.
func killSession(session int) {
	for range 100 { // while it is killed, it may start others
		found := false
		list, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range list {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err == nil && confinedIn(dir, session) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// confinedIn tells whether a process is of a session, alive, and confined as a command is.
func confinedIn(dir string, session int) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // state, parent, group, session
	if len(fields) < 4 || fields[0] == "Z" || fields[3] != strconv.Itoa(session) {
		return false
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return false
	}
	uid := os.Getuid()
	if uid == 0 {
		uid = nobody
	}
	said := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		said[name] = strings.TrimSpace(value)
	}
	real, _, _ := strings.Cut(said["Uid"], "\t")
	return said["Seccomp"] == "2" && said["NoNewPrivs"] == "1" && real == strconv.Itoa(uid)
}
