//go:build !(((linux || darwin || freebsd || windows) && (amd64 || arm64)) || (linux && (loong64 || ppc64le || riscv64 || s390x)))

package guest

import "io"

// Supported reports whether the engine supports this platform.
const Supported = false

// Serve does nothing on this platform.
func Serve(io.Reader, io.Writer) {}
