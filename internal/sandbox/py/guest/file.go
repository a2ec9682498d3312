package guest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
)

// A frozen interpreter is one file: the memory that its machines begin with, then the module with their code, then how
// long the first is, in eight bytes. Memory comes first so that it can be mapped.

// ErrFile says that a file is not the frozen interpreter that it should be.
var ErrFile = errors.New("the file of the interpreter is not what it should be")

// page is how memory is counted, and what every system's own pages divide.
const page = 64 << 10

// WriteFile writes a frozen interpreter.
func WriteFile(w io.Writer, memory, module []byte) error {
	for _, p := range [][]byte{memory, module, binary.LittleEndian.AppendUint64(nil, uint64(len(memory)))} {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// split finds the two parts of a frozen interpreter, if it is the one with this checksum.
func split(file []byte, sum string) (memory, module []byte, err error) {
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
