package cell

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// archDeniedCalls extends deniedCalls by calls that only this architecture has.
var archDeniedCalls []uint32

// archAttributeCalls extends attributeCalls by calls that only this architecture has.
var archAttributeCalls []uint32
