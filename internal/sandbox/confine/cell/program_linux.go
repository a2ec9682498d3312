//go:build amd64 || arm64

package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// libraries is where programs that need the system's libraries look for them.
var libraries = []string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32",
	"/usr/local/lib", "/etc/ld.so.cache", "/nix/store"}

// becomeProgram makes this process a program of ours that runs somebody's code by itself: it sees its own /proc and at
// the most one folder, and has no rights but the pipes that it was given. Its variables are this process's. It returns
// only if it cannot.
func becomeProgram(told string) error {
	var p Program
	if err := json.Unmarshal([]byte(told), &p); err != nil {
		return fmt.Errorf("its program: %w", err)
	}
	if err := p.alone(); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // it goes first when the machine runs out of memory
	if p.Namespaces {
		if err := p.world(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := dropRights(); err != nil {
		return err
	}
	if err := p.restrict(); err != nil {
		return err
	}
	if err := install(filter(Job{Namespaces: p.Namespaces})); err != nil {
		return err
	}
	return os.NewSyscallError("execveat", execOpen(ProgramFile, p.Args, os.Environ()))
}

// alone has the program find nothing open but its pipes, and its folder where it has no other way to it. Its host may
// leave it more by mistake: Go itself opens the user maps of a process that it starts so that another one, started in
// the same moment, is left with them.
func (p Program) alone() error {
	if err := closeOnExec(ProgramFile); err != nil || p.Namespaces || p.Folder == "" {
		return err
	}
	_, err := unix.FcntlInt(FolderFile, unix.F_SETFD, 0)
	return os.NewSyscallError("fcntl", err)
}

// world replaces all that this process sees by an empty file system, a /proc of its own, and what the program reads.
func (p Program) world() error {
	parts, err := p.collect()
	if err != nil {
		return err
	}
	if err := pivot("size=64k,mode=755"); err != nil {
		return err
	}
	if err := os.Mkdir("/proc", 0o755); err != nil {
		return err
	}
	err = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil && !errors.Is(err, unix.EPERM) {
		return os.NewSyscallError("mount proc", err)
	}
	for _, part := range parts {
		if err := part.place(); err != nil {
			return fmt.Errorf("%s: %w", part.path, err)
		}
	}
	return seal()
}

// collect takes hold of what the program reads while its names still mean what they mean outside.
func (p Program) collect() (parts []part, err error) {
	if p.Libraries {
		for _, path := range libraries {
			got, err := take(path)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			parts = append(parts, got)
		}
	}
	if p.Folder == "" {
		return parts, nil
	}
	got := part{fd: FolderFile, dir: true, readOnly: true}
	if !p.Opened {
		got, err = take(p.Folder)
	}
	got.path = FolderPath
	return append(parts, got), err
}

// restrict lets the program read what it is to read, and nothing else.
func (p Program) restrict() error {
	set, err := ruleset(false)
	if err != nil {
		return err
	}
	reads := []string{"/"} // which holds only what was put there
	if !p.Namespaces {
		reads = []string{"/proc/" + strconv.Itoa(os.Getpid())} // how much memory it has
		if p.Libraries {
			reads = append(reads, libraries...)
		}
		if p.Folder != "" {
			if err := allowOpen(set, FolderFile, readAll); err != nil {
				return err
			}
		}
	}
	for _, path := range reads {
		if err := allow(set, path, readAll); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	// one in memory has no place, and needs no leave
	if err := allowOpen(set, ProgramFile, readFile); err != nil && !errors.Is(err, unix.EBADFD) {
		return err
	}
	return enforce(set)
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
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}
