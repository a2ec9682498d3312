// Package lock is used inside worker processes that run untrusted code.
//
// [Restrict] gives up privileges before the untrusted code starts: it sets resource limits and, on Linux, installs a
// system call filter that allows no files, sockets or processes to be opened. [WatchHost] detects that the process
// that started the worker has ended. [Available] reports whether the kernel supports the filter.
//
// The package imports little, because it is linked into the small worker programs.
package lock

import (
	"os"
	"time"
)

// WatchHost calls onEnd within about a second after the process that started this one has ended. It checks the parent
// process id and standard input. Inside a process namespace the parent is not visible, but standard input is closed
// when the host ends, because only the host holds its other end.
func WatchHost(onEnd func()) {
	host := os.Getppid()
	var check func()
	check = func() {
		if os.Getppid() != host || isStdinClosed() {
			onEnd()
		}
		time.AfterFunc(time.Second, check)
	}
	time.AfterFunc(time.Second, check)
}
