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

// attentive reads what the host says. Most of the host's answers come within microseconds, and a worker has one processor and nothing else to do:
// what the scheduler does around a read that has to wait (give the processor away, wake the threads that look after it, take it back) costs more than all
// the rest of a short call. So at first it waits unseen, for so short a time that timers and whatever else there is do not notice.
type attentive struct {
	file *os.File
	poll int // an epoll instance that watches the file; it is one of the few things that may still be called when the process is locked down
}

// attend makes a reader of the worker's input.
func attend(in io.Reader) io.Reader {
	f, ok := in.(*os.File)
	if !ok {
		return in
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return in
	}
	fd := int(f.Fd())
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		_ = unix.Close(poll)
		return in
	}
	return &attentive{f, poll}
}

// Read reads as the file does.
func (a *attentive) Read(p []byte) (int, error) {
	var event unix.EpollEvent
	// Whatever it says, the read that follows is right: it waits if there is nothing yet.
	_, _, _ = syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(a.poll), uintptr(unsafe.Pointer(&event)), 1, moment, 0, 0)
	return a.file.Read(p)
}
