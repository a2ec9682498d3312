package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"reeve/internal/sandbox/confine"
)

// What commands must reach.
const (
	confineLimit = 6.0 // ms that the start of a confined command may take longer than a bare one
	togetherMost = 2.0 // how much longer than bare ones so many at once may take
	together     = 50
	nap          = "0.5" // seconds that each of them sleeps: one that waited for another would show
)

// hands measures confined commands against bare ones, turn by turn.
func hands(ctx context.Context, c config, t *table) error {
	mode, reason := confine.Available()
	if mode == confine.Off {
		return errors.New("commands cannot be confined here: " + reason)
	}
	note := ""
	if !confine.Carries() {
		note = ", whole program as sandbox (make worker builds the small one)"
	}
	dir, err := os.MkdirTemp("", "reeve-bench-hands-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bare := func(args ...string) error { return exec.CommandContext(ctx, args[0], args[1:]...).Run() }
	confined := func(args ...string) error {
		r, err := confine.Run(ctx, confine.Command{Args: args, Root: dir}, confine.Limits{})
		if err == nil && r.ExitCode != 0 {
			err = fmt.Errorf("%v: exit %d %s", args, r.ExitCode, r.Stderr)
		}
		return err
	}
	var ours, theirs, more []float64
	for range pick(c, 200, 50) {
		b, err := spent(func() error { return bare("/bin/true") })
		if err != nil {
			return err
		}
		o, err := spent(func() error { return confined("/bin/true") })
		if err != nil {
			return err
		}
		ours, theirs, more = append(ours, o), append(theirs, b), append(more, o-b)
	}
	t.add(row{Section: "hands", Name: "a confined command (" + string(mode) + ")" + note, Unit: "ms", Ours: least(ours), OursMedian: median(ours), Against: "bare", Peer: least(theirs), PeerMedian: median(theirs),
		Ratio: median(ours) / median(theirs), BestRatio: least(ours) / least(theirs)})
	t.add(row{Section: "hands", Name: "its start, over a bare one's" + note, Unit: "ms", Ours: least(more), OursMedian: median(more), Against: "limit", Peer: confineLimit, Ratio: median(more) / confineLimit,
		BestRatio: least(more) / confineLimit, Target: 1, AtMost: true})

	var all, alone, ratios []float64
	for range max(3, c.rounds/2) {
		b, err := spent(func() error { return atOnce(func() error { return bare("sleep", nap) }) })
		if err != nil {
			return err
		}
		o, err := spent(func() error { return atOnce(func() error { return confined("sleep", nap) }) })
		if err != nil {
			return err
		}
		all, alone, ratios = append(all, o), append(alone, b), append(ratios, o/b)
	}
	t.add(row{Section: "hands", Name: fmt.Sprintf("%d at once that sleep %s s", together, nap) + note, Unit: "ms", Ours: least(all), OursMedian: median(all), Against: "bare", Peer: least(alone), PeerMedian: median(alone),
		Ratio: median(ratios), BestRatio: least(all) / least(alone), Target: togetherMost, AtMost: true})
	return nil
}

// spent gives the milliseconds that f took.
func spent(f func() error) (float64, error) {
	begin := time.Now()
	err := f()
	return float64(time.Since(begin).Microseconds()) / 1000, err
}

// atOnce runs f many times side by side.
func atOnce(f func() error) error {
	errs := make([]error, together)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = f() })
	}
	group.Wait()
	return errors.Join(errs...)
}
