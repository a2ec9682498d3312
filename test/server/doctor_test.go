package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The doctor reports a data directory that was moved away while the server runs.
func TestDoctor_ReportsAMissingDataDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	h := reevetest.StartWith(t, host.Config{Dir: dir, Database: storetest.PostgresURL(t)})
	if d := kit.GetHealth(h, "data directory"); !d.OK {
		t.Fatalf("before: %+v", d)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	d := kit.GetHealth(h, "data directory")
	if d.OK || d.Detail != dir+" does not exist: it was moved or removed while the server was running" ||
		!strings.Contains(d.Hint, "move it back") {
		t.Errorf("the doctor says %+v", d)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if d := kit.GetHealth(h, "data directory"); !d.OK {
		t.Errorf("afterwards: %+v", d)
	}
}
