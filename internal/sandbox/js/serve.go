package js

import (
	"os"
	"sync/atomic"

	"reeve/internal/sandbox/js/guest"
)

// workerVariable is the environment variable that a pool sets in its worker processes.
const workerVariable = "REEVE_JS_WORKER"

// servesWorkers is set once this program has called ServeWorker, so a pool may start the program as a worker.
var servesWorkers atomic.Bool

// ServeWorker runs this process as a worker and exits, if a [Pool] started the process as one. Otherwise it returns at
// once. A program whose pools start the program itself must call ServeWorker at the start of main, before it reads
// flags or opens files. Otherwise each worker would run the program again.
func ServeWorker() {
	servesWorkers.Store(true)
	if os.Getenv(workerVariable) == "" {
		return
	}
	guest.Serve(os.Stdin, os.Stdout)
	os.Exit(0)
}
