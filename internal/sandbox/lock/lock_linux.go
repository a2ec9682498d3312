package lock

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Restrict gives up privileges of this process for good. It limits the process to memory more bytes than it has now,
// forbids core dumps and file writes, and installs the system call filter. An interpreter is large and may have bugs;
// code that exploits one cannot open files, connect anywhere or use more memory. Restrict fails if the kernel refuses
// a limit or the filter.
func Restrict(memory uint64) error {
	// The server has priority over untrusted code.
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 5)
	// The kernel kills this process first when the machine runs out of memory.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for resource, limit := range map[int]uint64{unix.RLIMIT_DATA: dataSize() + memory, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 16} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return installFilter()
}

// isStdinClosed reports whether no process holds the write end of standard input any more.
func isStdinClosed() bool {
	in := []unix.PollFd{{Fd: 0}}
	n, err := unix.Ppoll(in, &unix.Timespec{}, nil)
	return err == nil && n > 0 && in[0].Revents&unix.POLLHUP != 0
}

// dataSize returns the bytes of private memory that this process has mapped, or 64 MiB if that is unknown.
func dataSize() uint64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 64 << 20
	}
	_, after, _ := strings.Cut(string(status), "VmData:")
	kb, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, err := strconv.ParseUint(kb, 10, 64)
	if err != nil {
		return 64 << 20
	}
	return n << 10
}
