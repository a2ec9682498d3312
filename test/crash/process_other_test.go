//go:build !linux

package crash_test

import "syscall"

// killWithParent returns nil: only Linux can kill a child process when its parent dies.
func killWithParent() *syscall.SysProcAttr { return nil }
