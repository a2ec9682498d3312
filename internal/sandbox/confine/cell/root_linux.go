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

// systemPaths are the paths that every command may read: programs, libraries and the settings that they need.
var systemPaths = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
	"/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/etc/nsswitch.conf", "/etc/localtime", "/etc/mime.types", "/etc/services", "/etc/protocols", "/nix/store"}

// networkPaths are the additional paths that programs need to resolve host names.
var networkPaths = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf"}

// devices are the device files that every command may use.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// readablePaths returns the system's paths that a job may read.
func readablePaths(j Job) []string {
	if j.Network {
		return append(append([]string(nil), systemPaths...), networkPaths...)
	}
	return systemPaths
}

// mount is a file, folder or symbolic link to be placed in the private root.
type mount struct {
	path     string // path in the private root
	fd       int    // open tree to mount there; -1 for a symbolic link
	link     string // target of the symbolic link
	dir      bool
	readOnly bool
	device   bool
}

// buildRoot replaces the file system of this process by a private one: the system's folders read-only, the workspace at
// path at, and a private /proc and /tmp.
func buildRoot(j Job, at string) error {
	parts, err := collectMounts(j, at)
	if err != nil {
		return err
	}
	if err := pivotRoot("size=1m,mode=755"); err != nil {
		return err
	}
	if err := createPrivateFiles(j); err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.attach(); err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
	}
	_ = unix.Sethostname([]byte("sandbox"))
	return sealRoot()
}

// pivotRoot makes an empty file system the root. The old root is then at /old.
func pivotRoot(options string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount private", err)
	}
	// The new root is mounted on /proc first, because that folder exists on every machine.
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

// sealRoot unmounts the old root and makes the new one read-only.
func sealRoot() error {
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := os.Remove("/old"); err != nil {
		return err
	}
	return os.NewSyscallError("mount read-only",
		unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""))
}

// collectMounts opens all files and folders of the private root, before the root changes.
func collectMounts(j Job, at string) ([]mount, error) {
	var parts []mount
	for _, p := range readablePaths(j) {
		got, err := openMount(p)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		parts = append(parts, got)
	}
	for _, p := range devices {
		got, err := openMount(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		got.device, got.readOnly = true, false
		parts = append(parts, got)
	}
	own := append([]string{j.Root}, j.ReadOnly...)
	for i, p := range own {
		got, err := mount{path: p, fd: TreeFile + i, dir: true, readOnly: i > 0}, error(nil)
		if j.Trees == 0 {
			got, err = openMount(p)
			got.readOnly = i > 0
		} else {
			var s unix.Stat_t
			err = unix.Fstat(got.fd, &s)
			got.dir = s.Mode&unix.S_IFMT == unix.S_IFDIR
		}
		if err != nil {
			return nil, fmt.Errorf("the workspace: %w", withoutPath(err))
		}
		if i == 0 {
			got.path = at
		}
		parts = append(parts, got)
	}
	return parts, nil
}

// openMount opens a file, folder or symbolic link to be attached at the same path.
func openMount(path string) (mount, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return mount{}, err
	}
	p := mount{path: path, fd: -1, dir: info.IsDir(), readOnly: true}
	if info.Mode()&os.ModeSymlink != 0 && path != "/etc/resolv.conf" { // often a link into /run, so follow it
		p.link, err = os.Readlink(path)
		return p, err
	}
	p.fd, err = OpenTree(path)
	return p, os.NewSyscallError("open_tree", err)
}

// attach creates the mount point or symbolic link at p.path, and mounts the open tree there.
func (p mount) attach() error {
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

// createPrivateFiles creates the command's own /proc, /tmp and /dev, and its entries in /etc/passwd and /etc/group.
func createPrivateFiles(j Job) error {
	for _, d := range []string{"/proc", "/tmp", "/dev", "/etc"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	// In a container that hides parts of /proc, the kernel refuses to mount a new one. The command then has none.
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
	for path, text := range map[string]string{"/etc/passwd": fmt.Sprintf("agent:x:%d:%d::%s:/bin/sh\n", InsideID,
		InsideID,
		home), "/etc/group": fmt.Sprintf("agent:x:%d:\n", InsideID)} {
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

// OpenTree returns a descriptor of a copy of the mounts at a path, to be mounted elsewhere.
func OpenTree(path string) (int, error) {
	return unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}
