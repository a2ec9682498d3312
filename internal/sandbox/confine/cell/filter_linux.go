//go:build amd64 || arm64

package cell

import (
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deniedCalls are system calls that no command needs, and that could escape the sandbox or reach rarely reviewed parts
// of the kernel.
var deniedCalls = []uint32{
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
	// memory that is not subject to a limit
	unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_SEMGET,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME,
	unix.SYS_PERSONALITY, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY, unix.SYS_MIGRATE_PAGES,
	unix.SYS_MOVE_PAGES,
}

// groupCalls are the calls by which a process leaves its process group. They are denied without namespaces, where the
// host kills a command by its group.
var groupCalls = []uint32{unix.SYS_SETSID, unix.SYS_SETPGID}

// otherProcessCalls are calls that take the id of any process and that no program depends on. They are denied without
// namespaces, where the command can name processes outside the sandbox.
var otherProcessCalls = []uint32{unix.SYS_PIDFD_OPEN, unix.SYS_GET_ROBUST_LIST}

// argRule allows a call only if the low half of one argument has one of the values. The kernel uses only 32 bits of
// these arguments, so the high half does not matter.
type argRule struct {
	call   uint32
	arg    uint32
	values []uint32
	next   *argRule // another condition for the same call; may be nil
}

// selfID is the id that denotes the calling process, or its own group.
var selfID = []uint32{0}

// selfOnlyRules restrict calls that change the scheduling or limits of a process. Without namespaces such calls could
// slow down or kill processes outside the sandbox, including the server. So a process may use them only on itself or on
// its own group.
var selfOnlyRules = []argRule{
	{call: unix.SYS_PRLIMIT64, arg: firstArg, values: selfID},
	{call: unix.SYS_SCHED_SETAFFINITY, arg: firstArg, values: selfID},
	{call: unix.SYS_SCHED_SETSCHEDULER, arg: firstArg, values: selfID},
	{call: unix.SYS_SCHED_SETPARAM, arg: firstArg, values: selfID},
	{call: unix.SYS_SCHED_SETATTR, arg: firstArg, values: selfID},
	{call: unix.SYS_SETPRIORITY, arg: firstArg, values: []uint32{unix.PRIO_PROCESS, unix.PRIO_PGRP},
		next: &argRule{arg: secondArg, values: selfID}},
	{call: unix.SYS_IOPRIO_SET, arg: firstArg, values: []uint32{ioprioProcess, ioprioGroup},
		next: &argRule{arg: secondArg, values: selfID}},
}

// Values of the first argument of ioprio_set.
const (
	ioprioProcess = 1
	ioprioGroup   = 2
)

// deniedValues denies a call if an argument has one of the values.
type deniedValues struct {
	call, arg uint32
	values    []uint32
	result    uint32
}

// alwaysDenied are denied in every mode: simulating terminal input, reserving disk space (see SYS_FALLOCATE in
// buildFilter), and core scheduling of other processes.
var alwaysDenied = []deniedValues{
	{unix.SYS_IOCTL, secondArg, []uint32{unix.TIOCSTI, unix.TIOCLINUX}, refuse},
	{unix.SYS_IOCTL, secondArg, []uint32{iocReserve, iocReserve64, iocZeroRange}, unsupported},
	{unix.SYS_PRCTL, firstArg, []uint32{unix.PR_SCHED_CORE}, refuse},
}

// ownerValues make the kernel send a signal to any process when a file becomes readable. They are denied without
// namespaces.
var ownerValues = []deniedValues{
	{unix.SYS_FCNTL, secondArg, []uint32{unix.F_SETOWN, unix.F_SETOWN_EX}, refuse},
	{unix.SYS_IOCTL, secondArg, []uint32{iocSetOwner, unix.SIOCSPGRP}, refuse},
}

// Numbers of ioctl that package unix does not define: the old forms of fallocate, and FIOSETOWN.
const (
	iocReserve   = 0x40305828
	iocReserve64 = 0x4030582a
	iocZeroRange = 0x40305839
	iocSetOwner  = 0x8901
)

// signalCalls are the calls that send signals. They are denied if Landlock does not confine signals.
var signalCalls = []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO,
	unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL}

