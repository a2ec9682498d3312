package httpapi_test

import (
	"os"
	"runtime/debug"
	"testing"

	"reeve/host"
)

func TestMain(m *testing.M) {
	host.ServeWorker()      // scripts run in a child process of this binary
	debug.SetGCPercent(400) // hundreds of short-lived hosts create much garbage and retain little
	os.Exit(m.Run())
}
