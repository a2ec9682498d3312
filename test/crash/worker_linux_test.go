package crash_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestI11_K23_WorkersAreConfined inspects the processes in which the real server runs Python and scripts, while they
// run an endless loop: with and without namespaces, as the user of this test and as an ordinary user. When the server
// is killed, the processes end.
func TestI11_K23_WorkersAreConfined(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r := newRig(t)
	for _, user := range []string{"own", "ordinary"} {
		cache := t.TempDir() // shared by both levels, so that the interpreter is compiled once
		for _, level := range []string{"", "landlock"} {
			t.Run(user+level, func(t *testing.T) {
				env := []string{"REEVE_PYTHON_TIMEOUT=10m", "REEVE_CONFINE=" + level, "REEVE_PYTHON_CACHE=" + cache}
				var p *process
				var c caller
				switch {
				case user == "own":
					p, c = startPlain(ctx, t, r.program, world{dir: t.TempDir()}, env...)
				case os.Getuid() != 0:
					return // the same as the first case
				default:
					for dir := cache; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
						if err := os.Chmod(dir, 0o755); err != nil {
							t.Fatal(err)
						}
					}
					if err := os.Chown(cache, 1234, 1234); err != nil {
						t.Fatal(err)
					}
					p, c, _ = r.startOrdinaryWith(t, env...)
				}
				confinedWorkers(ctx, t, p, c)
			})
		}
	}
}

// confinedWorkers makes a server run two endless loops, checks their processes, and kills the server.
func confinedWorkers(ctx context.Context, t *testing.T, p *process, c caller) {
	t.Helper()
	health := getSandboxHealth(t, c)
	if !health.OK {
		t.Log("no confinement here: ", health.Detail)
		return
	}
	namespaces := strings.Contains(health.Detail, "namespaces, Landlock")
	for _, step := range []struct {
		path string
		body object
	}{
		{"/api/agents", object{"name": "calc"}},
		{"/api/tools", object{"id": "spin", "kind": "script", "description": "Spins.", "effect": "read",
			"timeout_ms": 300000, "parameters": object{"type": "object"}, "spec": object{"source": "for (;;);"}}},
		{"/api/agents/calc/tools", object{"tool_id": "spin"}},
		{"/api/agents/calc/tools", object{"tool_id": "execute_python"}},
	} {
		if err := c.do(ctx, "POST", step.path, step.body, nil); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	for _, call := range []object{{"tool": "spin", "args": object{}},
		{"tool": "execute_python", "args": object{"code": "while True: pass"}}} {
		go func() { ended <- c.do(ctx, "POST", "/api/agents/calc/calls", call, nil) }()
	}
	var all []string
	for _, kind := range []string{"js", "py"} {
		var busy string
		if err := poll(ctx, kind+" to run", func() (bool, error) {
			ids := workersOf(t, p.cmd.Process.Pid, kind)
			// A busy process is confined already; before that, it only starts.
			i := slices.IndexFunc(ids, func(id string) bool {
				status, _ := os.ReadFile("/proc/" + id + "/status")
				return busyTime(id) > 20 && strings.Contains(string(status), "Seccomp_filters:\t2\n")
			})
			if i >= 0 {
				busy, all = ids[i], append(all, ids...)
			}
			return i >= 0, nil
		}); err != nil {
			t.Fatal(err)
		}
		lookAt(t, kind, busy, namespaces)
	}
	p.kill()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("an endless loop ended")
		}
	}
	if err := poll(ctx, "the workers to be gone", func() (bool, error) {
		return !slices.ContainsFunc(all, func(id string) bool { return isWorker(id, "js") || isWorker(id, "py") }), nil
	}); err != nil {
		t.Error(err)
	}
}

// busyTime returns the processor time of a process in hundredths of a second.
func busyTime(id string) int {
	b, err := os.ReadFile("/proc/" + id + "/stat")
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if err != nil || len(f) < 13 {
		return 0
	}
	n, _ := strconv.Atoi(f[11]) // always a number
	m, _ := strconv.Atoi(f[12])
	return n + m
}

// lookAt checks the confinement of a worker process.
func lookAt(t *testing.T, kind, id string, namespaces bool) {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile("/proc/" + id + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, name := range []string{"user", "net", "mnt", "pid_for_children", "ipc", "uts", "cgroup"} {
		ours, _ := os.Readlink("/proc/self/ns/" + name)
		if theirs, err := os.Readlink("/proc/" + id + "/ns/" + name); err != nil || (theirs == ours) == namespaces {
			t.Errorf("%s: namespace %s is %s, ours is %s (%v)", kind, name, theirs, ours, err)
		}
	}
	if namespaces {
		want := []string{"proc"}
		if kind == "py" {
			want = []string{"folder", "proc"}
		}
		var got []string
		list, err := os.ReadDir("/proc/" + id + "/root")
		for _, e := range list {
			got = append(got, e.Name())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: it sees %v (%v)", kind, got, err)
		}
		if err := os.WriteFile("/proc/"+id+"/root/folder/mine", nil, 0o600); err == nil {
			t.Errorf("%s: its directory is writable", kind)
		}
	}
	status := read("status")
	want := []string{"Seccomp:\t2\n", "Seccomp_filters:\t2\n", "NoNewPrivs:\t1\n", "CapInh:\t0000000000000000\n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n", "CapAmb:\t0000000000000000\n"}
	if namespaces {
		want = append(want, "CapBnd:\t0000000000000000\n")
	}
	for _, line := range want {
		if !strings.Contains(status, line) {
			t.Errorf("%s: no %q in its status\n%s", kind, line, status)
		}
	}
	if strings.Contains(status, "\nUid:\t0\t") || strings.Contains(status, "\nGid:\t0\t") {
		t.Errorf("%s: it runs as root", kind)
	}
	limits := read("limits")
	for _, line := range []string{"Max core file size        0                    0",
		"Max file size             0                    0", "Max open files            16                   16"} {
		if !strings.Contains(limits, line) {
			t.Errorf("%s: its limits are\n%s", kind, limits)
		}
	}
	if read("oom_score_adj") != "1000\n" {
		t.Errorf("%s: the kernel does not kill it first when memory is short", kind)
	}
	files, err := os.ReadDir("/proc/" + id + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		to, err := os.Readlink("/proc/" + id + "/fd/" + f.Name())
		mine := filepath.Base(to) == "python" || to == os.DevNull
		if err == nil && strings.HasPrefix(to, "/") && !mine {
			t.Errorf("%s: it has %s open", kind, to)
		}
	}
}
