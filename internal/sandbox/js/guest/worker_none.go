//go:build !(((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x)))

package guest

import "io"

// Supported says whether there is an engine for this kind of machine.
const Supported = false

// Serve does nothing here.
func Serve(io.Reader, io.Writer) {}
