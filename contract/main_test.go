package contract_test

import (
	"os"
	"testing"

	"reeve/host"
)

// TestMain lets the host start this binary again as a sandbox, so that the catalogue is whole.
func TestMain(m *testing.M) {
	host.ServeWorker()
	os.Exit(m.Run())
}
