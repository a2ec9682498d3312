package child

import "golang.org/x/sys/unix"

// keepFiles has no child inherit the files that this process was started with and that nobody closed; those that Go
// opens, none does anyway. Where the kernel is too old for it, the walls around a worker are what is left.
func keepFiles() { _ = unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) }
