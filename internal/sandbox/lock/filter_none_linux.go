//go:build !amd64 && !arm64

package lock

// filter has no list of system calls for this kind of machine.
func filter() error { return nil }
