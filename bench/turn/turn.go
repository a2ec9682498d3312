// Package turn lets an engine take its turns in a benchmark, also one that is a program of its own. It is a module of its own, as the peers need different versions of
// the same modules.
package turn

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Flow lets workers go on during their turn and holds them otherwise, so that the engine costs nothing then.
type Flow struct {
	Count atomic.Int64 // steps that were done, or jobs that were finished
	came  atomic.Bool  // the first worker: the engine has begun
	mu    sync.Mutex
	open  chan struct{} // closed while work may go on
}

// New makes one that holds.
func New() *Flow {
	f := &Flow{}
	f.hold()
	return f
}

func (f *Flow) hold() {
	f.mu.Lock()
	f.open = make(chan struct{})
	f.mu.Unlock()
}

// Open lets them go on for good.
func (f *Flow) Open() { close(f.open) }

// Wait is called by a worker before it does anything.
func (f *Flow) Wait(ctx context.Context) error {
	f.came.Store(true)
	f.mu.Lock()
	open := f.open
	f.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is what was done in a turn.
type Done struct {
	Rate   float64 // per second
	Behind int64   // finished by the end of it, and not counted as done yet: a crash would have lost so many ends
}

// Serve waits for the first worker and says so. Then it works for as long as each line of its input says, and answers with what was done.
func (f *Flow) Serve(done func() (int64, error)) error {
	for !f.came.Load() { // on a busy machine that takes longer than a turn
		time.Sleep(time.Millisecond)
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(Done{}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		d, err := time.ParseDuration(in.Text())
		if err != nil {
			return err
		}
		got, err := f.Turn(d, done)
		if err != nil {
			return err
		}
		if err := out.Encode(got); err != nil {
			return err
		}
	}
	return nil
}

// Turn lets workers go on for a while and gives what was done, by what the engine counts as that.
func (f *Flow) Turn(d time.Duration, done func() (int64, error)) (got Done, err error) {
	before, err := done()
	if err != nil {
		return got, err
	}
	start := time.Now()
	f.Open()
	time.Sleep(d)
	finished := f.Count.Load()
	f.hold()
	took := time.Since(start)
	after, err := done()
	if err != nil {
		return got, err
	}
	time.Sleep(20 * time.Millisecond) // what was under way is over before the next turn begins to matter
	if after == before {
		return got, errors.New("nothing was done in a turn: the queue is empty, or stands still")
	}
	return Done{Rate: float64(after-before) / took.Seconds(), Behind: max(0, finished-after)}, nil
}
