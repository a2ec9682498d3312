//go:build !linux

package child

import (
	"errors"
	"io"
	"os"
)

// InMemory cannot be done here.
func InMemory(string, io.Reader) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

// Aside is the path by which to start a program: here, its own.
func Aside(path string, _ []*os.File) (_ string, done func(), err error) {
	return path, func() {}, nil
}
