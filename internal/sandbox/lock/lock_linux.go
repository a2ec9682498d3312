package lock

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Restrict takes from this process, for good, what running somebody's code does not need, and limits what memory it may
// take from now on. The engines that it is for are hundreds of thousands of lines: whoever breaks one should find
// nothing to open, nobody to call, and no more memory than agreed.
func Restrict(memory uint64) error {
	// somebody's code waits for the server, not it for them
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 5)
	// and goes first when the machine runs out of memory
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	for resource, limit := range map[int]uint64{unix.RLIMIT_DATA: dataSize() + memory, unix.RLIMIT_CORE: 0,
		unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 16} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return filter()
}

// hungUp says whether nobody is left who could write to standard input.
func hungUp() bool {
	in := []unix.PollFd{{Fd: 0}}
	n, err := unix.Ppoll(in, &unix.Timespec{}, nil)
	return err == nil && n > 0 && in[0].Revents&unix.POLLHUP != 0
}

// dataSize is how much private memory this process has already mapped.
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
