// Command worker is the sandbox process of one command, started by a host process. A program that calls
// host.ServeWorker can do the same, but this program starts in a fraction of the time. make build embeds it in the
// reeve binary.
package main

import (
	"os"

	"reeve/internal/sandbox/confine/cell"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		_, _ = os.Stdout.WriteString(cell.Version())
		return
	}
	cell.Exec()
}
