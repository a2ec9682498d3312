package sqlite

import (
	"syscall"
	"unsafe"
)

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

// reserve gives memory, in large pages if there are some: the system has less to do for each write that is made from it. It is given back as it was given.
func reserve(n int) (given, bytes []byte) {
	const large = 2 << 20
	given, err := syscall.Mmap(-1, 0, n+large, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil
	}
	before := -int(uintptr(unsafe.Pointer(&given[0]))) & (large - 1)
	bytes = given[before : before+n]
	_ = syscall.Madvise(bytes, syscall.MADV_HUGEPAGE)
	return given, bytes
}

func giveBack(given []byte) { _ = syscall.Munmap(given) }
