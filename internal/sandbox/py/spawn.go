package py

import (
	"errors"
	"strconv"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/wire"
	"reeve/internal/sandbox/py/report"
)

// How long it may take to translate the interpreter, and then for a worker to be ready. Both are generous: machines are
// busy, and the only alternative is failure.
const (
	translateTime = 5 * time.Minute
	startTime     = 30 * time.Second
)

// spawn starts a worker and waits until it is ready. Only one has the interpreter translated; the others wait for it.
func (p *Pool) spawn() (*worker, error) {
	p.first.Lock()
	if p.ready {
		p.first.Unlock()
		return p.launch()
	}
	defer p.first.Unlock()
	w, err := p.launch()
	p.ready = err == nil
	return w, err
}

// launch starts one worker. If it does not get ready, what is in the cache directory may be damaged: that is made anew,
// once.
func (p *Pool) launch() (_ *worker, err error) {
	defer reeve.Wrap(&err, "py.launch")
	w, h, err := p.try()
	if err == nil || h.dir == "" || !p.mended.CompareAndSwap(false, true) || h.mend() != nil {
		return w, err
	}
	w, _, err = p.try()
	return w, err
}

// try starts a worker from the interpreter in the cache directory. If that is what failed, the home is set too.
func (p *Pool) try() (*worker, home, error) {
	h, err := unpack(p.config.Dir)
	if err != nil {
		return nil, home{}, err
	}
	binary, err := p.binary()
	if err != nil {
		return nil, home{}, err
	}
	if err := h.translate(func(dir string) error {
		proc, _, err := p.start(child.Command{Binary: binary, Args: []string{workerArg, report.Translate, h.file(),
			h.sum, dir}}, translateTime)
		if proc != nil {
			proc.End()
		}
		return err
	}); err != nil {
		return nil, h, err
	}
	proc, fit, err := p.start(child.Command{Binary: binary, Args: []string{workerArg, h.dir, h.sum,
		strconv.FormatInt(p.config.Memory, 10)}, Folder: h.dir, Confine: p.config.Confine}, startTime)
	if err != nil && !fit {
		h = home{}
	}
	if err != nil {
		return nil, h, err
	}
	return &worker{Process: proc}, h, nil
}

// workerArg is what a worker is called.
const workerArg = "reeve-py-worker"

// start starts a process of the worker program and waits until it is ready. Fit says whether, though it failed, it
// might not with another cache.
func (p *Pool) start(c child.Command, patience time.Duration) (_ *child.Process, fit bool, err error) {
	c.Env, c.Stderr = []string{"GOMAXPROCS=2", "TZ=UTC"}, p.config.Stderr
	proc, err := child.Start(c)
	if err != nil {
		return nil, false, reeve.Errorf(reeve.Unavailable, "cannot start a Python worker: %w", err)
	}
	timer := time.AfterFunc(patience, proc.Kill)
	defer timer.Stop()
	p.grow(proc)
	f, err := wire.ReadFrame(proc.Read)
	if p.grown(proc) && err != nil {
		proc.End()
		return nil, false, errClosed()
	}
	if err == nil && (f.Kind != wire.KindReady || string(f.Body) != version()) {
		proc.End()
		return nil, false, reeve.Errorf(reeve.Unavailable, "the Python worker is of another version").
			Hintf("make build makes a program and its worker that fit together")
	}
	if err != nil {
		proc.End()
		return nil, true, reeve.Errorf(reeve.Unavailable, "a Python worker did not get ready: %w",
			errors.Join(err, proc.ExitError()))
	}
	return proc, true, nil
}

func errClosed() error { return reeve.Errorf(reeve.Unavailable, "the Python sandbox is closed") }

// binary is where to start the worker program from.
func (p *Pool) binary() (string, error) {
	if p.config.Binary != "" {
		return p.config.Binary, nil
	}
	p.programs.Do(func() {
		if p.program, p.fault = newProgram(p.config.Dir); p.fault != nil {
			p.fault = reeve.Errorf(reeve.Unavailable, "the Python worker cannot be started: %w", p.fault)
		}
	})
	if p.fault != nil {
		return "", p.fault
	}
	return p.program.path, nil
}
