// Package guest runs inside a script's worker process. It contains the JavaScript engine and the loop that runs one
// script in it.
//
// [Serve] is the main function of a worker. Type engine wraps QuickJS, type worker holds the state of the one run, and
// type source maps positions in translated code back to the script. File prelude.js defines the script's globals.
//
// The package imports as little as possible, because it is built as a small program of its own and two hundred workers
// may be alive at once.
package guest

import (
	"embed"
	"time"

	"reeve/internal/sandbox/js/wire"
)

// Grace is how long a worker may take to report that it exceeded its time limit before the host kills it.
const Grace = 500 * time.Millisecond

// ExitComputing is the exit code of a worker that computed for too long inside a built-in, which it cannot interrupt.
const ExitComputing = 90

//go:embed *.go prelude.js
var files embed.FS

// Version returns the version of the worker, a hash of this package's sources. A host uses only workers of its own
// version.
func Version() string { return wire.Version("js", files, ".") }
