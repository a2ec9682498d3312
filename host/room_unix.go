//go:build linux || darwin

package host

import "golang.org/x/sys/unix"

// freeBytes is how many bytes are left on the disk that holds a file, without what is kept for root. False means that nobody
// can tell, as of a disk without a size.
func freeBytes(file string) (left int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(file, &s) != nil || s.Blocks == 0 {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
