//go:build amd64 || arm64

package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// system is what every command may read: programs, libraries, and the few settings that they look for.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
	"/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/etc/nsswitch.conf", "/etc/localtime", "/etc/mime.types", "/etc/services", "/etc/protocols", "/nix/store"}

// names is what programs need besides to find other machines.
var names = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf"}

// devices hold nothing and lead nowhere.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// readable is what a job may read of the machine besides its workspace.
func readable(j Job) []string {
	if j.Network {
		return append(append([]string(nil), system...), names...)
	}
	return system
}

// part is a piece of the machine on its way into the command's world.
type part struct {
	path     string // where it goes
	fd       int    // what is mounted there; -1 for a link
	link     string
	dir      bool
	readOnly bool
	device   bool
}

// world replaces all that this process sees by a small file system of its own: the system's folders to read, the
// workspace to write, a fresh /proc and /tmp.
func world(j Job, at string) error {
	parts, err := collect(j, at)
	if err != nil {
		return err
	}
	if err := pivot("size=1m,mode=755"); err != nil {
		return err
	}
	if err := fresh(j); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.place(); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	_ = unix.Sethostname([]byte("sandbox"))
	return seal()
}

// pivot makes an empty file system the root, with the old one at /old.
func pivot(options string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount private", err)
	}
	// The new root is built on top of /proc, which is there on every machine, and takes the place of the old one.
	if err := unix.Mount("tmpfs", "/proc", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return os.NewSyscallError("mount root", err)
	}
	if err := os.Chdir("/proc"); err != nil {
		return err
	}
	if err := os.Mkdir("old", 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "old"); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return nil
}

// seal takes the old root away, and lets the new one be written no more.
func seal() error {
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := os.Remove("/old"); err != nil {
		return err
	}
	return os.NewSyscallError("mount read-only",
		unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""))
}

// collect takes hold of everything while its names still mean what they mean outside.
func collect(j Job, at string) ([]part, error) {
	var parts []part
	for _, p := range readable(j) {
		got, err := take(p)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		parts = append(parts, got)
	}
	for _, p := range devices {
		got, err := take(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		got.device, got.readOnly = true, false
		parts = append(parts, got)
	}
	own := append([]string{j.Root}, j.ReadOnly...)
	for i, p := range own {
		got, err := part{path: p, fd: TreeFile + i, dir: true, readOnly: i > 0}, error(nil)
		if j.Trees == 0 {
			got, err = take(p)
			got.readOnly = i > 0
		} else {
			var s unix.Stat_t
			err = unix.Fstat(got.fd, &s)
			got.dir = s.Mode&unix.S_IFMT == unix.S_IFDIR
		}
		if err != nil {
			return nil, fmt.Errorf("the workspace: %w", bare(err))
		}
		if i == 0 {
			got.path = at
		}
		parts = append(parts, got)
	}
	return parts, nil
}

// take takes hold of a file, a folder or a link.
func take(path string) (part, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return part{}, err
	}
	p := part{path: path, fd: -1, dir: info.IsDir(), readOnly: true}
	if info.Mode()&os.ModeSymlink != 0 && path != "/etc/resolv.conf" { // which often leads into /run
		p.link, err = os.Readlink(path)
		return p, err
	}
	p.fd, err = OpenTree(path)
	return p, os.NewSyscallError("open_tree", err)
}

func (p part) place() error {
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return err
	}
	if p.fd < 0 {
		return os.Symlink(p.link, p.path)
	}
	var err error
	if p.dir {
		err = os.MkdirAll(p.path, 0o755)
	} else {
		err = os.WriteFile(p.path, nil, 0o644)
	}
	if err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	if !p.device {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if p.readOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MoveMount(p.fd, "", unix.AT_FDCWD, p.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move_mount", err)
	}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, p.path, unix.AT_RECURSIVE, &attr))
}

// fresh makes what is the command's own: /proc, /tmp, /dev and who it is.
func fresh(j Job) error {
	for _, d := range []string{"/proc", "/tmp", "/dev", "/etc"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	// A container may hide parts of its /proc; the kernel then gives no fresh one, and the command does without.
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	if err != nil && !errors.Is(err, unix.EPERM) {
		return os.NewSyscallError("mount proc", err)
	}
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "nr_inodes=100k,mode=1777,size="+
		strconv.FormatInt(j.Temp, 10)); err != nil {
		return os.NewSyscallError("mount tmp", err)
	}
	home := j.At
	if home == "" {
		home = j.Root
	}
	for path, text := range map[string]string{"/etc/passwd": fmt.Sprintf("agent:x:%d:%d::%s:/bin/sh\n", Inside, Inside,
		home), "/etc/group": fmt.Sprintf("agent:x:%d:\n", Inside)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if !j.Network {
		if err := os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2", "/dev/shm": "/tmp"} {
		if err := os.Symlink(to, name); err != nil {
			return err
		}
	}
	return nil
}

// OpenTree takes a copy of what is mounted at a path, to be put elsewhere.
func OpenTree(path string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}
