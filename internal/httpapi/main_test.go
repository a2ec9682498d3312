package httpapi_test

import (
	"os"
	"runtime/debug"
	"testing"

	"reeve/host"
)

func TestMain(m *testing.M) {
	host.ServeWorker()      // scripts run in this binary, started again
	debug.SetGCPercent(400) // hundreds of short-lived hosts leave much garbage and little that lasts
	os.Exit(m.Run())
}
