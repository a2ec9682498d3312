package server_test

import (
	"os"
	"strings"
	"testing"
)

// listDir returns the names in a folder as text.
func listDir(t testing.TB, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}
