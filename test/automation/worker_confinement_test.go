package automation_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/js"
)

// workerInspector is a script host whose only function looks at the worker process from outside while the script waits.
type workerInspector func()

func (l workerInspector) Call(context.Context, string, []js.Arg) (json.RawMessage, error) {
	l()
	return nil, nil
}

func (l workerInspector) Log(string, string) {}

// A script runs in the worker program that the reeve binary contains. Its process has its own namespaces without files,
// network or other processes.
func TestK23_WorkersAreIsolated(t *testing.T) { // not parallel: it looks at the newest child process
	if mode, reason := confine.Available(); mode != confine.Namespaces {
		t.Log("no namespaces here: ", reason)
		return
	}
	program := filepath.Join(t.TempDir(), "worker")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program,
		"../../internal/sandbox/js/worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pool := js.New(js.Config{Binary: program, Warm: -1, Confine: confine.ConfineWorker})
	defer pool.Close()
	looked := false
	look := func() {
		looked = true
		pid := findNewestChild(t)
		for _, name := range []string{"user", "net", "mnt", "pid_for_children", "ipc", "uts"} {
			ours, _ := os.Readlink("/proc/self/ns/" + name)
			if theirs, err := os.Readlink("/proc/" + pid + "/ns/" + name); err != nil || theirs == ours {
				t.Errorf("namespace %s: %s, ours is %s (%v)", name, theirs, ours, err)
			}
		}
		list, err := os.ReadDir("/proc/" + pid + "/root")
		if err != nil || len(list) != 1 || list[0].Name() != "proc" {
			t.Errorf("it sees %v (%v)", list, err)
		}
		status, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"Seccomp:\t2\n", "Seccomp_filters:\t2\n", "NoNewPrivs:\t1\n",
			"CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n"} {
			if !strings.Contains(string(status), line) {
				t.Errorf("no %q in its status", line)
			}
		}
		if os.Getuid() == 0 && strings.Contains(string(status), "\nUid:\t0\t") {
			t.Error("it is root")
		}
	}
	v, err := pool.Run(t.Context(), js.Script{Source: "await look(); 41 + 1", Functions: []string{"look"}}, js.Limits{},
		workerInspector(look))
	if err != nil || string(v) != "42" || !looked {
		t.Errorf("%s %v", v, err)
	}
	if _, err := pool.Run(t.Context(), js.Script{Source: "let a = []; for (;;) a.push('x'.repeat(1e6))"}, js.Limits{},
		workerInspector(look)); err == nil {
		t.Error("it took all the memory there is")
	}
}

// findNewestChild returns the id of the child process that started last.
func findNewestChild(t *testing.T) (pid string) {
	t.Helper()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range lists {
		b, _ := os.ReadFile(f)
		for _, p := range strings.Fields(string(b)) {
			if len(p) > len(pid) || len(p) == len(pid) && p > pid {
				pid = p
			}
		}
	}
	if pid == "" {
		t.Fatal("no worker process")
	}
	return pid
}
