package httpapi_test

import (
	"os"
	"testing"

	"reeve/host"
)

func TestMain(m *testing.M) {
	host.ServeWorker() // scripts run in this binary, started again
	os.Exit(m.Run())
}
