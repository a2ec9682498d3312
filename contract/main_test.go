package contract_test

import (
	"os"
	"testing"

	"reeve/host"
)

// TestMain lets the host run this binary as a sandbox worker, so that the catalogue includes all tools.
func TestMain(m *testing.M) {
	host.ServeWorker()
	os.Exit(m.Run())
}
