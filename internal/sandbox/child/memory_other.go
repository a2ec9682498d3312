//go:build !linux

package child

import (
	"errors"
	"io"
	"os"
)

// InMemory cannot be done here.
func InMemory(string, io.Reader) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
