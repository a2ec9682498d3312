package child

import "golang.org/x/sys/unix"

// closeFilesOnExec prevents children from inheriting files that this process itself inherited. Files that Go opened are
// never inherited. On a kernel without close_range the call has no effect, and only the worker's confinement remains.
func closeFilesOnExec() { _ = unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) }
