package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// The doctor reports a secret key that others can read. A key that is not a file is refused with what to do.
func TestSecretKey_IsPrivateAndAFile(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	key := filepath.Join(h.Dir(), "secret.key")
	if p := kit.GetHealth(h, "secrets"); !p.OK {
		t.Errorf("%+v", p)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if p := kit.GetHealth(h, "secrets"); p.OK || !strings.Contains(p.Detail, "other users can read secret.key") ||
		!strings.Contains(p.Hint, "chmod 600") {
		t.Errorf("%+v", p)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "secret.key"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := host.New(t.Context(),
		host.Config{Dir: dir, LogTo: t.Output()}); reeve.CodeOf(err) != reeve.Unavailable ||
		!strings.Contains(reeve.AsError(err).Hint, "secret.key") {
		t.Errorf("a folder: %v", err)
	}
}
