//go:build amd64 || arm64

package cell

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are system calls that no command needs, and that reach past its walls or into parts of the kernel which few look at.
var refused = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOUNT_SETATTR,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET, // memory that no limit counts
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_PERSONALITY, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// leaving are the calls by which a process leaves its group, in which it would be found and killed where there are no namespaces.
var leaving = []uint32{unix.SYS_SETSID, unix.SYS_SETPGID}

// signalling are the calls that send signals, refused where Landlock does not keep them inside.
var signalling = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL}

// touching are the calls that change what a file is without opening it, which Landlock does not judge. Without namespaces other files of
// the same user have names, so these are refused there, in the workspace too.
var touching = []uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT}

const (
	load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	set    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret    = unix.BPF_RET | unix.BPF_K
	permit = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	family = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
)

// Where the kernel puts what a filter looks at.
const (
	callNumber   = 0
	architecture = 4
	firstArg     = 16
	secondArg    = 24
)

// filter is the program that judges each system call of the command.
func filter(j Job) []unix.SockFilter {
	deny := append(append([]uint32(nil), refused...), refusedHere...)
	if !j.Namespaces {
		deny = append(append(append(deny, leaving...), touching...), touchingHere...)
		if ABI() < scopeABI {
			deny = append(deny, signalling...)
		}
	}
	p := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: 0x40000000, Jf: 1}, // the other numbering of amd64
		{Code: ret, K: absent},
	}
	for _, nr := range deny {
		p = append(p, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: refuse})
	}
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	p = append(p,
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, // its flags cannot be looked at; the C library falls back to clone
		unix.SockFilter{Code: ret, K: absent},
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: firstArg},
		unix.SockFilter{Code: set, K: namespaces, Jf: 1},
		unix.SockFilter{Code: ret, K: refuse},
		unix.SockFilter{Code: ret, K: permit},
		unix.SockFilter{Code: equal, K: unix.SYS_IOCTL, Jf: 5},
		unix.SockFilter{Code: load, K: secondArg},
		unix.SockFilter{Code: equal, K: unix.TIOCSTI, Jt: 1}, // typing on somebody's terminal
		unix.SockFilter{Code: equal, K: unix.TIOCLINUX, Jf: 1},
		unix.SockFilter{Code: ret, K: refuse},
		unix.SockFilter{Code: ret, K: permit},
	)
	if !j.Namespaces { // a file's times may be set through the open file only: then there is no path
		p = append(p,
			unix.SockFilter{Code: equal, K: unix.SYS_UTIMENSAT, Jf: 6},
			unix.SockFilter{Code: load, K: secondArg},
			unix.SockFilter{Code: equal, K: 0, Jf: 3},
			unix.SockFilter{Code: load, K: secondArg + 4},
			unix.SockFilter{Code: equal, K: 0, Jf: 1},
			unix.SockFilter{Code: ret, K: permit},
			unix.SockFilter{Code: ret, K: refuse},
		)
	}
	var families []uint32
	if j.Namespaces || j.Network {
		families = append(families, unix.AF_UNIX)
	}
	if j.Network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jf: uint8(2 + 2*len(families))}, unix.SockFilter{Code: load, K: firstArg})
	for _, f := range families {
		p = append(p, unix.SockFilter{Code: equal, K: f, Jf: 1}, unix.SockFilter{Code: ret, K: permit})
	}
	return append(p, unix.SockFilter{Code: ret, K: family}, unix.SockFilter{Code: ret, K: permit})
}

// install puts the filter in force for this thread and what comes of it.
func install(program []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
