package child

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// above is more than any process of ours is given files.
const above = 64

// InMemory makes a program that is in no directory: it can be started by its path as long as the file is open.
func InMemory(name string, program io.Reader) (*os.File, string, error) {
	low, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, "", os.NewSyscallError("memfd_create", err)
	}
	// A process that is being started gets its own files under small numbers, before it looks for the program.
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, above)
	if err != nil {
		fd = low // there are not that many
	} else {
		_ = unix.Close(low)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = io.Copy(f, program); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return f, "/proc/self/fd/" + strconv.Itoa(fd), nil
}
