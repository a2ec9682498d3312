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

// Config says where a pool's workers come from and how many there are.
type Config struct {
	Warm int // workers kept ready; default 2, negative means none
	Max  int // scripts that run at once; others wait; default 200
	// program to start as a worker; default the one that this program carries, else this program, see ServeWorker
	Binary  string
	Confine child.Confine // a last look at a worker's command before it starts, to confine it further; default none
	Stderr  *os.File      // where a worker that crashes may say why; default nowhere
}

// Pool runs scripts, each in a worker process of its own that is thrown away afterwards. Workers are started ahead, so
// that a script does not wait for one.
type Pool struct {
	config Config
	slots  chan struct{}

	mu       sync.Mutex
	idle     []*child.Process
	starting int
	closed   bool
	work     sync.WaitGroup // workers being started

	smallOnce  sync.Once // the small worker program
	smallFile  *os.File
	smallPath  string
	smallFails atomic.Bool
}

// New makes a pool. It starts no process before the first Run or Warm.
func New(c Config) *Pool {
	if c.Warm == 0 {
		c.Warm = 2
	}
	if c.Max <= 0 {
		c.Max = 200
	}
	return &Pool{config: c, slots: make(chan struct{}, c.Max)}
}

// Run runs a script to its end and gives its value: what its last expression comes to, or what it returns. Promises are
// awaited; nil means undefined. A run that fails gives an [*Error]; a script that cannot be tried at all, because a
// name or a limit is wrong or no worker starts, gives a [reeve.Error]. When Run returns, the worker is gone and every
// host call has ended.
func (p *Pool) Run(ctx context.Context, s Script, l Limits, h Host) (json.RawMessage, error) {
	begin, l, err := newStart(s, l)
	if err != nil {
		return nil, err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, canceled(ctx, begin.Name)
	}
	for {
		proc, warm, err := p.take()
		if err != nil {
			return nil, err
		}
		r := newRun(proc, begin, l, h)
		v, err := r.do(ctx)
		if warm && r.stillborn {
			continue // it died while it waited for work, before it saw the script
		}
		return v, err
	}
}

// Warm starts workers until as many are ready as the pool keeps.
func (p *Pool) Warm() error {
	for {
		p.mu.Lock()
		enough := len(p.idle) >= p.config.Warm || p.closed
		p.mu.Unlock()
		if enough {
			return nil
		}
		proc, err := p.spawn()
		if err != nil {
			return err
		}
		p.put(proc)
	}
}

// Close ends the workers that wait. Runs under way go on to their own end.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, proc := range idle {
		proc.End()
	}
	p.work.Wait()
	p.smallOnce.Do(func() {})
	if p.smallFile != nil {
		return p.smallFile.Close()
	}
	return nil
}

// take gives a worker, a warm one if there is one, and sees to it that others get warm.
func (p *Pool) take() (proc *child.Process, warm bool, err error) {
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
		p.work.Add(1)
		go p.refill()
	}
	p.mu.Unlock()
	if !warm {
		proc, err = p.spawn()
	}
	return proc, warm, err
}

// refill starts one worker. If that fails, the next Run finds none and says why.
func (p *Pool) refill() {
	defer p.work.Done()
	proc, err := p.spawn()
	p.mu.Lock()
	p.starting--
	p.mu.Unlock()
	if err == nil {
		p.put(proc)
	}
}

// put keeps a worker for later, if it is wanted.
func (p *Pool) put(proc *child.Process) {
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < p.config.Warm
	if keep {
		p.idle = append(p.idle, proc)
	}
	p.mu.Unlock()
	if !keep {
		proc.End()
	}
}
