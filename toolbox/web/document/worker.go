package document

import (
	"encoding/json"
	"io"
	"os"
	"runtime/debug"
	"time"

	"reeve/internal/sandbox/lock"
)

// serve is the main function of a worker process: it converts one document. If the process that started it ends, this
// one ends too, at the latest after the time limit.
func serve(in io.Reader, out io.Writer) {
	if err := lock.Restrict(convertMemory); err != nil {
		os.Exit(1)
	}
	debug.SetMemoryLimit(convertMemory * 3 / 4) // the collector works harder before the memory is used up
	lock.WatchHost(func() { os.Exit(1) })
	time.AfterFunc(2*convertTime, func() { os.Exit(1) })
	var s Source
	if json.NewDecoder(in).Decode(&s) != nil {
		os.Exit(1)
	}
	if json.NewEncoder(out).Encode(convert(s)) != nil {
		os.Exit(1)
	}
}
