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

// Without namespaces a command has a folder for temporary files. The folder is inside one that belongs to the server
// and also contains a file with the session id of the command's processes. The server holds a lock on the outer folder
// while it supervises the command. A folder that is not locked was left by a server that died; see Sweep.
const (
	tempPrefix  = "reeve-command-"
	sessionFile = "session"
)

// tempFolder is a folder for the temporary files of one command.
type tempFolder struct {
	lock *os.File
	path string // folder of the command, inside the locked one
}

// newTempFolder creates and locks a temporary folder for a user.
func newTempFolder(uid int) (tempFolder, error) {
	for {
		top, err := os.MkdirTemp("", tempPrefix)
		if err != nil {
			return tempFolder{}, err
		}
		lock, err := lockFolder(top)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
			continue // another server's Sweep found the folder before it was locked
		}
		t := tempFolder{lock, filepath.Join(top, "tmp")}
		if err == nil {
			err = os.Chmod(top, 0o711) // the command must be able to enter it
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

// recordSession stores the session id of the command's processes, for Sweep.
func (t tempFolder) recordSession(pid int) error {
	return os.WriteFile(filepath.Join(filepath.Dir(t.path), sessionFile), []byte(strconv.Itoa(pid)), 0o600)
}

func (t tempFolder) remove() {
	_ = os.RemoveAll(filepath.Dir(t.path))
	_ = t.lock.Close()
}

// lockFolder opens and locks a folder of this user. It fails if another process holds the lock.
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

// leftoverAge is the age at which Sweep removes a folder without a session file. A command with Owner has no session
// file, survives its server, and may still use its folder.
const leftoverAge = time.Hour

// Sweep kills processes and removes temporary files that a server left when it died while it ran commands without
// namespaces. With namespaces the kernel cleans up.
func Sweep() {
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	for _, top := range list {
		lock, err := lockFolder(top)
		if err != nil {
			continue // the folder is in use or belongs to another user
		}
		info, err := lock.Stat()
		text, readErr := os.ReadFile(filepath.Join(top, sessionFile))
		session, parseErr := strconv.Atoi(string(text))
		switch {
		case readErr == nil && parseErr == nil && session > 1:
			killSession(session)
			_ = os.RemoveAll(top)
		case err == nil && reeve.Now().Sub(info.ModTime()) > leftoverAge:
			_ = os.RemoveAll(top)
		}
		_ = lock.Close()
	}
}

// killSession kills the confined processes of a session. They cannot leave the session, but its id may have been
// reused. So only processes are killed that are confined like a command and run as its user.
func killSession(session int) {
	for range 100 { // a process may start others until it is killed
		found := false
		list, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range list {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err == nil && isConfinedProcess(dir, session) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

// isConfinedProcess reports whether the process of a folder in /proc belongs to a session, is alive, and is confined
// like a command.
func isConfinedProcess(dir string, session int) bool {
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
	fieldsByName := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fieldsByName[name] = strings.TrimSpace(value)
	}
	realUID, _, _ := strings.Cut(fieldsByName["Uid"], "\t")
	return fieldsByName["Seccomp"] == "2" && fieldsByName["NoNewPrivs"] == "1" && realUID == strconv.Itoa(uid)
}
