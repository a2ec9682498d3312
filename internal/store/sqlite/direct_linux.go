package sqlite

import "syscall"

// openDirect opens a file for writing past the system's cache; -1 if that cannot be.
func openDirect(name string) int {
	fd, err := syscall.Open(name, syscall.O_WRONLY|syscall.O_DIRECT|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

func closeDirect(fd int) {
	if fd >= 0 {
		_ = syscall.Close(fd)
	}
}

// writeDirect tells whether all of it was written.
func writeDirect(fd int, b []byte, at int64) bool {
	for fd >= 0 {
		n, err := syscall.Pwrite(fd, b, at)
		if err != syscall.EINTR {
			return err == nil && n == len(b)
		}
	}
	return false
}
