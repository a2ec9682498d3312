package host

import (
	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/js"
)

// ServeWorker turns this process into a worker that runs one script, or into the sandbox of one command, if a host
// started it to be one; then it does not return. A program that embeds Reeve calls it first thing in main: scripts and
// commands run in processes of their own, which are this program started again. Without it the program works, but runs
// neither.
func ServeWorker() {
	confine.Serve()
	js.ServeWorker()
}
