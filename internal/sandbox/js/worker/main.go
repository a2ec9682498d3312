// Command worker runs one script for a host that started it. It is the same worker that every program with
// host.ServeWorker in its main can be, without the rest of that program: a quarter of the memory and of the time to
// start. make build puts it into the reeve binary.
package main

import (
	"os"

	"reeve/internal/sandbox/js/guest"
)

func main() { guest.Serve(os.Stdin, os.Stdout) }
