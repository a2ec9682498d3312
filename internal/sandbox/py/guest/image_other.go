//go:build !unix

package guest

import (
	"os"

	"github.com/tetratelabs/wazero/experimental"
)

// Image is the initial memory of a frozen interpreter's machines. A nil image is empty.
type Image struct{ bytes []byte }

// Open opens the frozen interpreter at path and returns its image and its module. It returns ErrFile if the checksum is
// not sum.
func Open(path, sum string) (*Image, []byte, error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	memory, module, err := split(all, sum)
	return &Image{memory}, module, err
}

// heapMemory is a machine's memory on the Go heap.
type heapMemory []byte

// newMemory returns memory of at most limit bytes that starts with the image.
func (i *Image) newMemory(limit uint64) experimental.LinearMemory {
	m := make(heapMemory, limit)
	if i != nil {
		copy(m, i.bytes)
	}
	return m
}

// Reallocate returns the memory with another size, or nil if size exceeds the limit.
func (m heapMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m)) {
		return nil
	}
	return m[:size]
}

// Free does nothing. The garbage collector frees the memory.
func (m heapMemory) Free() {}
