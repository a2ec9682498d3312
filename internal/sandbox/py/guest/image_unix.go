//go:build unix

package guest

import (
	"os"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// Image is the initial memory of a frozen interpreter's machines. It is mapped copy-on-write into each machine, so a
// machine uses only the memory that it changes. A nil image is empty.
type Image struct {
	file *os.File
	size int
}

// Open opens the frozen interpreter at path and returns its image and its module. Both stay mapped until the process
// ends. Open returns ErrFile if the checksum is not sum.
func Open(path, sum string) (*Image, []byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Size() < 8 {
		return nil, nil, ErrFile
	}
	all, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	memory, module, err := splitFile(all, sum)
	return &Image{file: f, size: len(memory)}, module, err
}

// mappedMemory is a machine's memory outside the Go heap. It uses only the pages that the machine touches, does not
// move when it grows, and is unmapped at the end of the run.
type mappedMemory struct{ all []byte }

// newMemory returns memory of at most limit bytes that starts with the image. If it cannot be mapped, the memory is
// empty and cannot grow.
func (i *Image) newMemory(limit uint64) experimental.LinearMemory {
	all, err := unix.Mmap(-1, 0, int(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &mappedMemory{}
	}
	m := &mappedMemory{all}
	if i == nil {
		return m
	}
	if len(all) < i.size {
		m.Free()
		return m
	}
	if _, err := unix.MmapPtr(int(i.file.Fd()), 0, unsafe.Pointer(&all[0]), uintptr(i.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		m.Free()
	}
	return m
}

// Reallocate returns the memory with another size, or nil if size exceeds the limit.
func (m *mappedMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	return m.all[:size:len(m.all)]
}

// Free unmaps the memory.
func (m *mappedMemory) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // does not fail for a complete mapping
		m.all = nil
	}
}
