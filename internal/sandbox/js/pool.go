package js

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"

	"reeve"
	"reeve/internal/sandbox/child"
)

// Config configures a pool's worker processes.
type Config struct {
	Warm int // workers kept ready; default 2, negative means none
	Max  int // scripts that run at once, others wait; default 200
	// worker program; default the embedded one, or the running program if that fails, see ServeWorker
	Binary  string
	Confine child.Confine // changes a worker's command before it starts, to confine the process; default none
	Stderr  *os.File      // standard error of workers, for crash messages; default discarded
}

// Pool runs scripts, each in a worker process of its own that ends with the run. The pool starts workers in advance, so
// that scripts start without delay. It is safe for concurrent use.
type Pool struct {
	config Config
	slots  chan struct{}

	mu       sync.Mutex
	idle     []*child.Process
	starting int
	closed   bool
	starts   sync.WaitGroup // workers being started

	smallOnce  sync.Once // the small worker program
	smallFile  *os.File
	smallPath  string
	smallFails atomic.Bool
}

// New returns a pool. It starts no process before the first Run or Warm.
func New(c Config) *Pool {
	if c.Warm == 0 {
		c.Warm = 2
	}
	if c.Max <= 0 {
		c.Max = 200
	}
	return &Pool{config: c, slots: make(chan struct{}, c.Max)}
}

// Run runs a script to its end and returns its value as JSON, or nil for undefined. A run that fails returns an
// [*Error]. A script that cannot be started, because a name or a limit is invalid or no worker starts, returns a
// [reeve.Error]. When Run returns, the worker process and every host call have ended.
func (p *Pool) Run(ctx context.Context, s Script, l Limits, h Host) (json.RawMessage, error) {
	start, l, err := newStart(s, l)
	if err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, canceledError(ctx, start.Name)
	}
	for {
		proc, warm, err := p.getWorker()
		if err != nil {
			return nil, err
		}
		r := newRun(proc, start, l, h)
		v, err := r.execute(ctx)
		if warm && r.diedBeforeStart {
			continue // the idle worker died before it received the script
		}
		return v, err
	}
}

// Warm starts workers until Config.Warm of them are idle.
func (p *Pool) Warm() error {
	for {
		p.mu.Lock()
		enough := len(p.idle) >= p.config.Warm || p.closed
		p.mu.Unlock()
		if enough {
			return nil
		}
		proc, err := p.startWorker()
		if err != nil {
			return err
		}
		p.putWorker(proc)
	}
}

// Close ends the idle workers. Runs in progress are not affected; later runs fail.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, proc := range idle {
		proc.End()
	}
	p.starts.Wait()
	p.smallOnce.Do(func() {})
	if p.smallFile != nil {
		return p.smallFile.Close()
	}
	return nil
}

// getWorker returns an idle worker or starts one, and refills the idle workers in the background. Warm reports whether
// the worker was idle.
func (p *Pool) getWorker() (proc *child.Process, warm bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, reeve.Errorf(reeve.Unavailable, "the script sandbox is closed")
	}
	if n := len(p.idle); n > 0 {
		proc, p.idle, warm = p.idle[n-1], p.idle[:n-1], true
	}
	for len(p.idle)+p.starting < p.config.Warm {
		p.starting++
		p.starts.Add(1)
		go p.refill()
	}
	p.mu.Unlock()
	if !warm {
		proc, err = p.startWorker()
	}
	return proc, warm, err
}

// refill starts one idle worker. It ignores an error, because the next Run then starts a worker itself and returns the
// error.
func (p *Pool) refill() {
	defer p.starts.Done()
	proc, err := p.startWorker()
	p.mu.Lock()
	p.starting--
	p.mu.Unlock()
	if err == nil {
		p.putWorker(proc)
	}
}

// putWorker adds an idle worker, or ends it if the pool is closed or has enough.
func (p *Pool) putWorker(proc *child.Process) {
	p.mu.Lock()
	isWanted := !p.closed && len(p.idle) < p.config.Warm
	if isWanted {
		p.idle = append(p.idle, proc)
	}
	p.mu.Unlock()
	if !isWanted {
		proc.End()
	}
}
