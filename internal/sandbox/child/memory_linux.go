package child

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// numbers is where a process finds its open files.
const numbers = "/proc/self/fd/"

// NewMemoryProgram makes a program that is in no directory: it can be started by its path, see [Aside], as long as the
// file is open.
func NewMemoryProgram(name string, program io.Reader) (*os.File, string, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, "", os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = io.Copy(f, program); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, numbers + strconv.Itoa(fd), nil
}

// ProgramPath is the path by which to start a program as a process that is given files. One that is in memory is found
// by a number, and a new process moves its files before it looks for its program: to the lowest numbers, over the
// numbers just above the highest of them. So the program is given a number above all these, until done is called, when
// the process has been started or cannot be.
func ProgramPath(path string, files []*os.File) (_ string, done func(), err error) {
	number, found := strings.CutPrefix(path, numbers)
	fd, err := strconv.Atoi(number)
	if !found || err != nil {
		return path, func() {}, nil
	}
	highest := len(files)
	for _, f := range files {
		highest = max(highest, int(f.Fd()))
	}
	fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, highest+len(files)+8)
	if err != nil {
		return "", func() {}, os.NewSyscallError("dup", err)
	}
	return numbers + strconv.Itoa(fd), func() { _ = unix.Close(fd) }, nil
}
