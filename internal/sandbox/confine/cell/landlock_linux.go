//go:build amd64 || arm64

package cell

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LeastABI is the first Landlock version that restricts truncation. Earlier ones would let a command truncate files
// outside the workspace.
const LeastABI = 3

// scopeABI is the first Landlock version that confines signals and abstract sockets.
const scopeABI = 6

const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	readAll  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	useFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	handled  = unix.LANDLOCK_ACCESS_FS_TRUNCATE<<1 - 1 // all access rights up to truncation
	// In the workspace everything except device files may be created.
	writeAll = handled &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK)
)

// ABI returns the version of the kernel's Landlock, or 0 if there is none.
func ABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// restrictFiles allows this thread and its descendants to write only the workspace (at) and the temporary folder, and
// to read only the system's files and those of the job.
func restrictFiles(j Job, at, temp string) error {
	set, err := newRuleset(j.Network)
	if err != nil {
		return err
	}
	rules := map[string]uint64{at: writeAll, temp: writeAll}
	for _, p := range devices {
		rules[p] = useFile
	}
	if j.Namespaces {
		rules["/"] = readAll // the private root holds only what the command may read
	} else {
		for _, p := range append(append([]string{"/etc/passwd", "/etc/group"}, readablePaths(j)...), j.ReadOnly...) {
			rules[p] = readAll
		}
	}
	for path, access := range rules {
		if err := allowPath(set, path, access); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return enforceRuleset(set)
}

// newRuleset returns a Landlock ruleset, which denies every access that no rule allows.
func newRuleset(network bool) (int, error) {
	abi := ABI()
	if abi < LeastABI {
		return -1, errors.New("landlock is missing or too old")
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	if abi >= 4 && !network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= scopeABI {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	const size = 24 // up to and including Scoped; older kernels accept a longer struct if the rest is zero
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return int(set), nil // closed by exec
}

// enforceRuleset applies a ruleset to this thread and its descendants.
func enforceRuleset(set int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

// allowPath adds a rule for a path to a ruleset.
func allowPath(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return allowFile(set, fd, access)
}

// allowFile is like allowPath for an open file or folder. Of a file it allows only the rights that files have.
func allowFile(set, fd int, access uint64) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if s.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= readFile | useFile
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_add_rule", errno)
	}
	return nil
}
