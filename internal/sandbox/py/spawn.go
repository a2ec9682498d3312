package py

import (
	"errors"
	"strconv"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/wire"
)

// How long a worker may take to be ready: when the interpreter has to be translated first, and when it has been. Both are generous: machines
// are busy, and the only alternative is failure.
const (
	firstTime = 5 * time.Minute
	startTime = 30 * time.Second
)

// spawn starts a worker and waits until it is ready. Only one translates the interpreter; the others wait for it.
func (p *Pool) spawn() (*worker, error) {
	p.first.Lock()
	if p.ready {
		p.first.Unlock()
		return p.launch(startTime)
	}
	defer p.first.Unlock()
	w, err := p.launch(firstTime)
	p.ready = err == nil
	return w, err
}

// launch starts one worker. If it does not get ready, what is in the cache directory may be damaged: that is made anew, once.
func (p *Pool) launch(patience time.Duration) (_ *worker, err error) {
	defer reeve.Wrap(&err, "py.launch")
	w, h, err := p.try(patience)
	if err == nil || h.file == "" || !p.mended.CompareAndSwap(false, true) || h.mend() != nil {
		return w, err
	}
	w, _, err = p.try(firstTime)
	return w, err
}

// try starts a worker from the interpreter in the cache directory. If that is what failed, the home is set too.
func (p *Pool) try(patience time.Duration) (*worker, home, error) {
	h, err := unpack(p.config.Dir)
	if err != nil {
		return nil, home{}, err
	}
	binary, err := p.binary()
	if err != nil {
		return nil, home{}, err
	}
	proc, err := child.Start(child.Command{Binary: binary, Args: []string{"reeve-py-worker", h.file, h.sum, h.code, strconv.FormatInt(p.config.Memory, 10)},
		Env: []string{"GOMAXPROCS=2", "TZ=UTC"}, Confine: p.config.Confine, Stderr: p.config.Stderr})
	if err != nil {
		return nil, home{}, reeve.Errorf(reeve.Unavailable, "cannot start a Python worker: %w", err)
	}
	timer := time.AfterFunc(patience, proc.Kill)
	defer timer.Stop()
	p.grow(proc)
	f, err := wire.ReadFrame(proc.Read)
	if p.grown(proc) && err != nil {
		proc.End()
		return nil, home{}, errClosed()
	}
	if err == nil && (f.Kind != wire.KindReady || string(f.Body) != version()) {
		proc.End()
		return nil, home{}, reeve.Errorf(reeve.Unavailable, "the Python worker is of another version").Hintf("make build makes a program and its worker that fit together")
	}
	if err != nil {
		proc.End()
		return nil, h, reeve.Errorf(reeve.Unavailable, "a Python worker did not get ready: %w", errors.Join(err, proc.Fate()))
	}
	return &worker{Process: proc}, h, nil
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
