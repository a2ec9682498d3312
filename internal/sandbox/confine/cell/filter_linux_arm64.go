package cell

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// refusedHere are calls that only this architecture has.
var refusedHere []uint32

// touchingHere is the rest of touching.
var touchingHere []uint32
