package crash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"reeve"
)

// withoutFilters is the command name under which this test binary executes another program that cannot install a
// system call filter. Its arguments are the error number that seccomp returns, and the program with its arguments.
const withoutFilters = "without-filters"

func init() {
	if filepath.Base(os.Args[0]) == withoutFilters {
		fmt.Fprintln(os.Stderr, startWithoutFilters(os.Args[1], os.Args[2:]))
		os.Exit(1)
	}
}

// startWithoutFilters executes a program for which the system call seccomp fails with an error number. It returns only
// on errors.
func startWithoutFilters(errno string, args []string) error {
	n, err := strconv.ParseUint(errno, 10, 16)
	if err != nil {
		return err
	}
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SECCOMP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(n)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread() // a filter applies to its thread and to the program it executes
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f))); e != 0 {
		return e
	}
	return syscall.Exec(args[0], args, os.Environ())
}

// TestO05_WithoutFiltersIsOff runs the real server on a kernel that accepts no system call filter. Commands and Python
// are disabled, the doctor reports the reason, and nothing runs without the filter.
func TestO05_WithoutFiltersIsOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(t.TempDir(), withoutFilters)
	if err := os.Symlink(self, wrapper); err != nil {
		t.Fatal(err)
	}
	for _, errno := range []syscall.Errno{unix.ENOSYS, unix.EINVAL} {
		for _, level := range []string{"", "landlock"} {
			w, err := sqliteEngine(t).newEmptyWorld()
			if err != nil {
				t.Fatal(err)
			}
			env := append(r.serverEnv(w), "REEVE_CONFINE="+level)
			p, err := r.family.start(env, wrapper, strconv.Itoa(int(errno)), r.program, "serve")
			if err != nil {
				t.Fatal(err)
			}
			defer p.kill()
			if err := p.waitUntilReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			c, err := w.owner(p, "default")
			if err != nil {
				t.Fatal(err)
			}
			if health := getSandboxHealth(t, c); health.OK || !strings.Contains(health.Detail, "seccomp") || health.Hint == "" {
				t.Errorf("%v: the doctor reports %+v", errno, health)
			}
			if err := newEngineer(t.Context(), c, object{}); err != nil && !hasStatus(err, 501) {
				t.Fatal(err)
			}
			try := object{"tool": "shell_exec", "args": object{"command": "true"}}
			err = c.do(t.Context(), "POST", "/api/agents/dev/calls", try, nil)
			if !hasStatus(err, 501) {
				t.Errorf("%v: a command: %v", errno, err)
			}
			var python reeve.Tool
			err = c.do(t.Context(), "GET", "/api/tools/execute_python", nil, &python)
			if err != nil || !strings.Contains(python.Broken, "seccomp") {
				t.Errorf("%v: execute_python: %v %q", errno, err, python.Broken)
			}
			p.kill()
		}
	}
}

// TestO05_CommandsHaveNoGroupsOfRoot runs the real server as root with supplementary groups, which its commands must
// not have.
func TestO05_CommandsHaveNoGroupsOfRoot(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Log("only root can start a server with groups of its choice")
		return
	}
	r := newRig(t)
	w, err := sqliteEngine(t).newEmptyWorld()
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.family.start(r.serverEnv(w), "setpriv", "--groups=4,27,1234", r.program, "serve")
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	if err := p.waitUntilReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := w.owner(p, "default")
	if err != nil {
		t.Fatal(err)
	}
	if health := getSandboxHealth(t, c); !strings.Contains(health.Detail, "namespaces, Landlock") {
		t.Log("no namespaces here: ", health.Detail)
		return
	}
	if err := newEngineer(t.Context(), c, object{}); err != nil {
		t.Fatal(err)
	}
	var res reeve.Result
	groups := object{"tool": "shell_exec", "args": object{"command": "id -G"}}
	if err := c.do(t.Context(), "POST", "/api/agents/dev/calls", groups, &res); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(res.Content, `"stdout":"1000\n"`) {
		t.Error(res.Content)
	}
}

// TestO06_NextServerCleansUpAfterACrash kills the real server while it runs a command without namespaces, whose
// processes survive. The next server ends them and removes the temporary files.
func TestO06_NextServerCleansUpAfterACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	p, c, w := r.startOrdinaryWith(t, "REEVE_CONFINE=landlock", "TMPDIR="+temp)
	if health := getSandboxHealth(t, c); !health.OK {
		t.Log("no confinement here: ", health.Detail)
		return
	}
	if err := newEngineer(t.Context(), c, object{}); err != nil {
		t.Fatal(err)
	}
	mark := "7" + strconv.Itoa(os.Getpid()) // a sleep time that identifies the process
	var calls sync.WaitGroup
	calls.Go(func() { // gets no response
		command := "sleep " + mark + " & head -c 1M /dev/zero > $TMPDIR/f; sleep " + mark
		_ = c.do(t.Context(), "POST", "/api/agents/dev/calls",
			object{"tool": "shell_exec", "args": object{"command": command, "timeout_ms": 600000}}, nil)
	})
	until := func(what string, ok func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if err := poll(ctx, what, func() (bool, error) { return ok(), nil }); err != nil {
			t.Fatal(err)
		}
	}
	folders := func() []string {
		list, _ := filepath.Glob(temp + "/reeve-command-*/tmp/f")
		return list
	}
	sleepers := func() (n int) {
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range list {
			if line, _ := os.ReadFile(file); strings.HasPrefix(string(line), "sleep\x00"+mark+"\x00") {
				n++
			}
		}
		return n
	}
	until("the command begins", func() bool { return len(folders()) == 1 && sleepers() == 2 })
	p.kill()
	calls.Wait()
	if len(folders()) != 1 || sleepers() == 0 {
		t.Fatal("nothing was left, so that nothing is tested")
	}
	args := []string{"serve"}
	program := r.program
	if os.Getuid() == 0 {
		program, args = "setpriv", append([]string{"--reuid=1234", "--regid=1234", "--clear-groups", r.program},
			args...)
	}
	again, err := r.family.start(append(r.serverEnv(w), "REEVE_CONFINE=landlock", "TMPDIR="+temp), program, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer again.kill()
	if err := again.waitUntilReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(temp + "/reeve-command-*"); len(left) > 0 {
		t.Errorf("remaining processes: %v", left)
	}
	until("its processes end", func() bool { return sleepers() == 0 })
}
