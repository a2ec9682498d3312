//go:build amd64 || arm64

package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Become turns this process into the sandbox of the job that it finds open, and then into its command. It does not
// return.
func Become() {
	// rights belong to threads; the one that gives them up must be the one that becomes the command
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		_, _ = os.Stderr.WriteString(becomeProgram(os.Args[1]).Error())
		os.Exit(126)
	}
	status := os.NewFile(StatusFile, "status")
	if err := become(); err != nil {
		_, _ = io.WriteString(status, err.Error())
		os.Exit(126)
	}
	os.Exit(0)
}

// become makes this process the command. It returns only if it cannot, or if there is no command.
func become() error {
	var j Job
	if err := json.NewDecoder(os.NewFile(JobFile, "job")).Decode(&j); err != nil {
		return fmt.Errorf("its job: %w", err)
	}
	if err := closeOnExec(JobFile); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // it goes first when the machine runs out of memory
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 5)                   // the server, which watches it, goes before it
	at, temp := j.Root, j.TempDir
	if j.Namespaces {
		if j.At != "" {
			at = j.At
		}
		temp = "/tmp"
		if err := world(j, at); err != nil {
			return err
		}
	}
	if err := os.Chdir(filepath.Join(at, j.Dir)); err != nil {
		return fmt.Errorf("dir: %w", bare(err))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := dropRights(); err != nil {
		return err
	}
	if err := restrict(j, at, temp); err != nil {
		return err
	}
	path, lookup := find(j.Args[0])
	env := append([]string{"PATH=" + Path, "HOME=" + at, "TMPDIR=" + temp, "LANG=C.UTF-8",
		"PWD=" + filepath.Join(at, j.Dir)}, j.Env...)
	program := filter(j)
	if j.Kept {
		if err := unix.Dup3(TreeFile+j.Trees, KeepFile, 0); err != nil {
			return os.NewSyscallError("dup", err)
		}
	}
	if err := limit(j); err != nil {
		return err
	}
	if err := install(program); err != nil {
		return err
	}
	if j.Args[0] == Trial {
		return nil
	}
	if lookup != nil {
		return fmt.Errorf("command: %s: %w", j.Args[0], lookup)
	}
	return fmt.Errorf("command: %s: %w", j.Args[0], syscall.Exec(path, j.Args, env))
}

// closeOnExec closes a file and all that have higher numbers when this process becomes another.
func closeOnExec(first uint) error {
	return os.NewSyscallError("close_range", unix.CloseRange(first, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC))
}

// bare is an error without the path, which is not the caller's to know.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// find looks a program up, as a shell would.
func find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(Path, ":") {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", errors.New("there is no such program")
}

// dropRights gives up every capability, for good.
func dropRights() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// without the right to, there is nothing in it to lose: no_new_privs holds
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return nil
}

// limit sets what the kernel counts for each process.
func limit(j Job) error {
	for _, r := range []struct {
		what  int
		value uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 1024}, {unix.RLIMIT_FSIZE, uint64(j.FileSize)},
		{unix.RLIMIT_CPU, uint64(j.Seconds)}, {unix.RLIMIT_MEMLOCK, 8 << 20},
		{unix.RLIMIT_MSGQUEUE, 0}, {unix.RLIMIT_NPROC, uint64(j.Processes)}, {unix.RLIMIT_DATA, uint64(j.Memory)}} {
		if err := syscall.Setrlimit(r.what, &syscall.Rlimit{Cur: r.value, Max: r.value}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return nil
}
