package main_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pythonWorkers counts the Python workers, alive, of the server with this data directory.
func pythonWorkers(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(b), "reeve-py-worker\x00"+dir) {
			n++
		}
	}
	return n
}

// TestI11_TheRealBinaryRunsPython and takes its workers with it when it goes, however it goes.
func TestI11_TheRealBinaryRunsPython(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	program, _ := programs(t)
	w := world{dir: t.TempDir()}
	run := func(c caller, code string) (out struct {
		ExitCode int    `json:"exit_code"`
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
	}, err error) {
		var r struct {
			Content string `json:"content"`
		}
		if err := c.do(ctx, "POST", "/api/agents/calc/calls", thing{"tool": "execute_python", "args": thing{"code": code}}, &r); err != nil {
			return out, err
		}
		return out, json.Unmarshal([]byte(r.Content), &out)
	}
	p, c := plain(ctx, t, program, w, "REEVE_PYTHON_TIME=10m")
	if err := c.do(ctx, "POST", "/api/agents", thing{"name": "calc"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := attach(ctx, c, "calc", "execute_python"); err != nil {
		t.Fatal(err)
	}
	if n := pythonWorkers(t, w.dir); n != 0 {
		t.Errorf("%d workers before anybody asked", n)
	}
	use := func() (endless chan error) {
		t.Helper()
		if r, err := run(c, "import json\nprint(json.dumps({'a': 6 * 7}))"); err != nil || r.Stdout != "{\"a\": 42}\n" {
			t.Fatalf("%+v, %v", r, err)
		}
		if r, err := run(c, "import os\nos.system('id')"); err != nil || r.ExitCode != 1 || !strings.Contains(r.Stderr, "'os' cannot be imported here") {
			t.Errorf("%+v, %v", r, err)
		}
		endless = make(chan error, 1)
		go func() {
			_, err := run(c, "while True: pass")
			endless <- err
		}()
		if err := poll(ctx, "a worker that runs and one that waits", func() (bool, error) { return pythonWorkers(t, w.dir) == 2, nil }); err != nil {
			t.Fatal(err)
		}
		return endless
	}
	gone := func() {
		t.Helper()
		if err := poll(ctx, "the workers to be gone", func() (bool, error) { return pythonWorkers(t, w.dir) == 0, nil }); err != nil {
			t.Error(err)
		}
	}
	endless := use()
	p.kill()
	if err := <-endless; err == nil {
		t.Error("an endless loop ended")
	}
	gone()
	p, c = plain(ctx, t, program, w, "REEVE_PYTHON_TIME=3s")
	endless = use()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	<-endless // that it was killed was told, or the connection was lost
	gone()
}
