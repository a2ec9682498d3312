// Command worker is the sandbox of one command, for a host that started it. It is the same that every program with
// host.ServeWorker in its main can be, without the rest of that program: it starts in a fraction of the time. make
// build puts it into the reeve binary.
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
	cell.Become()
}
