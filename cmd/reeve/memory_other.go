//go:build !linux

package main

import "runtime/debug"

// releaseStartupMemory returns garbage from startup to the operating system.
func releaseStartupMemory() { debug.FreeOSMemory() }
