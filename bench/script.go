package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reeve/internal/sandbox/confine"
	"reeve/internal/sandbox/js"
)

// What scripts must reach.
const (
	startLimit   = 10.0  // ms from asking for a run until the script's first call arrives, with a warm worker
	callLimit    = 60.0  // µs for an awaited call of the host and back
	aliveLimit   = 500.0 // MB for all workers together
	aliveScripts = 200
)

// script measures the JavaScript sandbox with the worker program that the reeve binary carries. The reeve binary itself as
// worker, which serves where that program is missing, is beside it and has no target.
func script(ctx context.Context, c config, t *table) error {
	small, err := buildWorker(ctx, c)
	if err != nil {
		return err
	}
	whole, err := buildServer(ctx, c)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		program, note string
		target        float64
	}{{small, "", 1}, {whole, ", whole program as worker", 0}} {
		pool := js.New(js.Config{Binary: w.program, Warm: 1, Max: aliveScripts, Confine: confine.Worker})
		m := scripts{pool: pool, note: w.note, target: w.target}
		for _, measure := range []func(context.Context, config, *table) error{m.start, m.calls, m.alive} {
			if err := measure(ctx, c, t); err != nil {
				return errors.Join(err, pool.Close())
			}
		}
		if err := pool.Close(); err != nil {
			return err
		}
	}
	return nil
}

// buildWorker builds the small worker program as make build does.
func buildWorker(ctx context.Context, c config) (string, error) {
	program := filepath.Join(c.dir, "worker")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./internal/sandbox/js/worker")
	build.Dir, build.Stderr, build.Env = "..", os.Stderr, append(os.Environ(), "CGO_ENABLED=0")
	return program, build.Run()
}

// scripts measures one kind of worker.
type scripts struct {
	pool   *js.Pool
	note   string
	target float64
}

// add makes a row of times or sizes that a limit holds against.
func (m scripts) add(t *table, name, unit string, limit float64, got []float64) {
	r := row{Section: "script", Name: name + m.note, Unit: unit, Ours: least(got), Against: "limit", Peer: limit, Ratio: median(got) / limit, Target: m.target, AtMost: true}
	if len(got) > 1 {
		r.OursMedian, r.BestRatio = median(got), least(got)/limit
	}
	t.add(r)
}

// scriptHost answers every call with f.
type scriptHost func(context.Context) (json.RawMessage, error)

func (f scriptHost) Call(ctx context.Context, _ string, _ []js.Arg) (json.RawMessage, error) {
	return f(ctx)
}
func (f scriptHost) Log(string, string) {}

func (m scripts) start(ctx context.Context, c config, t *table) error {
	for _, l := range []struct {
		name, source string
		language     js.Language
	}{
		{"start of a run, JavaScript", "await ping({a: 1})", js.JavaScript},
		{"start of a run, TypeScript", "interface A { a: number }; const a: A = {a: 1}; await ping(a)", js.TypeScript},
	} {
		var ms []float64
		for range pick(c, 50, 15) {
			if err := m.pool.Warm(); err != nil {
				return err
			}
			begin := time.Now()
			_, err := m.pool.Run(ctx, js.Script{Source: l.source, Language: l.language, Functions: []string{"ping"}}, js.Limits{}, scriptHost(func(context.Context) (json.RawMessage, error) {
				ms = append(ms, float64(time.Since(begin).Microseconds())/1000)
				return nil, nil
			}))
			if err != nil {
				return err
			}
		}
		m.add(t, l.name, "ms", startLimit, ms)
	}
	return nil
}

func (m scripts) calls(ctx context.Context, c config, t *table) error {
	const calls = 2000
	var us []float64
	for range c.rounds {
		var n atomic.Int64
		var begin time.Time
		_, err := m.pool.Run(ctx, js.Script{Source: fmt.Sprintf("for (let i = 0; i <= %d; i++) await ping({i})", calls), Functions: []string{"ping"}}, js.Limits{},
			scriptHost(func(context.Context) (json.RawMessage, error) {
				switch n.Add(1) {
				case 1:
					begin = time.Now()
				case calls + 1:
					us = append(us, float64(time.Since(begin).Nanoseconds())/1000/calls)
				}
				return json.RawMessage(`{"ok":true}`), nil
			}))
		if err != nil {
			return err
		}
	}
	m.add(t, "awaited host call and back", "µs", callLimit, us)
	return nil
}

// alive lets scripts with a little state wait for the host, all at once, and adds up what their workers hold. Memory
// that several share, as the program's text, counts once.
func (m scripts) alive(ctx context.Context, _ config, t *table) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrived, leave := make(chan struct{}, aliveScripts), make(chan struct{})
	var all sync.WaitGroup
	failed := make(chan error, aliveScripts)
	for range aliveScripts {
		all.Go(func() {
			_, err := m.pool.Run(ctx, js.Script{Functions: []string{"wait"},
				Source: "const state = Array.from({length: 1000}, (_, i) => ({id: 'item-' + i, done: false})); await wait(); state.length"},
				js.Limits{Time: 5 * time.Minute}, scriptHost(func(ctx context.Context) (json.RawMessage, error) {
					arrived <- struct{}{}
					select {
					case <-leave:
					case <-ctx.Done():
					}
					return nil, nil
				}))
			failed <- err
		})
	}
	for range aliveScripts {
		select {
		case <-arrived:
		case err := <-failed:
			return fmt.Errorf("a script did not wait: %w", err)
		}
	}
	n, mb, err := workersMemory()
	close(leave)
	all.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	if err == nil && n < aliveScripts {
		err = fmt.Errorf("found %d workers of %d", n, aliveScripts)
	}
	if err != nil {
		return err
	}
	m.add(t, fmt.Sprintf("%d scripts alive", aliveScripts), "MB", aliveLimit, []float64{mb})
	return nil
}

// workersMemory adds up the proportional set sizes of this process's children.
func workersMemory() (n int, mb float64, err error) {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		stat, err := os.ReadFile(e)
		if err != nil {
			continue // gone meanwhile
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || fields[0] == "Z" {
			continue
		}
		rollup, err := os.ReadFile(filepath.Join(filepath.Dir(e), "smaps_rollup"))
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(rollup)) {
			var kb float64
			if k, _ := fmt.Sscanf(line, "Pss: %f kB", &kb); k == 1 {
				mb += kb / 1000
				n++
			}
		}
	}
	return n, mb, nil
}
