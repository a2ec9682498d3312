// Command worker runs one script for the host process that started it. A program that calls host.ServeWorker can do
// the same, but this program needs less memory and starts faster. make build embeds it in the reeve binary.
package main

import (
	"os"

	"reeve/internal/sandbox/js/guest"
)

func main() { guest.Serve(os.Stdin, os.Stdout) }
