package crash_test

import "syscall"

// killWithParent makes the kernel kill a child process when its parent dies, for example at a test timeout.
func killWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
