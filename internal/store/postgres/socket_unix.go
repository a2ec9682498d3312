//go:build unix

package postgres

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"reeve"
)

// socket is a connection that is waited for in the kernel, by the thread that asked. Go would have its poller wait, and a second thread look for work meanwhile; with few
// calls under way there is none, and looking takes the processor from the server that we wait for, where it is on the same machine: a lone call took up to twice as long.
// A deadline that has passed is final, and whoever sets another is told so: nobody uses a connection any more of which one did.
type socket struct {
	net.Conn // for its addresses; it is closed
	file     *os.File
	expired  atomic.Bool
	mu       sync.Mutex
	deadline *time.Timer
}

// newSocket takes a connection from Go's poller.
func newSocket(c net.Conn) (_ net.Conn, err error) {
	own, ok := c.(syscall.Conn)
	if !ok {
		return c, nil
	}
	defer func() { _ = c.Close() }() // or its copy
	raw, err := own.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	syscall.ForkLock.RLock() // nobody starts a program that would inherit it
	if e := raw.Control(func(number uintptr) { fd, err = syscall.Dup(int(number)) }); e == nil && err == nil {
		syscall.CloseOnExec(fd)
	} else {
		err = errors.Join(e, err)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(fd, false); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return &socket{Conn: c, file: os.NewFile(uintptr(fd), "postgres")}, nil
}

func (s *socket) Read(b []byte) (int, error) {
	n, err := s.file.Read(b)
	return n, s.explain(err)
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.file.Write(b)
	return n, s.explain(err)
}

func (s *socket) explain(err error) error {
	if err != nil && s.expired.Load() {
		return os.ErrDeadlineExceeded
	}
	return err
}

// Close also ends a read that waits.
func (s *socket) Close() error {
	_ = s.SetDeadline(time.Time{})
	s.shut()
	return s.file.Close()
}

// shut has whoever waits told that there will be nothing more.
func (s *socket) shut() {
	if raw, err := s.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
	}
}

func (s *socket) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deadline != nil {
		s.deadline.Stop()
		s.deadline = nil
	}
	if s.expired.Load() {
		return os.ErrDeadlineExceeded
	}
	if t.IsZero() {
		return nil
	}
	expire := func() {
		s.expired.Store(true)
		s.shut()
	}
	if left := -reeve.Since(t); left > 0 {
		s.deadline = time.AfterFunc(left, expire)
	} else {
		expire()
	}
	return nil
}

func (s *socket) SetReadDeadline(t time.Time) error  { return s.SetDeadline(t) }
func (s *socket) SetWriteDeadline(t time.Time) error { return s.SetDeadline(t) }
