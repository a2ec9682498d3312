package guest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
)

// A frozen interpreter is one file. It contains the initial memory of its machines, the WebAssembly module, and the
// length of the memory in eight bytes. The memory comes first so that it can be mapped.

// ErrFile means that a file is not a frozen interpreter, or not the expected one.
var ErrFile = errors.New("the interpreter's file is invalid")

// page is the size of a WebAssembly page. It is a multiple of every system's page size.
const page = 64 << 10

// WriteFile writes a frozen interpreter to w.
func WriteFile(w io.Writer, memory, module []byte) error {
	for _, p := range [][]byte{memory, module, binary.LittleEndian.AppendUint64(nil, uint64(len(memory)))} {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// splitFile returns the memory and the module of a frozen interpreter. It returns ErrFile if the checksum or the format
// is wrong.
func splitFile(file []byte, sum string) (memory, module []byte, err error) {
	if got := sha256.Sum256(file); hex.EncodeToString(got[:]) != sum || len(file) < 8 {
		return nil, nil, ErrFile
	}
	rest, tail := file[:len(file)-8], file[len(file)-8:]
	n := binary.LittleEndian.Uint64(tail)
	if n == 0 || n%page != 0 || n > uint64(len(rest)) {
		return nil, nil, ErrFile
	}
	return rest[:n], rest[n:], nil
}
