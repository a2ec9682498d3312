package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// side is one side of a comparison. It works for a while and returns its figure: a rate, or the cost of one operation.
type side func(ctx context.Context, d time.Duration) (float64, error)

// alternate runs the sides in turn and returns their figures by round. It reverses the order in every second round, so
// that no side always follows the same one. Each side first runs for one slice that is not counted, to warm up.
func alternate(ctx context.Context, c config, sides ...side) ([][]float64, error) {
	for _, s := range sides {
		if _, err := s(ctx, c.slice); err != nil {
			return nil, err
		}
	}
	figures := make([][]float64, len(sides))
	for r := range c.rounds {
		for i := range sides {
			if r%2 == 1 {
				i = len(sides) - 1 - i
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			syscall.Sync() // flush, so that no side pays for the writes of another
			figure, err := sides[i](ctx, c.slice)
			if err != nil {
				return nil, err
			}
			figures[i] = append(figures[i], figure)
		}
	}
	return figures, nil
}

// callers returns a side of n goroutines that repeat an operation. Its figure is operations per second.
func callers(n int, do func(ctx context.Context, caller, i int) error) side {
	done := make([]int, n) // continues from slice to slice
	return func(ctx context.Context, d time.Duration) (float64, error) {
		var all sync.WaitGroup
		var count atomic.Int64
		var failed atomic.Pointer[error]
		start := time.Now()
		for caller := range n {
			all.Go(func() {
				for time.Since(start) < d && failed.Load() == nil {
					if err := do(ctx, caller, done[caller]); err != nil {
						failed.Store(&err)
						return
					}
					done[caller]++
					count.Add(1)
				}
			})
		}
		all.Wait()
		if err := failed.Load(); err != nil {
			return 0, *err
		}
		return float64(count.Load()) / time.Since(start).Seconds(), nil
	}
}

// repeat returns a side that makes the same number of calls in every slice. Its figure is the cost of one call in
// microseconds.
func repeat(calls int, do func(ctx context.Context, i int) error) side {
	i := 0
	return func(ctx context.Context, _ time.Duration) (float64, error) {
		start := time.Now()
		for range calls {
			if err := do(ctx, i); err != nil {
				return 0, err
			}
			i++
		}
		return float64(time.Since(start).Microseconds()) / float64(calls), nil
	}
}

func median(v []float64) float64 { return percentile(v, 50) }

// percentile returns the smallest value that p percent of all values do not exceed.
func percentile(v []float64, p int) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[max(0, (len(s)*p+99)/100-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
