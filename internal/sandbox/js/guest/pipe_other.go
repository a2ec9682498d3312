//go:build !linux

package guest

import "io"

// attend leaves a worker's pipes as they are.
func attend(in io.Reader, out io.Writer) (io.Reader, io.Writer) { return in, out }
