//go:build !linux

package lock

// Restrict does nothing on this system. The engine limits memory, and the host kills the process at its deadline.
func Restrict(uint64) error { return nil }

// Available returns nil, because [Restrict] installs no filter on this system.
func Available() error { return nil }

// isStdinClosed returns false. On this system a worker sees its host's process id.
func isStdinClosed() bool { return false }
