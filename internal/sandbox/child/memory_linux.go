package child

import (
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// descriptorFolder holds a link for each open file of the process that reads it.
const descriptorFolder = "/proc/self/fd/"

// NewMemoryProgram copies a program to a sealed file in memory and returns the file with a path to it. Pass the path to
// [ProgramPath] before starting a process from it. The path is valid while the file is open.
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
	return f, descriptorFolder + strconv.Itoa(fd), nil
}

// ProgramPath returns the path to use when starting a program as a process that receives files. A path to an ordinary
// file is returned unchanged.
//
// A path from [NewMemoryProgram] contains a descriptor number. Between fork and exec the new process moves files to the
// lowest numbers, and uses numbers just above the highest of them on the way, so it could overwrite that descriptor.
// ProgramPath therefore duplicates the descriptor to a number above all of these. The caller calls done, which closes
// the duplicate, once the process has started or failed to start.
func ProgramPath(path string, files []*os.File) (_ string, done func(), err error) {
	number, found := strings.CutPrefix(path, descriptorFolder)
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
	return descriptorFolder + strconv.Itoa(fd), func() { _ = unix.Close(fd) }, nil
}
