package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/py"
)

// What Python must reach.
const (
	pythonCallLimit  = 25.0  // ms for a run with a warm worker
	pythonStartLimit = 400.0 // ms until a worker is ready, when the interpreter has been translated before
	pythonSizeLimit  = 120.0 // MB that a worker holds
	pythonEndLimit   = 5.5   // s until an endless loop is gone
)

// python measures the Python sandbox with the interpreter and the worker program that the reeve binary carries.
func python(ctx context.Context, c config, t *table) (err error) {
	if reason, hint := py.Available(); reason != "" {
		return fmt.Errorf("%s: %s", reason, hint)
	}
	worker, err := buildPythonWorker(ctx, c)
	if err != nil {
		return err
	}
	pool := func() *py.Pool {
		return py.New(py.Config{Dir: filepath.Join(c.dir, "python"), Binary: worker, Warm: -1, Stderr: os.Stderr, Confine: confine.Worker})
	}
	begin := time.Now()
	p := pool()
	if err := errors.Join(p.Start(ctx), p.Close()); err != nil {
		return err
	}
	t.add(row{Section: "python", Name: "first start ever, interpreter translated", Unit: "ms", Ours: msSince(begin)})
	var starts []float64
	for range pick(c, 10, 5) {
		p, begin := pool(), time.Now()
		err := p.Start(ctx)
		starts = append(starts, msSince(begin))
		if err := errors.Join(err, p.Close()); err != nil {
			return err
		}
	}
	pythonRow(t, "start of a worker", "ms", pythonStartLimit, starts)
	p = pool()
	defer func() { err = errors.Join(err, p.Close()) }()
	return errors.Join(pythonCalls(ctx, c, t, p), pythonSize(t), pythonEnd(ctx, t, p))
}

func msSince(begin time.Time) float64 { return float64(time.Since(begin).Microseconds()) / 1000 }

// pythonRow makes a row that a limit holds against.
func pythonRow(t *table, name, unit string, limit float64, got []float64) {
	t.add(row{Section: "python", Name: name, Unit: unit, Ours: least(got), OursMedian: median(got), Against: "limit", Peer: limit, Ratio: median(got) / limit, BestRatio: least(got) / limit, Target: 1, AtMost: true})
}

// buildPythonWorker builds the worker program as make build does.
func buildPythonWorker(ctx context.Context, c config) (string, error) {
	program := filepath.Join(c.dir, "pythonworker")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./internal/sandbox/py/worker")
	build.Dir, build.Stderr, build.Env = "..", os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	return program, build.Run()
}

// pythonCalls are runs one after the other on one worker: nearly nothing, and a little of everything.
func pythonCalls(ctx context.Context, c config, t *table, p *py.Pool) error {
	for _, k := range []struct{ name, source string }{
		{"run, print(1 + 1)", "print(1 + 1)"},
		{"run, JSON and a regular expression", "import json, re\nd = json.loads(json.dumps([{'k': i, 'v': str(i)} for i in range(200)]))\nprint(len(re.findall(r'\\d+', json.dumps(d))))"},
		{"run that fails", "def f(n): return 1 / n\nf(0)"},
	} {
		var ms []float64
		for range pick(c, 300, 60) {
			begin := time.Now()
			if r, err := p.Run(ctx, py.Code{Owner: "bench", Source: k.source}, py.Limits{}); err != nil || r.TimedOut {
				return fmt.Errorf("%s: timed out %t, %w", k.name, r.TimedOut, err)
			}
			ms = append(ms, msSince(begin))
		}
		pythonRow(t, k.name, "ms", pythonCallLimit, ms[1:]) // the first had to start the worker
	}
	return nil
}

// pythonSize looks at what the worker that waits holds now.
func pythonSize(t *table) error {
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // a thread that has ended
		}
		for _, id := range strings.Fields(string(b)) {
			line, _ := os.ReadFile("/proc/" + id + "/cmdline")
			if !strings.HasPrefix(string(line), "reeve-py-worker") {
				continue
			}
			mb, err := residentOf(id)
			if err != nil {
				return err
			}
			pythonRow(t, "worker after all these runs, resident", "MB", pythonSizeLimit, []float64{mb})
			return nil
		}
	}
	return errors.New("no Python worker waits")
}

// pythonEnd has code that never ends.
func pythonEnd(ctx context.Context, t *table, p *py.Pool) error {
	begin := time.Now()
	r, err := p.Run(ctx, py.Code{Owner: "bench", Source: "while True: pass"}, py.Limits{})
	if err != nil || !r.TimedOut {
		return fmt.Errorf("an endless loop ended with %d, %w", r.ExitCode, err)
	}
	pythonRow(t, "endless loop, until its process is gone", "s", pythonEndLimit, []float64{time.Since(begin).Seconds()})
	return nil
}
