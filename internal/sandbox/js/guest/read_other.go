//go:build !linux

package guest

import "io"

// attend reads as in does.
func attend(in io.Reader) io.Reader { return in }
