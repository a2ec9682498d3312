//go:build amd64 || arm64

package cell

import (
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are system calls that no command needs, and that reach past its walls or into parts of the kernel which few
// look at.
var refused = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOUNT_SETATTR,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL,
	unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY,
	unix.SYS_REQUEST_KEY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// memory that no limit counts
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME,
	unix.SYS_PERSONALITY, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_MIGRATE_PAGES,
	unix.SYS_MOVE_PAGES,
}

// leaving are the calls by which a process leaves its group, in which it would be found and killed where there are no
// namespaces.
var leaving = []uint32{unix.SYS_SETSID, unix.SYS_SETPGID}

// foreign are calls that take the id of any process and that no program depends on. They are refused without
// namespaces, where processes outside have ids too.
var foreign = []uint32{unix.SYS_PIDFD_OPEN, unix.SYS_GET_ROBUST_LIST}

// rule lets a call pass only if the low half of one argument has one of the values given. The kernel takes these
// arguments as 32 bits, so the high half says nothing.
type rule struct {
	call   uint32
	arg    uint32
	values []uint32
	next   *rule // what must hold besides
}

// self is the id by which a process means itself, and the group by which it means its own.
var self = []uint32{0}

// ownOnly are calls that change how a process is run or what it may use. Without namespaces they could slow down or
// kill processes outside, the server too. So a process may use them on itself or on its own group only.
var ownOnly = []rule{
	{call: unix.SYS_PRLIMIT64, arg: firstArg, values: self},
	{call: unix.SYS_SCHED_SETAFFINITY, arg: firstArg, values: self},
	{call: unix.SYS_SCHED_SETSCHEDULER, arg: firstArg, values: self},
	{call: unix.SYS_SCHED_SETPARAM, arg: firstArg, values: self},
	{call: unix.SYS_SCHED_SETATTR, arg: firstArg, values: self},
	{call: unix.SYS_SETPRIORITY, arg: firstArg, values: []uint32{unix.PRIO_PROCESS, unix.PRIO_PGRP},
		next: &rule{arg: secondArg, values: self}},
	{call: unix.SYS_IOPRIO_SET, arg: firstArg, values: []uint32{ioprioProcess, ioprioGroup},
		next: &rule{arg: secondArg, values: self}},
}

// How ioprio_set names one process, and a group.
const (
	ioprioProcess = 1
	ioprioGroup   = 2
)

// valued are values of an argument with which a call is refused.
type valued struct {
	call, arg uint32
	values    []uint32
	answer    uint32
}

// always are refused everywhere: typing on a terminal, reserving disk space in a moment, however much it is (see
// fallocate), and scheduling other processes together with this one.
var always = []valued{
	{unix.SYS_IOCTL, secondArg, []uint32{unix.TIOCSTI, unix.TIOCLINUX}, refuse},
	{unix.SYS_IOCTL, secondArg, []uint32{iocReserve, iocReserve64, iocZeroRange}, unsupported},
	{unix.SYS_PRCTL, firstArg, []uint32{unix.PR_SCHED_CORE}, refuse},
}

// notifying have the kernel send a signal to any process when something can be read: refused without namespaces.
var notifying = []valued{
	{unix.SYS_FCNTL, secondArg, []uint32{unix.F_SETOWN, unix.F_SETOWN_EX}, refuse},
	{unix.SYS_IOCTL, secondArg, []uint32{iocSetOwner, unix.SIOCSPGRP}, refuse},
}

// Numbers of ioctl that package unix does not have: the old forms of fallocate, and FIOSETOWN.
const (
	iocReserve   = 0x40305828
	iocReserve64 = 0x4030582a
	iocZeroRange = 0x40305839
	iocSetOwner  = 0x8901
)

// signalling are the calls that send signals, refused where Landlock does not keep them inside.
var signalling = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO,
	unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL}

// touching are the calls that change what a file is without opening it, which Landlock does not judge. Without
// namespaces other files of the same user have names, so these are refused there, in the workspace too.
var touching = []uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR, unix.SYS_LSETXATTR,
	unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}

// firstUnknown is the first call that this list was not written for. Such calls are answered as an older kernel would.
const firstUnknown = unix.SYS_LISTNS + 1

const (
	load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	set    = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	ret    = unix.BPF_RET | unix.BPF_K
	permit = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	family = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)

	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
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
		deny = slices.Concat(deny, leaving, foreign, touching, touchingHere)
		if ABI() < scopeABI {
			deny = append(deny, signalling...)
		}
	}
	p := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: firstUnknown, Jf: 1}, // and the other numbering of amd64
		{Code: ret, K: absent},
	}
	for _, nr := range deny {
		p = append(p, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: refuse})
	}
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	p = append(p,
		// its flags cannot be looked at; the C library falls back to clone
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		unix.SockFilter{Code: ret, K: absent},
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: firstArg},
		unix.SockFilter{Code: set, K: namespaces, Jf: 1},
		unix.SockFilter{Code: ret, K: refuse},
		unix.SockFilter{Code: ret, K: permit},
		// Reserving space takes no time, so nobody could stop a command that takes too much of it. Programs write
		// instead.
		unix.SockFilter{Code: equal, K: unix.SYS_FALLOCATE, Jf: 1},
		unix.SockFilter{Code: ret, K: unsupported},
	)
	values := always
	if !j.Namespaces {
		values = slices.Concat(always, notifying)
		for _, r := range ownOnly {
			p = append(p, r.program()...)
		}
	}
	for _, v := range values {
		p = append(p, v.program()...)
	}
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
	p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jf: uint8(2 + 2*len(families))},
		unix.SockFilter{Code: load, K: firstArg})
	for _, f := range families {
		p = append(p, unix.SockFilter{Code: equal, K: f, Jf: 1}, unix.SockFilter{Code: ret, K: permit})
	}
	return append(p, unix.SockFilter{Code: ret, K: family}, unix.SockFilter{Code: ret, K: permit})
}

// program is the part of the filter for a rule. The accumulator holds the call's number, before it and after it.
func (r rule) program() []unix.SockFilter {
	var body []unix.SockFilter
	for at := &r; at != nil; at = at.next {
		body = append(body, unix.SockFilter{Code: load, K: at.arg})
		for i, v := range at.values {
			skip := len(at.values) - i // over the values that follow, and the refusal
			body = append(body, unix.SockFilter{Code: equal, K: v, Jt: uint8(skip)})
		}
		body = append(body, unix.SockFilter{Code: ret, K: refuse})
	}
	body = append(body, unix.SockFilter{Code: ret, K: permit})
	return append([]unix.SockFilter{{Code: equal, K: r.call, Jf: uint8(len(body))}}, body...)
}

// program is the part of the filter for values that are refused. Other values go on to the rest of the filter.
func (v valued) program() []unix.SockFilter {
	body := []unix.SockFilter{{Code: load, K: v.arg}}
	for _, value := range v.values {
		body = append(body, unix.SockFilter{Code: equal, K: value, Jf: 1}, unix.SockFilter{Code: ret, K: v.answer})
	}
	body = append(body, unix.SockFilter{Code: load, K: callNumber})
	return append([]unix.SockFilter{{Code: equal, K: v.call, Jf: uint8(len(body))}}, body...)
}

// install puts the filter in force for this thread and what comes of it.
func install(program []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&f))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
