//go:build unix

package guest

import (
	"os"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// Image is what the memory of a frozen interpreter's machines begins with. It is mapped into each, so that a machine
// costs only what it changes. A nil image is empty.
type Image struct {
	file *os.File
	size int
}

// Open opens the frozen interpreter with this checksum: its machines' memory, and its module. Both stay mapped for as
// long as the process lives.
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
	memory, module, err := split(all, sum)
	return &Image{file: f, size: len(memory)}, module, err
}

// mapped is a machine's memory, outside of Go's heap: it is there at once, takes only what is touched, never moves as
// it grows, and is given back to the system when the run is over.
type mapped struct{ all []byte }

// memory makes memory of up to limit bytes that begins with the image.
func (i *Image) memory(limit uint64) experimental.LinearMemory {
	all, err := unix.Mmap(-1, 0, int(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return &mapped{}
	}
	m := &mapped{all}
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

// Reallocate gives memory of another size, or nil beyond the limit.
func (m *mapped) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	return m.all[:size:len(m.all)]
}

// Free gives it back.
func (m *mapped) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // it was mapped, whole, by us
		m.all = nil
	}
}
