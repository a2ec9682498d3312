//go:build !linux

package main

import "runtime/debug"

// trim gives back the garbage of starting.
func trim() { debug.FreeOSMemory() }
