//go:build linux

package confine_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// countsFiles reports whether a folder's file system counts its files.
func countsFiles(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Files > 0
}

// probe tries to escape and prints the outcome of each attempt: "no" with the reason, or "YES".
func probe(args []string) {
	say := func(name string, err error) {
		if err != nil {
			fmt.Printf("%s=no: %v\n", name, err)
			return
		}
		fmt.Printf("%s=YES\n", name)
	}
	number := func(name string, nr uintptr, a ...uintptr) {
		a = append(a, 0, 0, 0, 0, 0, 0)
		_, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			say(name, errno)
			return
		}
		say(name, nil)
	}
	open := func(name, path string, flags int) {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err == nil {
			_ = unix.Close(fd)
		}
		say(name, err)
	}
	switch args[0] {
	case "others":
		others(say, args[1:])
		fmt.Println("end=reached")
		return
	case "user":
		everybody()
		fmt.Println("end=reached")
		return
	}
	host, port, secret, path := args[0], args[1], args[2], args[3]
	pid, _ := strconv.Atoi(host)

	leaked := 0
	for fd := 3; fd < 64; fd++ {
		if link, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && link[0] == '/' {
			leaked++
		}
	}
	fmt.Printf("leaked files=%d\n", leaked)
	fmt.Printf("uid=%d\n", os.Getuid())

	dial := func(name, network, address string) {
		c, err := net.Dial(network, address)
		if err == nil {
			_, err = c.Write([]byte("x"))
			_ = c.Close()
		}
		say(name, err)
	}
	dial("tcp to the host", "tcp", "127.0.0.1:"+port)
	dial("udp to the host", "udp", "127.0.0.1:"+port)
	dial("udp to the world", "udp", "192.0.2.1:53")
	dial("unix socket of the host", "unix", path)
	dial("abstract socket of the host", "unix", "@reeve-confine-"+host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		_ = l.Close()
	}
	say("tcp listen", err)
	for name, family := range map[string]int{"vsock": unix.AF_VSOCK, "netlink": unix.AF_NETLINK,
		"packet": unix.AF_PACKET, "alg": unix.AF_ALG, "bluetooth": unix.AF_BLUETOOTH} {
		_, err := unix.Socket(family, unix.SOCK_RAW, 0)
		say("socket "+name, err)
	}
	_, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	say("raw socket", err)

	say("unshare user", unix.Unshare(unix.CLONE_NEWUSER))
	say("unshare mounts", unix.Unshare(unix.CLONE_NEWNS))
	say("mount", unix.Mount("t", "/tmp", "tmpfs", 0, ""))
	say("bind", unix.Mount("/", ".", "", unix.MS_BIND, ""))
	say("chroot", unix.Chroot("."))
	say("mknod", unix.Mknod("device", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))))
	say("setuid", unix.Setuid(0))
	say("ptrace", unix.PtraceAttach(pid))
	if pid > 1 {
		say("signal the host", unix.Kill(pid, 0))
	}
	buffer := make([]byte, 256)
	at := uintptr(unsafe.Pointer(&buffer[0]))
	number("io_uring", unix.SYS_IO_URING_SETUP, 4, at)
	number("bpf", unix.SYS_BPF, 0, at, 32)
	number("perf", unix.SYS_PERF_EVENT_OPEN, at, 0, ^uintptr(0), ^uintptr(0), 0)
	number("userfaultfd", unix.SYS_USERFAULTFD, 0)
	number("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(2), 0)
	number("memfd", unix.SYS_MEMFD_CREATE, at, 0)
	number("open by handle", unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), at, 0)
	number("process_vm_readv", unix.SYS_PROCESS_VM_READV, uintptr(pid), at, 1, at, 1, 0)
	number("pidfd_getfd", unix.SYS_PIDFD_GETFD, 0, 0, 0)
	flags := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
	number("clone3", unix.SYS_CLONE3, uintptr(unsafe.Pointer(&flags)), 64)
	number("clone user", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0)
	number("type on a terminal", unix.SYS_IOCTL, 0, unix.TIOCSTI, at)

	open("shadow", "/etc/shadow", unix.O_RDONLY)
	open("secret", secret, unix.O_RDONLY)
	open("secret, to empty it", secret, unix.O_WRONLY|unix.O_TRUNC)
	say("secret, truncated", unix.Truncate(secret, 0))
	open("disk", "/dev/vda", unix.O_RDONLY)
	open("memory", "/dev/mem", unix.O_RDONLY)
	open("core_pattern", "/proc/sys/kernel/core_pattern", unix.O_WRONLY)
	open("sysrq", "/proc/sysrq-trigger", unix.O_WRONLY)
	open("sys", "/sys/kernel/mm/transparent_hugepage/enabled", unix.O_WRONLY)
	open("own memory of the host", "/proc/"+host+"/mem", unix.O_RDWR)
	open("environment of the host", "/proc/"+host+"/environ", unix.O_RDONLY)
	open("command line of the host", "/proc/"+host+"/cmdline", unix.O_RDONLY)
	open("root of the host", "/proc/"+host+"/root/etc/shadow", unix.O_RDONLY)
	open("first process's root", "/proc/1/root/etc/shadow", unix.O_RDONLY)
	open("docker", "/var/run/docker.sock", unix.O_RDONLY)
	say("system folder", os.WriteFile("/usr/bin/reeve-probe", nil, 0o755))
	say("settings", os.WriteFile("/etc/reeve-probe", nil, 0o755))
	say("hard link", os.Link(secret, "hard"))
	say("move away", os.Rename(secret, "moved"))
	say("chmod outside", os.Chmod(secret, 0o777))
	say("set times outside", os.Chtimes(secret, time.Unix(1, 0), time.Unix(1, 0)))
	say("attribute outside", unix.Setxattr(secret, "user.x", []byte("x"), 0))
	_ = os.Symlink(secret, "soft")
	open("soft link", "soft", unix.O_RDONLY)
	open("soft link, to write", "soft", unix.O_WRONLY)
	say("own file", os.WriteFile("mine", []byte("x"), 0o600))
	say("temporary file", os.WriteFile(os.TempDir()+"/mine", []byte("x"), 0o600))
	if len(args) > 5 { // a worker with a folder
		book, folder := args[4], args[5]
		open("book", book, unix.O_RDONLY)
		open("book, to write", book, unix.O_WRONLY)
		open("beside the folder", folder+"/../secret", unix.O_RDONLY)
		say("file in the folder", os.WriteFile(folder+"/mine", nil, 0o600))
		say("remove the book", os.Remove(book))
		say("chmod the book", os.Chmod(book, 0o777))
		say("run a program", exec.Command("/bin/true").Run())
	}
	fmt.Println("end=reached")
}
