package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseStartupMemory returns memory to the operating system that only startup needed: garbage, and the pages of the
// executable. Most of the server's code runs once, to register routes, tools and schemas; an idle server needs a fifth
// of it. The kernel reloads pages from the page cache when they are used again. Errors are ignored, because nothing
// depends on the result.
func releaseStartupMemory() {
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
		if !strings.Contains(mode, "w") { // a writable page may differ from the file
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		}
	}
}
