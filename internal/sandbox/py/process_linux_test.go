package py_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reeve/internal/sandbox/py"
)

// childIDs returns the ids of the child processes that have not ended.
func childIDs(t testing.TB) (ids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // gone meanwhile
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

func children(t testing.TB) int { return len(childIDs(t)) }

func killChildren(t testing.TB) {
	t.Helper()
	for _, id := range childIDs(t) {
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	until(t, "them to die", func() bool {
		for _, id := range childIDs(t) {
			if b, err := os.ReadFile("/proc/" + strconv.Itoa(id) + "/stat"); err == nil &&
				!strings.Contains(string(b), ") Z ") {
				return false
			}
		}
		return true
	})
}

// TestI11_WorkersAreLockedDown inspects a worker process while it is idle and while it runs code.
func TestI11_WorkersAreLockedDown(t *testing.T) {
	inherited, err := syscall.Open("/etc/passwd", syscall.O_RDONLY, 0) // as if this process had been started with it
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	p := newPool(t, py.Config{Warm: -1})
	works(t, p)
	look := func() {
		ids := childIDs(t)
		if len(ids) != 1 {
			t.Fatalf("%d workers", len(ids))
		}
		slurp := func(name string) string {
			b, err := os.ReadFile("/proc/" + strconv.Itoa(ids[0]) + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		for _, line := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
			contains(t, slurp("status"), line)
		}
		for _, line := range []string{"Max core file size        0                    0",
			"Max file size             0                    0", "Max open files            16                   16"} {
			contains(t, slurp("limits"), line)
		}
		contains(t, slurp("oom_score_adj"), "1000")
		if env := slurp("environ"); strings.Count(env, "\x00") != 2 {
			t.Errorf("its variables are %q", env)
		}
		files, err := os.ReadDir("/proc/" + strconv.Itoa(ids[0]) + "/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			to, err := os.Readlink("/proc/" + strconv.Itoa(ids[0]) + "/fd/" + f.Name())
			// the last one is opened by the Go runtime
			mine := filepath.Base(to) == "python" || to == os.DevNull || strings.HasPrefix(to, "/sys/fs/cgroup/")
			if err == nil && strings.HasPrefix(to, "/") && !mine && f.Name() != "2" {
				t.Errorf("it holds %s open", to)
			}
		}
	}
	look()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.Run(ctx, py.Code{Owner: "w", Source: "while True: pass"}, py.Limits{Time: 5 * time.Minute})
	}()
	threads := "/proc/" + strconv.Itoa(childIDs(t)[0]) + "/task/*/stat"
	until(t, "the code to run", func() bool {
		files, err := filepath.Glob(threads)
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), ") R ") {
				return true
			}
		}
		return err != nil
	})
	look()
	cancel()
	<-ended
}

// TestI11_RunsLeaveNothingBehind counts files, processes and memory after many runs. With REEVE_LONG=1 it makes
// thousands of runs.
func TestI11_RunsLeaveNothingBehind(t *testing.T) {
	n := 150
	if os.Getenv("REEVE_LONG") != "" {
		n = 5000
	}
	p := newPool(t, py.Config{Warm: -1, Max: 1})
	sources := []string{"print(1)", "1/0", "import os", "x = bytearray(20 << 20)", "print('x' * 300_000)",
		"raise SystemExit(3)", "def f(): f()\nf()"}
	for _, s := range sources {
		run(t, p, s)
	}
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	resident := func() int {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(childIDs(t)[0]) + "/statm")
		if err != nil {
			t.Fatal(err)
		}
		pages, err := strconv.Atoi(strings.Fields(string(b))[1])
		if err != nil {
			t.Fatal(err)
		}
		return pages * os.Getpagesize() >> 20
	}
	files, memory, worker := open(), resident(), childIDs(t)[0]
	for i := range n {
		run(t, p, sources[i%len(sources)])
	}
	if ids := childIDs(t); len(ids) != 1 || n < 900 && ids[0] != worker {
		t.Errorf("workers %v; there was %d", ids, worker)
	}
	if now := open(); now > files {
		t.Errorf("%d files are open, %d were", now, files)
	}
	if now := resident(); now > memory+30 {
		t.Errorf("the worker holds %d MB, and held %d", now, memory)
	}
}
