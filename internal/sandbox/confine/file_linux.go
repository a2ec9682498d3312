//go:build amd64 || arm64

package confine

import (
	"os"

	"golang.org/x/sys/unix"

	"reeve/internal/sandbox/confine/cell"
)

// openFiles is a list of files that close closes together.
type openFiles []*os.File

func (c openFiles) close() {
	for _, f := range c {
		_ = f.Close()
	}
}

func (c *openFiles) pipe() (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err == nil {
		*c = append(*c, read, write)
	}
	return read, write, err
}

// memoryFile returns a file in memory that contains b, positioned at its start.
func (c *openFiles) memoryFile(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	*c = append(*c, f)
	if _, err = f.Write(b); err == nil {
		_, err = f.Seek(0, 0)
	}
	return f, err
}

// NewMemoryFile returns a file in memory of exactly size bytes, for [Command.Keep].
func NewMemoryFile(size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("room", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, startError("memory", err)
	}
	f := os.NewFile(uintptr(fd), "room")
	if err = f.Truncate(size); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return nil, startError("memory", err)
	}
	return f, nil
}

// openTrees opens the workspace and the read-only paths for the sandbox process, if the server is root and namespaces
// are used. The unprivileged process may not be able to reach them by path. If opening fails, openTrees returns nil and
// the process opens them itself.
func (c *openFiles) openTrees(cmd Command) (list []*os.File) {
	if os.Getuid() != 0 || cmd.Mode != Namespaces {
		return nil
	}
	for _, p := range append([]string{cmd.Root}, cmd.ReadOnly...) {
		fd, err := cell.OpenTree(p)
		if err != nil {
			return nil
		}
		f := os.NewFile(uintptr(fd), p)
		*c = append(*c, f)
		list = append(list, f)
	}
	return list
}
