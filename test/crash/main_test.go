// Package crash_test runs the real binary in its own process: killed at every commit and effect, out of disk, behind
// PgBouncer, and with less confinement than it wants. An outside witness counts effects. The flag -crash.full kills at
// every point on both engines.
package crash_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests runs the tests with REEVE_TEST_BUILD set to a folder in which they build programs.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reeve-build")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Setenv(buildDir, dir)) // ordinary users run the programs too
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return m.Run()
}
