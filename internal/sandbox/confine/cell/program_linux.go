//go:build amd64 || arm64

package cell

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// becomeProgram makes this process a program of ours that runs somebody's code by itself: a world with nothing in it but its own /proc, no
// rights, and the pipes that it has. Its variables are this process's. It returns only if it cannot.
func becomeProgram(args []string) error {
	if err := nothing(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := dropRights(); err != nil {
		return err
	}
	set, err := ruleset(false)
	if err != nil {
		return err
	}
	if err := allow(set, "/", readAll); err != nil {
		return err
	}
	if err := allowOpen(set, ProgramFile, readFile); err != nil {
		return err
	}
	if err := enforce(set); err != nil {
		return err
	}
	if err := install(filter(Job{Namespaces: true})); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(ProgramFile, unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	return os.NewSyscallError("execveat", execOpen(ProgramFile, args, os.Environ()))
}

// nothing replaces all that this process sees by an empty file system and a /proc of its own.
func nothing() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // it goes first when the machine runs out of memory
	if err := pivot("size=16k,mode=755"); err != nil {
		return err
	}
	if err := os.Mkdir("/proc", 0o755); err != nil {
		return err
	}
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil && !errors.Is(err, unix.EPERM) {
		return os.NewSyscallError("mount proc", err)
	}
	return seal()
}

// execOpen becomes a program that is open.
func execOpen(fd int, args, env []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	empty := []byte{0}
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}
