// Command worker runs Python for the host process that started it. It is a separate program because the engine, linked
// into the server, would add 8 MB to the memory of an idle server, even if Python is never used. make build embeds it
// in the reeve binary.
package main

import (
	"os"

	"reeve/internal/sandbox/py/guest"
)

func main() { guest.Serve(os.Stdin, os.Stdout, os.Args[1:]) }
