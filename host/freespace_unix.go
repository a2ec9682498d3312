//go:build linux || darwin

package host

import "golang.org/x/sys/unix"

// freeBytes returns the number of free bytes on the disk of a file that are available to ordinary users. It returns
// false if the number is not known, as for a file system without a size.
func freeBytes(file string) (free int64, isKnown bool) {
	var s unix.Statfs_t
	if unix.Statfs(file, &s) != nil || s.Blocks == 0 {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
