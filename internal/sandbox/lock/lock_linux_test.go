package lock_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"reeve/internal/sandbox/lock"
)

// insideVariable makes this binary a process that calls Restrict and then does what code could do that controls the
// whole process.
const insideVariable = "REEVE_TEST_INSIDE"

func TestMain(m *testing.M) {
	if target := os.Getenv(insideVariable); target != "" {
		inside(target)
	}
	os.Exit(m.Run())
}

func inside(target string) {
	if err := lock.Restrict(256 << 20); err != nil {
		fmt.Println("locking failed:", err)
		os.Exit(1)
	}
	host := os.Getppid()
	for name, try := range map[string]func() error{
		"read a file":      func() error { _, err := os.ReadFile(target); return err },
		"write a file":     func() error { return os.WriteFile(target, nil, 0o600) },
		"make a file":      func() error { return os.WriteFile(target+"2", nil, 0o600) },
		"remove a file":    func() error { return os.Remove(target) },
		"rename a file":    func() error { return os.Rename(target, target+"2") },
		"look at a file":   func() error { _, err := os.Stat(target); return err },
		"list a directory": func() error { _, err := os.ReadDir("/"); return err },
		"change directory": func() error { return os.Chdir("/tmp") },
		"change its mode":  func() error { return os.Chmod(target, 0o777) },
		"follow proc":      func() error { _, err := unix.Open("/proc/self/environ", 0, 0); return err },
		"socket inet":      func() error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
		"socket inet6":     func() error { _, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0); return err },
		"socket unix":      func() error { _, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0); return err },
		"socket vsock":     func() error { _, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0); return err },
		"socket netlink":   func() error { _, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0); return err },
		"run a program":    func() error { return exec.Command("/bin/true").Run() },
		"become a program": func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
		"fork": func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
			return orNil(errno)
		},
		"kill the host":  func() error { return unix.Kill(host, 0) },
		"trace the host": func() error { return unix.PtraceAttach(host) },
		"open the host":  func() error { _, err := unix.PidfdOpen(host, 0); return err },
		"memory file":    func() error { _, err := unix.MemfdCreate("x", 0); return err },
		"new namespace":  func() error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"mount":          func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
		"io_uring": func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
			return orNil(errno)
		},
		"bpf": func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_BPF, 0, 0, 0)
			return orNil(errno)
		},
		"keys": func() error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
			return err
		},
		"raise its limits":  func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 16, Max: 16}) },
		"change its rights": func() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) },
		"another user":      func() error { return unix.Setuid(0) },
	} {
		if err := try(); err == nil {
			fmt.Println("it can", name)
		}
	}
	fmt.Println("tried")
	os.Exit(0)
}

func orNil(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// TestI11_RestrictedProcessReachesNothing runs a process as if untrusted code controlled it after Restrict. No system
// call that opens, connects or starts something succeeds.
func TestI11_RestrictedProcessReachesNothing(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = []string{insideVariable + "=" + target}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "tried" {
		t.Errorf("%v\n%s", err, out)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "untouched" {
		t.Errorf("%q, %v", b, err)
	}
}
