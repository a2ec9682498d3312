// Package lock is for worker processes that run code which nobody vouches for: they lock themselves in before they run
// it, and end when their host has gone.
package lock

import (
	"os"
	"time"
)

// WatchHost calls gone soon after the process that started this one has ended. Where a worker does not see its host's
// process, it sees the end of its standard input, which its host alone writes.
func WatchHost(gone func()) {
	host := os.Getppid()
	var look func()
	look = func() {
		if os.Getppid() != host || hungUp() {
			gone()
		}
		time.AfterFunc(time.Second, look)
	}
	time.AfterFunc(time.Second, look)
}
