//go:build amd64 || arm64

package confine

import (
	"os"

	"reeve/internal/sandbox/confine/cell"
)

// Serve turns this process into a sandbox, and then into its command, if [Run] started it to be one; it does not return
// then. Otherwise it returns at once.
func Serve() {
	served.Store(true)
	if os.Args[0] == childName {
		cell.Become()
	}
}
