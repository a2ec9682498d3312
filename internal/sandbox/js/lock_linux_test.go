package js_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"reeve/internal/sandbox/js"
)

// TestK23_WorkersAreLockedDown inspects a worker process while its script waits.
func TestK23_WorkersAreLockedDown(t *testing.T) {
	p := newPool(t, js.Config{Warm: -1})
	h := standard()
	h.functions["look"] = func(context.Context, []js.Arg) (any, error) {
		pid := onlyChild(t)
		status := slurp(t, pid, "status")
		for _, line := range []string{"Seccomp:\t2\n", "NoNewPrivs:\t1\n"} {
			contains(t, status, line)
		}
		contains(t, slurp(t, pid, "limits"), "Max core file size        0                    0")
		contains(t, slurp(t, pid, "limits"), "Max file size             0                    0")
		contains(t, slurp(t, pid, "oom_score_adj"), "1000")
		if fields := strings.Fields(slurp(t, pid, "stat")); fields[18] != "5" {
			t.Errorf("its priority is %s", fields[18])
		}
		for line := range strings.Lines(slurp(t, pid, "limits")) {
			if f := strings.Fields(line); strings.HasPrefix(line, "Max data size") {
				if n, err := strconv.Atoi(f[3]); err != nil || n > 1<<30 {
					t.Errorf("it may take %s bytes", f[3])
				}
			}
		}
		return nil, nil
	}
	if _, err := runWith(t, p, js.Script{Source: `await look()`}, js.Limits{}, h); err != nil {
		t.Error(err)
	}
}

func onlyChild(t *testing.T) string {
	t.Helper()
	b, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range b {
		text, err := os.ReadFile(f)
		if err == nil && len(strings.Fields(string(text))) == 1 {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatal("no worker process")
	return ""
}

func slurp(t *testing.T, pid, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("/proc", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
