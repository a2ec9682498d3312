package host_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"reeve/host"
)

// PythonCache is where the hosts of all tests unpack and translate the Python interpreter, once for all of them.
var PythonCache string

func TestMain(m *testing.M) {
	host.ServeWorker() // scripts run in this binary, started again
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
