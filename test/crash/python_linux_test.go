package crash_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// workersOf returns the ids of the running worker processes of a kind that a server has started. It finds none after
// the server is gone, so call it before.
func workersOf(t *testing.T, server int, kind string) (ids []string) {
	t.Helper()
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(server) + "/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range lists {
		b, _ := os.ReadFile(f) // the thread may have ended
		for _, id := range strings.Fields(string(b)) {
			if isWorker(id, kind) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func isWorker(id, kind string) bool {
	b, err := os.ReadFile("/proc/" + id + "/cmdline")
	return err == nil && strings.HasPrefix(string(b), "reeve-"+kind+"-worker\x00")
}

// TestI11_TheRealBinaryRunsPython checks that the server runs Python, and that its workers end with it, even if it is
// killed.
func TestI11_TheRealBinaryRunsPython(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	program, _ := programPaths(t)
	w := world{dir: t.TempDir()}
	run := func(c caller, code string) (out struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
	}, err error) {
		var r struct {
			Content string `json:"content"`
		}
		if err := c.do(ctx, "POST", "/api/agents/calc/calls",
			object{"tool": "execute_python", "args": object{"code": code}}, &r); err != nil {
			return out, err
		}
		return out, json.Unmarshal([]byte(r.Content), &out)
	}
	p, c := startPlain(ctx, t, program, w, "REEVE_PYTHON_TIMEOUT=10m")
	if err := c.do(ctx, "POST", "/api/agents", object{"name": "calc"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := attachTools(ctx, c, "calc", "execute_python"); err != nil {
		t.Fatal(err)
	}
	if ids := workersOf(t, p.cmd.Process.Pid, "py"); len(ids) != 0 {
		t.Errorf("workers before the first call: %v", ids)
	}
	var workers []string
	use := func() (endless chan error) {
		t.Helper()
		if r, err := run(c, "import json\nprint(json.dumps({'a': 6 * 7}))"); err != nil || r.Stdout != "{\"a\": 42}\n" {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err := run(c, "import os\nos.system('id')"); err != nil || r.ExitCode != 1 ||
			!strings.Contains(r.Stderr, "'os' cannot be imported here") {
			t.Errorf("%+v, %v", r, err)
		}
		endless = make(chan error, 1)
		go func() {
			_, err := run(c, "while True: pass")
			endless <- err
		}()
		if err := poll(ctx, "a worker that runs and one that waits", func() (bool, error) {
			workers = workersOf(t, p.cmd.Process.Pid, "py")
			return len(workers) == 2, nil
		}); err != nil {
			t.Fatal(err)
		}
		return endless
	}
	gone := func() {
		t.Helper()
		if err := poll(ctx, "the workers to be gone", func() (bool, error) {
			return !slices.ContainsFunc(workers, func(id string) bool { return isWorker(id, "py") }), nil
		}); err != nil {
			t.Error(err)
		}
	}
	endless := use()
	p.kill()
	if err := <-endless; err == nil {
		t.Error("an endless loop ended")
	}
	gone()
	p, c = startPlain(ctx, t, program, w, "REEVE_PYTHON_TIMEOUT=3s")
	endless = use()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	<-endless // an error says that the call was killed or that the connection was lost
	gone()
}
