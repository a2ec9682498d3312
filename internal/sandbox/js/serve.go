package js

import (
	"os"
	"sync/atomic"

	"reeve/internal/sandbox/js/guest"
)

// workerVariable is how a pool tells the process that it starts what to be.
const workerVariable = "REEVE_JS_WORKER"

// served notes that this program gives its children the chance to be workers, so that a pool may start it again.
var served atomic.Bool

// ServeWorker turns this process into a worker if a [Pool] started it to be one, and does not return then. Otherwise it
// returns at once. A program whose pools start the program itself calls it first thing in main, before flags are read
// or anything is opened: the worker must not be a second copy of the program.
func ServeWorker() {
	served.Store(true)
	if os.Getenv(workerVariable) == "" {
		return
	}
	guest.Serve(os.Stdin, os.Stdout)
	os.Exit(0)
}
