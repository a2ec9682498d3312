package guest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOpenRejectsInvalidFiles opens files that are almost valid.
func TestOpenRejectsInvalidFiles(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFile(&b, make([]byte, 2*page), []byte("module")); err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	open := func(b []byte, sum string) ([]byte, error) {
		path := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, module, err := Open(path, sum)
		return module, err
	}
	good := b.Bytes()
	if module, err := open(good, sum(good)); err != nil || string(module) != "module" {
		t.Errorf("%q, %v", module, err)
	}
	odd := append(bytes.Clone(good[:len(good)-8]), 1, 0, 0, 0, 0, 0, 0, 0)
	long := append(bytes.Clone(good[:len(good)-8]), 0, 0, 0, 1, 0, 0, 0, 0)
	for name, b := range map[string][]byte{"empty": nil, "short": good[:7], "memory of no page": odd,
		"memory that is not there": long} {
		if _, err := open(b, sum(b)); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(good, sum(odd)); !errors.Is(err, ErrFile) {
		t.Errorf("another checksum: %v", err)
	}
	if _, _, err := Open(filepath.Join(t.TempDir(), "python"), sum(good)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
