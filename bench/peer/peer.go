// Package peer has the code that the benchmark programs of other engines share: their options and the slices of time in
// which they are measured. It is a separate module, because these programs need different versions of the same modules.
package peer

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// StepsPerJob is the number of durable steps of a job.
const StepsPerJob = 20

// Content is the text that a step writes: 200 bytes.
var Content = strings.Repeat("what a step found out, ", 9)[:200]

// Options are the flags of a peer program.
type Options struct {
	Database string
	Workers  int
	Jobs     int
	Empty    bool // jobs do nothing, and count when they are completed in the database
	Durable  bool // a worker completes its job in the database before it takes another
}

// ParseOptions parses the command line.
func ParseOptions() (o Options) {
	flag.StringVar(&o.Database, "database", "", "URL or file of an empty database")
	flag.IntVar(&o.Workers, "workers", 1, "number of concurrent workers")
	flag.IntVar(&o.Jobs, "jobs", 10_000, "number of queued jobs")
	flag.BoolVar(&o.Empty, "empty", false, "jobs do nothing")
	flag.BoolVar(&o.Durable, "durable", false, "complete each job in a separate transaction")
	flag.Parse()
	return o
}

// Pacer lets workers run during a slice of time and blocks them between slices.
type Pacer struct {
	Count   atomic.Int64 // finished steps or jobs
	arrived atomic.Bool  // a worker has called Wait
	mu      sync.Mutex
	open    chan struct{} // closed while workers may run
}

// NewPacer returns a Pacer that blocks workers.
func NewPacer() *Pacer { return &Pacer{open: make(chan struct{})} }

// Open lets workers run.
func (p *Pacer) Open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.open)
}

func (p *Pacer) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

// Wait blocks a worker until it may run.
func (p *Pacer) Wait(ctx context.Context) error {
	p.arrived.Store(true)
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Measure lets workers run for a slice of time and returns the rate per second of count.
func (p *Pacer) Measure(d time.Duration, count func() (int64, error)) (float64, error) {
	before, err := count()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	p.Open()
	time.Sleep(d)
	p.pause()
	took := time.Since(start)
	after, err := count()
	if err != nil {
		return 0, err
	}
	if after == before {
		return 0, errors.New("no progress in a slice: the queue is empty or stuck")
	}
	time.Sleep(20 * time.Millisecond) // let running jobs end before another engine is measured
	return float64(after-before) / took.Seconds(), nil
}

// Serve waits for the first worker and prints 0. Then it reads durations, one per line, measures for that long and
// prints the rate, until its input ends.
func (p *Pacer) Serve(count func() (int64, error)) error {
	for !p.arrived.Load() { // on a busy machine this takes longer than a slice
		time.Sleep(time.Millisecond)
	}
	fmt.Println(0)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		d, err := time.ParseDuration(in.Text())
		if err != nil {
			return err
		}
		rate, err := p.Measure(d, count)
		if err != nil {
			return err
		}
		fmt.Println(rate)
	}
	return nil
}
