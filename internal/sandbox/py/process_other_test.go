//go:build !linux

package py_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// children returns the number of child processes.
func children(t testing.TB) int {
	t.Helper()
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid())).Output() // it fails when there are none
	return len(strings.Fields(string(out)))
}

func killChildren(t testing.TB) {
	t.Helper()
	_ = exec.Command("pkill", "-9", "-P", strconv.Itoa(os.Getpid())).Run()
}