// attributeCalls are the calls that change attributes of a file by its path, which Landlock does not restrict. Without
// namespaces a command can name other files of the same user, so these calls are denied, even in the workspace.
var attributeCalls = []uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWNAT, unix.SYS_SETXATTR,
	unix.SYS_LSETXATTR,
	unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR}

// firstUnknown is the first call that is newer than these lists. It and all later calls return ENOSYS, as on an older
// kernel.
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

// Offsets in struct seccomp_data, which a filter reads.
const (
	callNumber   = 0
	architecture = 4
	firstArg     = 16
	secondArg    = 24
)

// buildFilter returns the seccomp program for a job.
func buildFilter(j Job) []unix.SockFilter {
	deny := append(append([]uint32(nil), deniedCalls...), archDeniedCalls...)
	if !j.Namespaces {
		deny = slices.Concat(deny, groupCalls, otherProcessCalls, attributeCalls, archAttributeCalls)
		if ABI() < scopeABI {
			deny = append(deny, signalCalls...)
		}
	}
	p := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: firstUnknown, Jf: 1}, // includes the x32 calls of amd64
		{Code: ret, K: absent},
	}
	for _, nr := range deny {
		p = append(p, unix.SockFilter{Code: equal, K: nr, Jf: 1}, unix.SockFilter{Code: ret, K: refuse})
	}
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	p = append(p,
		// A filter cannot read the flags of clone3. Without clone3 the C library falls back to clone.
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		unix.SockFilter{Code: ret, K: absent},
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: firstArg},
		unix.SockFilter{Code: set, K: namespaces, Jf: 1},
		unix.SockFilter{Code: ret, K: refuse},
		unix.SockFilter{Code: ret, K: permit},
		// Reserving space is instant, so the disk limit could not stop a command in time. Programs write instead.
		unix.SockFilter{Code: equal, K: unix.SYS_FALLOCATE, Jf: 1},
		unix.SockFilter{Code: ret, K: unsupported},
	)
	values := alwaysDenied
	if !j.Namespaces {
		values = slices.Concat(alwaysDenied, ownerValues)
		for _, r := range selfOnlyRules {
			p = append(p, r.instructions()...)
		}
	}
	for _, v := range values {
		p = append(p, v.instructions()...)
	}
	if !j.Namespaces { // file times may be set only through an open file, with a null path
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

// instructions returns the filter instructions of a rule. If the call is another one, the accumulator still holds the
// call number after them.
func (r argRule) instructions() []unix.SockFilter {
	var body []unix.SockFilter
	for at := &r; at != nil; at = at.next {
		body = append(body, unix.SockFilter{Code: load, K: at.arg})
		for i, v := range at.values {
			skip := len(at.values) - i // to jump over the remaining values and the refusal
			body = append(body, unix.SockFilter{Code: equal, K: v, Jt: uint8(skip)})
		}
		body = append(body, unix.SockFilter{Code: ret, K: refuse})
	}
	body = append(body, unix.SockFilter{Code: ret, K: permit})
	return append([]unix.SockFilter{{Code: equal, K: r.call, Jf: uint8(len(body))}}, body...)
}

// instructions returns the filter instructions for denied values. For other values the filter continues after them,
// with the call number in the accumulator.
func (v deniedValues) instructions() []unix.SockFilter {
	body := []unix.SockFilter{{Code: load, K: v.arg}}
	for _, value := range v.values {
		body = append(body, unix.SockFilter{Code: equal, K: value, Jf: 1}, unix.SockFilter{Code: ret, K: v.result})
	}
	body = append(body, unix.SockFilter{Code: load, K: callNumber})
	return append([]unix.SockFilter{{Code: equal, K: v.call, Jf: uint8(len(body))}}, body...)
}

// installFilter installs the filter for this thread and its descendants.
func installFilter(program []unix.SockFilter) error {
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&f))); errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
