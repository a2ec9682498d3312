//go:build !linux || (!amd64 && !arm64)

package cell

import "os"

// Exec exits with an error, because there is no sandbox on this system.
func Exec() { os.Exit(126) }
