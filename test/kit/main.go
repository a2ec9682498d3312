package kit

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"reeve/host"
)

// PythonCache is the folder in which the hosts of all tests unpack the Python interpreter, once per test binary.
// Main creates and removes it.
var PythonCache string

// Main runs the tests of a package whose hosts execute scripts. Call it from TestMain. It does not return.
func Main(m *testing.M) {
	host.ServeWorker() // sandbox workers are this test binary, started again
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	debug.SetGCPercent(400) // hundreds of short-lived hosts leave much garbage and little that lasts
	var err error
	if PythonCache, err = os.MkdirTemp("", "reeve-python"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(PythonCache) }()
	return m.Run()
}
