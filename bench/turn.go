package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// lane is one side of a comparison: it works for a while and says how many it did per second.
type lane func(ctx context.Context, d time.Duration) (float64, error)

// series is what a lane did: its rates by round, and the processor time it took for one, in microseconds.
type series struct {
	rates []float64
	cpu   float64
}

// turns lets the lanes take turns, in the other order every second round so that none always follows the same one, after one
// short turn each to warm up. Before a turn the disk has written what the one before left to it: nobody waits for another's.
func turns(ctx context.Context, c config, lanes ...lane) ([]series, error) {
	got := make([]series, len(lanes))
	used, done := make([]time.Duration, len(lanes)), make([]float64, len(lanes))
	for _, l := range lanes {
		if _, err := l(ctx, c.slice/2); err != nil {
			return nil, err
		}
	}
	for r := range c.rounds {
		for i := range lanes {
			if r%2 == 1 {
				i = len(lanes) - 1 - i
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			syscall.Sync()
			before, start := cpuTime(), time.Now()
			rate, err := lanes[i](ctx, c.slice)
			if err != nil {
				return nil, err
			}
			got[i].rates = append(got[i].rates, rate)
			done[i] += rate * time.Since(start).Seconds()
			used[i] += cpuTime() - before
			got[i].cpu = float64(used[i].Microseconds()) / done[i]
		}
	}
	return got, nil
}

// compare makes a row of two lanes' rates.
func compare(r row, ours, peer series) row {
	each := make([]float64, len(ours.rates))
	for i := range each {
		each[i] = ours.rates[i] / peer.rates[i]
	}
	r.Ours, r.OursMedian, r.OursCPU = slices.Max(ours.rates), median(ours.rates), ours.cpu
	r.Peer, r.PeerMedian, r.PeerCPU = slices.Max(peer.rates), median(peer.rates), peer.cpu
	r.Ratio, r.BestRatio = median(each), r.Ours/r.Peer
	return r
}

// compareCosts is compare for costs: the best is the least.
func compareCosts(r row, ours, peer series) row {
	r = compare(r, ours, peer)
	r.Ours, r.Peer, r.AtMost, r.OursCPU, r.PeerCPU = least(ours.rates), least(peer.rates), true, 0, 0
	r.BestRatio = r.Ours / r.Peer
	return r
}

func least(v []float64) float64 { return slices.Min(v) }

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// callers is a lane of n callers that do the same thing again and again, each waiting for its own.
func callers(n int, do func(ctx context.Context, caller, i int) error) lane {
	done := make([]int, n) // goes on counting from turn to turn
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
