package guest

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lockDown takes from this process, for good, what running a script does not need. The engine is a hundred thousand lines that
// were not written in Go: whoever breaks it should find nothing to open, nobody to call, and no more memory than agreed.
func lockDown(memory int64, stack int) error {
	_ = unix.Setpriority(unix.PRIO_PGRP, 0, 5)                      // scripts wait for the server, not it for them
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // and go first when the machine runs out of memory
	// What the engine counts, what its allocator wastes, the stack of the deepest recursion while it is copied, and frames.
	most := dataSize() + uint64(memory+memory/2) + uint64(stack)<<14 + 96<<20
	for resource, limit := range map[int]uint64{unix.RLIMIT_DATA: most, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: 16} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	return filter()
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
