package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// trim gives back what only starting needed: the garbage of it, and the pages of the program's own file that it touched
// on the way. Most of a server's code runs once, to register routes, tools and schemas; an idle server needs a fifth of
// it. What is needed again is read again, from the page cache. Nothing depends on it, so nothing is said when it cannot
// be done.
func trim() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uintptr
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil ||
			!strings.HasSuffix(lines.Text(), " "+self) {
			continue
		}
		if !strings.Contains(mode, "w") { // what may be written is not in the file any more
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
