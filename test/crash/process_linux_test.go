package crash_test

import "syscall"

// orphanless makes the kernel end a child whose parent died, as a test that runs out of time does.
func orphanless() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
