package guest

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// moment is how long, in milliseconds, a worker waits for its host before it tells Go's scheduler that it does.
const moment = 2

// attentive is the worker's end of its two pipes. Most of the host's answers come within microseconds, and a worker has one processor and nothing else to do:
// what the scheduler does around a system call that has to wait (give the processor away, wake the threads that look after it, take it back) costs more than all
// the rest of a short call. So it is not told at first, for so short a time that timers and whatever else there is do not notice.
type attentive struct {
	in, out *os.File
	poll    int // an epoll instance that watches the input; waiting on one is among the few things that may still be done when the process is locked down
}

// attend makes better ends of a worker's pipes where it can.
func attend(in io.Reader, out io.Writer) (io.Reader, io.Writer) {
	from, ok := in.(*os.File)
	to, also := out.(*os.File)
	if !ok || !also {
		return in, out
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return in, out
	}
	fd := int(from.Fd())
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		_ = unix.Close(poll)
		return in, out
	}
	a := &attentive{from, to, poll}
	return a, a
}

// Read reads as the file does.
func (a *attentive) Read(p []byte) (int, error) {
	var event unix.EpollEvent
	ready, _, _ := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(a.poll), uintptr(unsafe.Pointer(&event)), 1, moment, 0, 0)
	if ready != 1 || len(p) == 0 {
		return a.in.Read(p)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, a.in.Fd(), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	switch {
	case errno != 0:
		return a.in.Read(p)
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}

// Write writes as the file does. A host that does not read keeps the worker waiting, and ends it when its time is over.
func (a *attentive) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, a.out.Fd(), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		n = 0
	}
	if int(n) == len(p) {
		return len(p), nil
	}
	more, err := a.out.Write(p[n:])
	return int(n) + more, err
}
