//go:build !linux

package sqlite

// Only on Linux.
func openDirect(string) int               { return -1 }
func closeDirect(int)                     {}
func writeDirect(int, []byte, int64) bool { return false }

func reserve(n int) (given, bytes []byte) { return nil, make([]byte, n) }
func giveBack([]byte)                     {}
