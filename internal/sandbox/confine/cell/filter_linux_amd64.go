package cell

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// archDeniedCalls extends deniedCalls by calls that only this architecture has.
var archDeniedCalls = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT,
	unix.SYS_CREATE_MODULE, unix.SYS__SYSCTL}

// archAttributeCalls extends attributeCalls by calls that only this architecture has.
var archAttributeCalls = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES,
	unix.SYS_FUTIMESAT}
