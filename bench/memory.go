package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"reeve"
)

// memory looks at what an idle server holds, and at whether large outputs leave anything behind.
func memory(ctx context.Context, c config, t *table) error {
	if err := idle(ctx, c, t); err != nil {
		return err
	}
	for _, e := range engines {
		engine, err := e.open(ctx, c, "memory")
		if err != nil {
			return err
		}
		w, err := newWorld(ctx, engine, largeTool())
		if err != nil {
			return err
		}
		calls := pick(c, 10_000, 300)
		if e.name != "SQLite" { // the path is the same but for the driver; fewer calls keep the run short
			calls = pick(c, 2000, 300)
		}
		if err := errors.Join(w.large(ctx, e.name, calls, t), w.close()); err != nil {
			return err
		}
	}
	return nil
}

// idleLimit is what an idle server may hold, in MB.
const idleLimit = 60

func idle(ctx context.Context, c config, t *table) error {
	program, err := buildServer(ctx, c)
	if err != nil {
		return err
	}
	s, _, err := startServer(ctx, program, filepath.Join(c.dir, "idle"), "")
	if err != nil {
		return err
	}
	time.Sleep(pick(c, 5*time.Second, 2*time.Second)) // until the start's garbage would have been collected, if it is
	mb, err := s.resident()
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	t.add(row{Section: "memory", Name: "idle server, resident", Unit: "MB", Ours: mb, Against: "limit", Peer: idleLimit, Ratio: mb / idleLimit, Target: 1, AtMost: true})
	return nil
}

// distinct is how many different outputs there are, so that the store keeps that many and not one per call.
const distinct = 50

// largeTool reads 1 MB of log lines.
func largeTool() reeve.Tool {
	type in struct {
		Which int `json:"which"`
	}
	return reeve.MustTool(reeve.Tool{ID: "read_log", Description: "Reads a log.", Effect: reeve.Read},
		func(_ context.Context, i in) (string, error) {
			k := i.Which % distinct
			line := fmt.Sprintf("2026-11-15T10:%02d:00Z INFO request served path=/orders/%d status=200 took=%dms\n", k, k*7919, k)
			return strings.Repeat(line, 1<<20/len(line)+1)[:1<<20], nil
		})
}

// large makes calls with outputs of 1 MB, by 4 callers, and compares the heap after the first of them with the heap after all.
func (w *world) large(ctx context.Context, engine string, calls int, t *table) error {
	work := func(from, to int) error {
		var all sync.WaitGroup
		errs := make([]error, 4)
		for caller := range errs {
			all.Go(func() {
				for i := from + caller; i < to && errs[caller] == nil; i += len(errs) {
					res, err := w.gate.Call(ctx, reeve.Call{Workspace: workspace, Agent: w.agent, Tool: "read_log", Tools: []string{"read_log"},
						Args: fmt.Appendf(nil, `{"which":%d}`, i), Session: fmt.Sprint("large-", caller), Via: reeve.ViaGo})
					if err == nil && (res.IsError || res.Size != 1<<20 || !res.Truncated) {
						err = fmt.Errorf("the call came to %d bytes: %s", res.Size, res.Message)
					}
					errs[caller] = err
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	}
	if err := work(0, 2*distinct); err != nil { // so that buffers and caches are as large as they will be
		return err
	}
	before := heap()
	start := time.Now()
	if err := work(2*distinct, 2*distinct+calls); err != nil {
		return err
	}
	took, after := time.Since(start), heap()
	t.add(row{Section: "memory", Name: fmt.Sprintf("%s, heap after %d calls of 1 MB (%.0f calls/s)", engine, calls, float64(calls)/took.Seconds()), Unit: "MB",
		Ours: after, Against: "heap before, and 1 MB", Peer: before + 1, Ratio: after / (before + 1), Target: 1.1, AtMost: true})
	return nil
}

// heap is what is in use once garbage is gone, in MB.
func heap() float64 {
	var m runtime.MemStats
	for range 3 { // finalizers and pools need more than one
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse) / (1 << 20)
}
