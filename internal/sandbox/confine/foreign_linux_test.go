package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"reeve/internal/sandbox/confine"
)

// victim starts a process outside the sandbox that belongs to the user of the commands, as the server does if it is not
// root.
func victim(t *testing.T) *os.Process {
	t.Helper()
	c := exec.Command("sleep", "1000")
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for { // until it is no longer this program under another id
		if name, err := os.ReadFile("/proc/" + itoa(c.Process.Pid) + "/comm"); err != nil || string(name) == "sleep\n" {
			return c.Process
		}
		time.Sleep(time.Millisecond)
	}
}

// state is the part of a process's state that the tested calls could change.
func state(t *testing.T, pid int) string {
	t.Helper()
	limits, err := os.ReadFile("/proc/" + itoa(pid) + "/limits")
	if err != nil {
		t.Fatal(err)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	attr, err := unix.SchedGetAttr(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return fmt.Sprint(string(limits), set, attr.Policy, attr.Nice, attr.Priority, io)
}

// TestO05_ProcessesOutsideAreNotAffected runs a command that uses every call that takes a process id on a process of
// the same user outside. All calls fail, the process is unchanged, and a command can still use the calls on itself and
// its children.
func TestO05_ProcessesOutsideAreNotAffected(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		v := victim(t)
		before := state(t, v.Pid)
		got := b.probes(confine.Command{}, "others", itoa(v.Pid))
		for name, said := range got {
			own := strings.HasPrefix(name, "own ")
			if name != "end" && strings.HasPrefix(said, "YES") != own {
				t.Errorf("%s: %s", name, said)
			}
		}
		if len(got) < 30 {
			t.Errorf("only %d probes: %v", len(got), got)
		}
		if err := v.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("the process outside: %v", err)
		}
		if after := state(t, v.Pid); after != before {
			t.Errorf("the process outside was\n%s\nand is\n%s", before, after)
		}
	})
}

// others tries to change another process, and then itself.
func others(say func(string, error), args []string) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		panic(err)
	}
	call := func(name string, nr uintptr, a ...uintptr) {
		a = append(a, 0, 0, 0, 0, 0, 0)
		if _, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			say(name, errno)
			return
		}
		say(name, nil)
	}
	id := uintptr(pid)
	limit := unix.Rlimit{Cur: 1, Max: 1}
	same := unix.Rlimit{}
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &same)
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(0, &cpus)
	param := struct{ priority int32 }{}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 10}
	words := make([]uintptr, 64)
	at := uintptr(unsafe.Pointer(&words[0]))
	call("prlimit64", unix.SYS_PRLIMIT64, id, unix.RLIMIT_CPU, uintptr(unsafe.Pointer(&limit)), 0)
	call("prlimit64, high bits", unix.SYS_PRLIMIT64, 1<<32|id, unix.RLIMIT_CPU, uintptr(unsafe.Pointer(&limit)), 0)
	call("prlimit64 to read", unix.SYS_PRLIMIT64, id, unix.RLIMIT_CPU, 0, uintptr(unsafe.Pointer(&same)))
	call("sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, id, unsafe.Sizeof(cpus), uintptr(unsafe.Pointer(&cpus)))
	call("sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, id, unix.SCHED_IDLE, uintptr(unsafe.Pointer(&param)))
	call("sched_setparam", unix.SYS_SCHED_SETPARAM, id, uintptr(unsafe.Pointer(&param)))
	call("sched_setattr", unix.SYS_SCHED_SETATTR, id, uintptr(unsafe.Pointer(&attr)), 0)
	call("setpriority", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, id, 19)
	call("setpriority of its group", unix.SYS_SETPRIORITY, unix.PRIO_PGRP, id, 19)
	call("ioprio_set", unix.SYS_IOPRIO_SET, 1, id, 3<<13)
	call("ioprio_set of its group", unix.SYS_IOPRIO_SET, 2, id, 3<<13)
	call("kill", unix.SYS_KILL, id, uintptr(unix.SIGKILL))
	call("tkill", unix.SYS_TKILL, id, uintptr(unix.SIGKILL))
	call("tgkill", unix.SYS_TGKILL, id, id, uintptr(unix.SIGKILL))
	info := [16]int64{0: int64(unix.SIGKILL), 1: -1 & 0xffffffff}
	call("rt_sigqueueinfo", unix.SYS_RT_SIGQUEUEINFO, id, uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&info)))
	call("rt_tgsigqueueinfo", unix.SYS_RT_TGSIGQUEUEINFO, id, id, uintptr(unix.SIGKILL), uintptr(unsafe.Pointer(&info)))
	call("pidfd_open", unix.SYS_PIDFD_OPEN, id, 0)
	call("ptrace", unix.SYS_PTRACE, unix.PTRACE_SEIZE, id, 0, 0)
	call("process_vm_readv", unix.SYS_PROCESS_VM_READV, id, at, 1, at, 1, 0)
	call("process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, id, at, 1, at, 1, 0)
	call("process_madvise", unix.SYS_PROCESS_MADVISE, 0, at, 1, unix.MADV_COLD, 0)
	call("process_mrelease", unix.SYS_PROCESS_MRELEASE, 0, 0)
	call("kcmp", unix.SYS_KCMP, id, id, 0, 0, 0)
	call("move_pages", unix.SYS_MOVE_PAGES, id, 0, 0, 0, 0, 0)
	call("migrate_pages", unix.SYS_MIGRATE_PAGES, id, 0, 0, 0)
	call("setpgid", unix.SYS_SETPGID, id, id)
	call("get_robust_list", unix.SYS_GET_ROBUST_LIST, id, at, at+8)
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, at, id, 0, ^uintptr(0), 0)
	call("core scheduling", unix.SYS_PRCTL, unix.PR_SCHED_CORE, 2, id, 0, 0)
	call("unknown call", 499)
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	owner := [2]int32{1, int32(pid)}
	call("fcntl owner", unix.SYS_FCNTL, read.Fd(), unix.F_SETOWN, id)
	call("fcntl owner of another kind", unix.SYS_FCNTL, read.Fd(), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	_, _, _ = unix.RawSyscall(unix.SYS_FCNTL, read.Fd(), unix.F_SETSIG, uintptr(unix.SIGKILL))
	_, _, _ = unix.RawSyscall(unix.SYS_FCNTL, read.Fd(), unix.F_SETFL, unix.O_ASYNC)
	_, _ = write.Write([]byte("x"))

	call("own limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&same)), 0)
	call("own processors", unix.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(cpus), uintptr(unsafe.Pointer(&cpus)))
	call("own priority", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 19)
	call("own group's priority", unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0, 19)
	call("own disk priority", unix.SYS_IOPRIO_SET, 1, 0, 3<<13)
	child := exec.Command("/bin/sleep", "1000")
	err = child.Start()
	if err == nil {
		err = child.Process.Kill()
		_ = child.Wait()
	}
	say("own child", err)
}

// TestO05_UserPriorityIsProtected tries to lower the priority of all processes of the user, including the server.
func TestO05_UserPriorityIsProtected(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		v := victim(t)
		before := state(t, v.Pid)
		b.probes(confine.Command{}, "user")
		if after := state(t, v.Pid); after != before {
			t.Errorf("the process outside was\n%s\nand is\n%s", before, after)
		}
	})
}

