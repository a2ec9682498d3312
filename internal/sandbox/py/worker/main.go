// Command worker runs Python for a host that started it. It is a program of its own because of memory: the engine,
// linked into the server, would add eight megabytes to what an idle server holds, whether anybody uses Python or not.
// make build puts it into the reeve binary.
package main

import (
	"os"

	"reeve/internal/sandbox/py/guest"
)

func main() { guest.Serve(os.Stdin, os.Stdout, os.Args[1:]) }
