package py

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
)

// Config configures a pool's worker processes.
type Config struct {
	// cache directory for the unpacked interpreter and its machine code; no other user may write there
	Dir     string
	Memory  int64         // maximum of Limits.Memory; default DefaultMemory
	Warm    int           // idle workers without an owner; default 1, negative means none
	Keep    int           // idle workers kept for the next runs of their owners; default 2, negative means none
	Max     int           // runs at once, others wait; default 4
	Idle    time.Duration // time after which an idle worker is ended; default 5 m
	Binary  string        // worker program; default the embedded one
	Confine child.Confine // changes a worker's command before it starts, to confine the process; default none
	Stderr  *os.File      // standard error of workers, for crash messages; default discarded
}

// Pool runs Python in worker processes. After the first run it starts workers in advance, so that a run starts without
// delay, and ends workers that stay idle. It is safe for concurrent use.
type Pool struct {
	config Config
	slots  chan struct{}

	mu       sync.Mutex
	idle     []*worker               // ordered by idle time, longest first
	starting int                     // workers that refill is starting
	notReady map[*child.Process]bool // processes that are not ready yet, for Close
	closed   bool
	starts   sync.WaitGroup // workers being started

	setupMu     sync.Mutex  // held while the first worker unpacks and compiles the interpreter
	isSetUp     bool        // a worker has started
	repaired    atomic.Bool // the cache was repaired once
	programOnce sync.Once   // sets program and programErr
	program     *program
	programErr  error
}

// worker is a worker process.
type worker struct {
	*child.Process
	owner string // empty means that it has not run code yet
	runs  int
	timer *time.Timer
}

// maxRuns is the number of runs after which a worker is replaced, which bounds memory leaks.
const maxRuns = 1000

// New returns a pool. It starts no process before the first Run or Start.
func New(c Config) *Pool {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&c.Warm, 1)
	set(&c.Keep, 2)
	if c.Max <= 0 {
		c.Max = 4
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	return &Pool{config: c, slots: make(chan struct{}, c.Max), notReady: map[*child.Process]bool{}}
}

// Run runs code to its end. Code that fails or exceeds its time limit gives a result. An error means that the code
// could not be run, that ctx ended, or that the worker died. When Run returns, the run has ended, and its worker may
// stay idle for the owner's next run.
func (p *Pool) Run(ctx context.Context, c Code, l Limits) (Result, error) {
	l, err := l.withDefaults()
	if err == nil && l.Memory > p.config.Memory {
		err = reeve.Errorf(reeve.Validation, "the memory limit of %d bytes exceeds the maximum of %d", l.Memory,
			p.config.Memory)
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return Result{}, err
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return Result{}, reeve.Errorf(reeve.Canceled, "the run was cancelled: %w", context.Cause(ctx))
	}
	for {
		w, err := p.getWorker(ctx, c.Owner)
		if err != nil {
			return Result{}, err
		}
		r, reusable, err := runCode(ctx, w.Process, c, l)
		w.owner = c.Owner
		if w.runs++; reusable && w.runs < maxRuns && w.owner != "" {
			p.putWorker(w)
		} else {
			w.End()
		}
		if errors.Is(err, errWorkerGone) {
			continue // the idle worker died before it received the code
		}
		return r, err
	}
}

// Start starts an idle worker, so that the first run does not have to wait for one.
func (p *Pool) Start(ctx context.Context) error {
	w, err := p.waitForWorker(ctx)
	if err == nil {
		p.putWorker(w)
	}
	return err
}

// Close ends the idle workers and those that are being started. Runs in progress are not affected; later runs fail.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	for proc := range p.notReady {
		proc.Kill()
	}
	p.mu.Unlock()
	for _, w := range idle {
		w.timer.Stop()
		w.End()
	}
	p.starts.Wait()
	p.programOnce.Do(func() {})
	if p.program != nil {
		return p.program.Close()
	}
	return nil
}

// getWorker returns an idle worker of the owner, or one without an owner, or starts one. It also refills the idle
// workers in the background.
func (p *Pool) getWorker(ctx context.Context, owner string) (*worker, error) {
	p.mu.Lock()
	at := slices.IndexFunc(p.idle, func(w *worker) bool { return w.owner == owner })
	if at < 0 {
		at = slices.IndexFunc(p.idle, func(w *worker) bool { return w.owner == "" })
	}
	var w *worker
	if at >= 0 {
		w = p.idle[at]
		p.idle = slices.Delete(p.idle, at, at+1)
		w.timer.Stop()
	}
	p.mu.Unlock()
	var err error
	if w == nil {
		w, err = p.waitForWorker(ctx)
	}
	if err == nil {
		p.refill()
	}
	return w, err
}

// refill starts workers in the background until Config.Warm of them have no owner. It ignores errors, because the next
// Run then starts a worker itself and returns the error.
func (p *Pool) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.starting
	for _, w := range p.idle {
		if w.owner == "" {
			free++
		}
	}
	for ; free < p.config.Warm && !p.closed; free++ {
		p.starting++
		p.starts.Add(1)
		go func() {
			defer p.starts.Done()
			w, err := p.startWorker()
			p.mu.Lock()
			p.starting--
			p.mu.Unlock()
			if err == nil {
				p.putWorker(w)
			}
		}()
	}
}

// waitForWorker starts a worker and waits until it is ready. If ctx ends first, the worker becomes an idle worker.
func (p *Pool) waitForWorker(ctx context.Context) (*worker, error) {
	type outcome struct {
		w   *worker
		err error
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	p.starts.Add(1)
	p.mu.Unlock()
	got := make(chan outcome)
	go func() {
		defer p.starts.Done()
		w, err := p.startWorker()
		select {
		case got <- outcome{w, err}:
		case <-ctx.Done():
			if err == nil {
				p.putWorker(w)
			}
		}
	}()
	select {
	case o := <-got:
		return o.w, o.err
	case <-ctx.Done():
		return nil, reeve.Errorf(reeve.Canceled, "the run was cancelled while Python was starting: %w",
			context.Cause(ctx))
	}
}

// putWorker adds an idle worker. If there are too many of its kind (with or without an owner), it ends the one that has
// been idle longest. If the pool is closed or keeps none, it ends w.
func (p *Pool) putWorker(w *worker) {
	most := p.config.Keep
	if w.owner == "" {
		most = p.config.Warm
	}
	p.mu.Lock()
	same := func(o *worker) bool { return (o.owner == "") == (w.owner == "") }
	var out *worker
	if n := len(p.idle); p.closed || most <= 0 {
		out = w
	} else if at := slices.IndexFunc(p.idle, same); at >= 0 &&
		n-len(slices.DeleteFunc(slices.Clone(p.idle), same)) >= most {
		out = p.idle[at]
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	if out != w {
		w.timer = time.AfterFunc(p.config.Idle, func() { p.endIdle(w) })
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if out != nil {
		if out.timer != nil {
			out.timer.Stop()
		}
		out.End()
	}
}

// trackStarting records a process that is not ready yet, so that Close can kill it. If the pool is closed already, it
// kills the process.
func (p *Pool) trackStarting(proc *child.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notReady[proc] = true; p.closed {
		proc.Kill()
	}
}

// untrackStarting removes a process recorded by trackStarting. It reports whether the pool is closed.
func (p *Pool) untrackStarting(proc *child.Process) (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.notReady, proc)
	return p.closed
}

// endIdle ends a worker if it is still idle.
func (p *Pool) endIdle(w *worker) {
	p.mu.Lock()
	at := slices.Index(p.idle, w)
	if at >= 0 {
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		w.End()
	}
}
