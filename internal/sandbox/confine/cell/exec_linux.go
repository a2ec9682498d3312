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

// Exec restricts this process and executes the command of the inherited job, or the program of its command line. It
// does not return.
func Exec() {
	// Privileges belong to threads, so the thread that drops them must be the one that calls exec.
	runtime.LockOSThread()
	if len(os.Args) > 1 {
		_, _ = os.Stderr.WriteString(execProgram(os.Args[1]).Error())
		os.Exit(126)
	}
	status := os.NewFile(StatusFile, "status")
	if err := execCommand(); err != nil {
		_, _ = io.WriteString(status, err.Error())
		os.Exit(126)
	}
	os.Exit(0)
}

// execCommand restricts this process and executes its command. It returns only an error, or nil for the command Trial.
func execCommand() error {
	var j Job
	if err := json.NewDecoder(os.NewFile(JobFile, "job")).Decode(&j); err != nil {
		return fmt.Errorf("decode job: %w", err)
	}
	if err := closeOnExec(JobFile); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // the kernel kills it first when memory runs out
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 5)                   // the server, which supervises it, has priority
	at, temp := j.Root, j.TempDir
	if j.Namespaces {
		if j.At != "" {
			at = j.At
		}
		temp = "/tmp"
		if err := buildRoot(j, at); err != nil {
			return err
		}
	}
	if err := os.Chdir(filepath.Join(at, j.Dir)); err != nil {
		return fmt.Errorf("dir: %w", withoutPath(err))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := restrictFiles(j, at, temp); err != nil {
		return err
	}
	path, lookup := findProgram(j.Args[0])
	env := append([]string{"PATH=" + Path, "HOME=" + at, "TMPDIR=" + temp, "LANG=C.UTF-8",
		"PWD=" + filepath.Join(at, j.Dir)}, j.Env...)
	program := buildFilter(j)
	if j.Kept {
		if err := unix.Dup3(TreeFile+j.Trees, KeepFile, 0); err != nil {
			return os.NewSyscallError("dup", err)
		}
	}
	if err := setLimits(j); err != nil {
		return err
	}
	if err := installFilter(program); err != nil {
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

// closeOnExec marks the descriptor first and all higher ones to be closed by exec.
func closeOnExec(first uint) error {
	return os.NewSyscallError("close_range", unix.CloseRange(first, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC))
}

// withoutPath returns the error without its path, because the caller must not see paths outside the workspace.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// findProgram returns the path of a program, which it looks up in Path like a shell.
func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(Path, ":") {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return p, nil
		}
	}
	return "", errors.New("program not found")
}

// dropCapabilities drops every capability for good.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// A process that may not drop it needs not: no_new_privs prevents gaining capabilities.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	none := [2]unix.CapUserData{}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return os.NewSyscallError("capset", err)
	}
	return nil
}

// setLimits sets the resource limits that the kernel enforces per process.
func setLimits(j Job) error {
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
