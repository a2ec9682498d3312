//go:build !linux

package lock

// Down has nothing to set here: memory is limited by the engine alone, and the process by its deadline.
func Down(uint64) error { return nil }

// Available has nothing to say: there is no filter to install here.
func Available() error { return nil }

// hungUp need not be known here: a worker sees its host's process.
func hungUp() bool { return false }
