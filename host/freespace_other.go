//go:build !linux && !darwin

package host

// freeBytes returns the number of free bytes on the disk of a file. It is not known on this system.
func freeBytes(string) (free int64, isKnown bool) { return 0, false }
