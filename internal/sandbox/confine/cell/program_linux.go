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

// libraryPaths are the paths at which dynamically linked programs find the system's libraries.
var libraryPaths = []string{"/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64",
	"/usr/libx32",
	"/usr/local/lib", "/etc/ld.so.cache", "/nix/store"}

// execProgram restricts this process and executes a worker program. The program sees its own /proc and at most one
// folder, and can use only the pipes that it inherits. It keeps the environment of this process. execProgram returns
// only an error.
func execProgram(encoded string) error {
	var p Program
	if err := json.Unmarshal([]byte(encoded), &p); err != nil {
		return fmt.Errorf("decode program: %w", err)
	}
	if err := p.closeFiles(); err != nil {
		return err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // the kernel kills it first when memory runs out
	if p.Namespaces {
		if err := p.buildRoot(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("no_new_privs", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := p.restrictFiles(); err != nil {
		return err
	}
	if err := installFilter(buildFilter(Job{Namespaces: p.Namespaces})); err != nil {
		return err
	}
	return os.NewSyscallError("execveat", execOpen(ProgramFile, p.Args, os.Environ()))
}

// closeFiles makes exec close all files except the pipes, and the folder if the program runs without namespaces. The
// host may leak other files: Go opens the user maps of a process that it starts in a way that a process started at the
// same time can inherit them.
func (p Program) closeFiles() error {
	if err := closeOnExec(ProgramFile); err != nil || p.Namespaces || p.Folder == "" {
		return err
	}
	_, err := unix.FcntlInt(FolderFile, unix.F_SETFD, 0)
	return os.NewSyscallError("fcntl", err)
}

// buildRoot replaces the file system of this process by one that holds only a private /proc and the files that the
// program reads.
func (p Program) buildRoot() error {
	parts, err := p.collectMounts()
	if err != nil {
		return err
	}
	if err := pivotRoot("size=64k,mode=755"); err != nil {
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
		if err := part.attach(); err != nil {
			return fmt.Errorf("%s: %w", part.path, err)
		}
	}
	return sealRoot()
}

// collectMounts opens the files that the program reads, before the root changes.
func (p Program) collectMounts() (parts []mount, err error) {
	if p.Libraries {
		for _, path := range libraryPaths {
			got, err := openMount(path)
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
	got := mount{fd: FolderFile, dir: true, readOnly: true}
	if !p.Opened {
		got, err = openMount(p.Folder)
	}
	got.path = FolderPath
	return append(parts, got), err
}

// restrictFiles allows the program to read only its own files.
func (p Program) restrictFiles() error {
	set, err := newRuleset(false)
	if err != nil {
		return err
	}
	reads := []string{"/"} // the private root holds only what the program may read
	if !p.Namespaces {
		reads = []string{"/proc/" + strconv.Itoa(os.Getpid())} // the process reads its own memory use there
		if p.Libraries {
			reads = append(reads, libraryPaths...)
		}
		if p.Folder != "" {
			if err := allowFile(set, FolderFile, readAll); err != nil {
				return err
			}
		}
	}
	for _, path := range reads {
		if err := allowPath(set, path, readAll); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	// A program in memory has no path and needs no rule.
	if err := allowFile(set, ProgramFile, readFile); err != nil && !errors.Is(err, unix.EBADFD) {
		return err
	}
	return enforceRuleset(set)
}

// execOpen executes the program of an open file. It returns only an error.
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
