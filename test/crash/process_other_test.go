//go:build !linux

package crash_test

import "syscall"

func orphanless() *syscall.SysProcAttr { return nil }
