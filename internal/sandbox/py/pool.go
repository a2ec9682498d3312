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

// Config says where a pool's workers come from and how many there are.
type Config struct {
	// cache directory: the interpreter is unpacked there, and its machine code kept; nobody else may write there
	Dir     string
	Memory  int64         // the most memory that a run may ask for; default DefaultMemory
	Warm    int           // workers kept ready that belong to nobody yet; default 1, negative means none
	Keep    int           // workers kept for their owners' next runs; default 2, negative means none
	Max     int           // runs at once; others wait; default 4
	Idle    time.Duration // how long a worker may wait for work before it is ended; default 5 m
	Binary  string        // worker program; default the one that this program carries
	Confine child.Confine // a last look at a worker's command before it starts; default none
	Stderr  *os.File      // where a worker that crashes may say why; default nowhere
}

// Pool runs Python in worker processes. Workers are started ahead once there has been a first run, so that a run does
// not wait for one, and ended when nobody needs them.
type Pool struct {
	config Config
	slots  chan struct{}

	mu       sync.Mutex
	idle     []*worker               // the one that waits longest first
	starting int                     // workers on their way that belong to nobody
	young    map[*child.Process]bool // processes that are not ready yet
	closed   bool
	work     sync.WaitGroup // workers being started

	first    sync.Mutex // held while the interpreter is unpacked and translated
	ready    bool       // that has been done
	mended   atomic.Bool
	programs sync.Once // the worker program
	program  *program
	fault    error
}

// worker is a process that waits.
type worker struct {
	*child.Process
	owner string // empty: nobody yet
	runs  int
	timer *time.Timer
}

// wear is how many runs a worker serves: what it may leak, it does not leak for long.
const wear = 1000

// New makes a pool. It starts no process before the first Run or Start.
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
	return &Pool{config: c, slots: make(chan struct{}, c.Max), young: map[*child.Process]bool{}}
}

// Run runs code to its end. An error means that it could not be run, or that nothing can be said of how it ended; code
// that fails, or is ended because its time is over, gives a result. When Run returns, nothing of the run is left but a
// worker that waits for the owner's next.
func (p *Pool) Run(ctx context.Context, c Code, l Limits) (Result, error) {
	l, err := l.withDefaults()
	if err == nil && l.Memory > p.config.Memory {
		err = reeve.Errorf(reeve.Validation, "%d bytes of memory are more than the %d of this pool", l.Memory,
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
		return Result{}, reeve.Errorf(reeve.Canceled, "the caller went away: %w", context.Cause(ctx))
	}
	for {
		w, err := p.take(ctx, c.Owner)
		if err != nil {
			return Result{}, err
		}
		r, fit, err := do(ctx, w.Process, c, l)
		w.owner = c.Owner
		if w.runs++; fit && w.runs < wear && w.owner != "" {
			p.put(w)
		} else {
			w.End()
		}
		if errors.Is(err, errLost) {
			continue // it died while it waited for work
		}
		return r, err
	}
}

// Start starts a worker and keeps it ready. It is for those who cannot wait at the first run.
func (p *Pool) Start(ctx context.Context) error {
	w, err := p.await(ctx)
	if err == nil {
		p.put(w)
	}
	return err
}

// Close ends the workers that wait, and those that are being started. Runs under way go on to their own end.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	for proc := range p.young {
		proc.Kill()
	}
	p.mu.Unlock()
	for _, w := range idle {
		w.timer.Stop()
		w.End()
	}
	p.work.Wait()
	p.programs.Do(func() {})
	if p.program != nil {
		return p.program.Close()
	}
	return nil
}

// take gives an owner's worker, or one that belongs to nobody yet, and sees to it that there will be another.
func (p *Pool) take(ctx context.Context, owner string) (*worker, error) {
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
		w, err = p.await(ctx)
	}
	if err == nil {
		p.refill()
	}
	return w, err
}

// refill starts as many workers ahead as are wanted. If one does not start, the next Run finds none and says why.
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
		p.work.Add(1)
		go func() {
			defer p.work.Done()
			w, err := p.spawn()
			p.mu.Lock()
			p.starting--
			p.mu.Unlock()
			if err == nil {
				p.put(w)
			}
		}()
	}
}

// await starts a worker and waits for it, or until the caller goes away: then the worker is kept for the next.
func (p *Pool) await(ctx context.Context) (*worker, error) {
	type outcome struct {
		w   *worker
		err error
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	p.work.Add(1)
	p.mu.Unlock()
	got := make(chan outcome)
	go func() {
		defer p.work.Done()
		w, err := p.spawn()
		select {
		case got <- outcome{w, err}:
		case <-ctx.Done():
			if err == nil {
				p.put(w)
			}
		}
	}()
	select {
	case o := <-got:
		return o.w, o.err
	case <-ctx.Done():
		return nil, reeve.Errorf(reeve.Canceled, "the caller went away while Python was starting: %w",
			context.Cause(ctx))
	}
}

// put keeps a worker for later, if it is wanted, in place of one that has waited longer.
func (p *Pool) put(w *worker) {
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
		w.timer = time.AfterFunc(p.config.Idle, func() { p.retire(w) })
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

// grow notes a process that is not ready yet, or ends it if the pool is closed.
func (p *Pool) grow(proc *child.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.young[proc] = true; p.closed {
		proc.Kill()
	}
}

// grown takes note that a process is ready, or is not going to be. It says whether the pool is closed.
func (p *Pool) grown(proc *child.Process) (closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.young, proc)
	return p.closed
}

// retire ends a worker that nobody needed for long.
func (p *Pool) retire(w *worker) {
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