// everybody tries to lower the priority of all processes of its user.
func everybody() {
	uid := uintptr(os.Getuid())
	for _, who := range []uintptr{0, uid} {
		_, _, _ = unix.RawSyscall(unix.SYS_SETPRIORITY, unix.PRIO_USER, who, 19)
		_, _, _ = unix.RawSyscall(unix.SYS_IOPRIO_SET, 3, who, 3<<13)
	}
}

// TestO05_ProgramsManageTheirOwnProcesses runs programs that manage processes of their own in the usual ways.
func TestO05_ProgramsManageTheirOwnProcesses(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		for line, want := range map[string]string{
			"sleep 1000 & kill $!; wait $!; echo $?":                                    "143\n",
			"sleep 1000 & kill -KILL %1 2>/dev/null || kill -KILL $!; wait $!; echo $?": "137\n",
			"timeout --foreground 0.1 sleep 1000; echo $?":                              "124\n",
			"nice -n 7 nice":                                           "",
			"ulimit -n 64; ulimit -n":                                  "64\n",
			"trap 'echo caught' USR1; kill -USR1 $$; echo on":          "caught\non\n",
			"printf 'all:\\n\\t@echo made\\n' > Makefile; make -s -j4": "made\n",
			"git --version | cut -c1-11":                               "git version\n",
			"python3 -c 'import subprocess as s; p=s.Popen([\"sleep\",\"9\"]); p.kill(); print(p.wait())'":   "-9\n",
			"python3 -c 'import os; os.nice(1); os.sched_setaffinity(0, os.sched_getaffinity(0)); print(1)'": "1\n",
		} {
			r := b.sh(line, confine.Limits{})
			if line == "nice -n 7 nice" {
				if n, err := strconv.Atoi(strings.TrimSpace(string(r.Stdout))); err != nil || n < 7 {
					t.Errorf("%s: %q %q", line, r.Stdout, r.Stderr)
				}
				continue
			}
			if string(r.Stdout) != want {
				t.Errorf("%s: exit %d, %q, %q", line, r.ExitCode, r.Stdout, r.Stderr)
			}
		}
	})
}

// TestO05_GroupsOfRootAreDropped runs a command like a server that is root and has supplementary groups.
func TestO05_GroupsOfRootAreDropped(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("only root can take further groups")
		return
	}
	each(t, func(t *testing.T, b *box) {
		before, err := syscall.Getgroups()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setgroups(before) }()
		if err := syscall.Setgroups([]int{4, 27, 1234}); err != nil {
			t.Fatal(err)
		}
		want := "1000\n"
		if b.mode == confine.Landlock {
			want = "65534\n"
		}
		if r := b.sh("id -G", confine.Limits{}); string(r.Stdout) != want {
			t.Errorf("its groups are %q, %q", r.Stdout, r.Stderr)
		}
	})
}
