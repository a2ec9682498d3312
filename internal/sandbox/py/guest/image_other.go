//go:build !unix

package guest

import (
	"os"

	"github.com/tetratelabs/wazero/experimental"
)

// Image is what the memory of a frozen interpreter's machines begins with. A nil image is empty.
type Image struct{ bytes []byte }

// Open opens the frozen interpreter with this checksum: its machines' memory, and its module.
func Open(path, sum string) (*Image, []byte, error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	memory, module, err := split(all, sum)
	return &Image{memory}, module, err
}

type slice []byte

// memory makes memory of up to limit bytes that begins with the image.
func (i *Image) memory(limit uint64) experimental.LinearMemory {
	m := make(slice, limit)
	if i != nil {
		copy(m, i.bytes)
	}
	return m
}

// Reallocate gives memory of another size, or nil beyond the limit.
func (m slice) Reallocate(size uint64) []byte {
	if size > uint64(len(m)) {
		return nil
	}
	return m[:size]
}

// Free leaves it to the collector.
func (m slice) Free() {}
