//go:build amd64 || arm64

package confine

import (
	"os"

	"golang.org/x/sys/unix"

	"reeve/internal/sandbox/confine/cell"
)

// closers are files to be closed in the end.
type closers []*os.File

func (c closers) close() {
	for _, f := range c {
		_ = f.Close()
	}
}

func (c *closers) pipe() (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err == nil {
		*c = append(*c, read, write)
	}
	return read, write, err
}

// memory gives a file without a name that holds b.
func (c *closers) memory(name string, b []byte) (*os.File, error) {
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

// NewMemoryFile makes a file in memory with room for so many bytes and no more, for a command's Keep.
func NewMemoryFile(size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("room", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, broken("memory", err)
	}
	f := os.NewFile(uintptr(fd), "room")
	if err = f.Truncate(size); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return nil, broken("memory", err)
	}
	return f, nil
}

// trees opens the workspace and what is read-only, if the server is root: its unprivileged child may not find the way
// there. If it cannot, the child tries by itself.
func (c *closers) trees(cmd Command) (list []*os.File) {
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
