package py_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reeve/internal/sandbox/py"
)

// The worker program, built from the current sources, and the cache directory that all tests share.
var workerPath, cacheDir string

func TestMain(m *testing.M) {
	if how := os.Getenv(lieVariable); how != "" {
		lie(how)
	}
	os.Exit(setUp(m))
}

func setUp(m *testing.M) int {
	if reason, hint := py.Available(); reason != "" {
		fmt.Fprintln(os.Stderr, reason+":", hint)
		return 1
	}
	dir, err := os.MkdirTemp("", "reeve-py-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	workerPath, cacheDir = filepath.Join(dir, "worker"), filepath.Join(dir, "cache")
	build := exec.Command("go", "build", "-o", workerPath, "./worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func newPool(t testing.TB, c py.Config) *py.Pool {
	t.Helper()
	if c.Binary == "" {
		c.Binary = workerPath
	}
	if c.Dir == "" {
		c.Dir = cacheDir
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	p := py.New(c)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// run runs code that must end by itself, with or without an error.
func run(t testing.TB, p *py.Pool, source string) py.Result {
	t.Helper()
	r, err := p.Run(context.Background(), py.Code{Owner: "w", Source: source}, py.Limits{Time: time.Minute})
	if err != nil || r.TimedOut {
		t.Fatalf("%.300s\n  gave %v, timed out %t", source, err, r.TimedOut)
	}
	return r
}

// prints runs code that must succeed and print exactly the given text.
func prints(t testing.TB, p *py.Pool, source, want string) {
	t.Helper()
	if r := run(t, p, source); r.ExitCode != 0 || string(r.Stdout) != want || len(r.Stderr) > 0 {
		t.Errorf("%.300s\n  printed %.1000q, not %.1000q; exit %d\n%.2000s", source, r.Stdout, want, r.ExitCode,
			r.Stderr)
	}
}

// fails runs code that must fail with the given exception.
func fails(t testing.TB, p *py.Pool, source, exception string) py.Result {
	t.Helper()
	r := run(t, p, source)
	if r.Exception == nil || r.Exception.Type != exception || r.ExitCode != 1 {
		t.Errorf("%.300s\n  gave %+v, exit %d, not %s\n%.1000s\n%.2000s", source, r.Exception, r.ExitCode, exception,
			r.Stdout, r.Stderr)
	}
	return r
}

// works checks that the pool still runs code.
func works(t testing.TB, p *py.Pool) {
	t.Helper()
	prints(t, p, "import json\nprint(json.dumps([1, None]))", "[1, null]\n")
}

func contains(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%.2000q does not say %q", text, part)
	}
}
