//go:build !amd64 && !arm64

package lock

// installFilter does nothing. There is no list of system calls for this architecture.
func installFilter() error { return nil }

// Available returns nil, because [Restrict] installs no filter on this architecture.
func Available() error { return nil }
