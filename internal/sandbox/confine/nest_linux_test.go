package confine_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestO06_DeepFoldersDoNotExhaustOpenFiles runs a command in a workspace in which an earlier command nested more
// folders than the server may open. A server that is root visits them to change their owner.
func TestO06_DeepFoldersDoNotExhaustOpenFiles(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		if err := os.MkdirAll(b.root+strings.Repeat("/d", 1000), 0o755); err != nil {
			t.Fatal(err)
		}
		var was syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }()
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 700, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		b.works()
	})
}
