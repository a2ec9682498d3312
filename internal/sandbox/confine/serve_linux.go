//go:build amd64 || arm64

package confine

import (
	"os"

	"reeve/internal/sandbox/confine/cell"
)

// Serve sets up a sandbox and executes its command, if [Run] started this process as a sandbox. It then does not
// return. Otherwise it returns at once.
func Serve() {
	servesSandbox.Store(true)
	if os.Args[0] == childName {
		cell.Exec()
	}
}
