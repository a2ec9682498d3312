//go:build !linux

package child

import (
	"errors"
	"io"
	"os"
)

// NewMemoryProgram returns [errors.ErrUnsupported] on this system.
func NewMemoryProgram(string, io.Reader) (*os.File, string, error) {
	return nil, "", errors.ErrUnsupported
}

// ProgramPath returns path unchanged on this system.
func ProgramPath(path string, _ []*os.File) (_ string, done func(), err error) {
	return path, func() {}, nil
}
