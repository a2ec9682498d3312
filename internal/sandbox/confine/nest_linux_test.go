package confine_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestO06_FoldersThatNestDeeplyLeaveTheServerItsFiles runs a command in a workspace in which an earlier one nested more
// folders than the server may open files: a server that is root goes through all of them.
func TestO06_FoldersThatNestDeeplyLeaveTheServerItsFiles(t *testing.T) {
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
