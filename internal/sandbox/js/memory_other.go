//go:build !linux

package js

import (
	"errors"
	"io"
	"os"
)

// inMemory cannot be done here: workers are copies of the whole program.
func inMemory(io.Reader) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }
