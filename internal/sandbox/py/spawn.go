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

// These times are generous, because a busy machine may be slow.
const (
	translateTime = 5 * time.Minute  // to compile the interpreter to machine code
	startTime     = 30 * time.Second // maximum time until a worker is ready
)

// startWorker starts a worker and waits until it is ready. Until one worker has started, other callers wait, so that
// the interpreter is unpacked and compiled only once.
func (p *Pool) startWorker() (*worker, error) {
	p.setupMu.Lock()
	if p.isSetUp {
		p.setupMu.Unlock()
		return p.startOrRepair()
	}
	defer p.setupMu.Unlock()
	w, err := p.startOrRepair()
	p.isSetUp = err == nil
	return w, err
}

// startOrRepair starts a worker. If it does not become ready, the files in the cache directory may be damaged. The
// first time this happens, startOrRepair removes them and tries again, which creates them anew.
func (p *Pool) startOrRepair() (_ *worker, err error) {
	defer reeve.Wrap(&err, "py.launch")
	w, h, err := p.tryStart()
	if err == nil || h.dir == "" || !p.repaired.CompareAndSwap(false, true) || h.removeDamaged() != nil {
		return w, err
	}
	w, _, err = p.tryStart()
	return w, err
}

// tryStart unpacks and compiles the interpreter if needed, and starts a worker from it. It returns the interpreter with
// an error if a damaged cache may be the reason.
func (p *Pool) tryStart() (*worker, interpreter, error) {
	h, err := unpack(p.config.Dir)
	if err != nil {
		return nil, interpreter{}, err
	}
	binary, err := p.workerPath()
	if err != nil {
		return nil, interpreter{}, err
	}
	if err := h.translate(func(dir string) error {
		proc, _, err := p.startProcess(child.Command{Binary: binary, Args: []string{workerArg, report.Translate,
			h.filePath(),
			h.sum, dir}}, translateTime)
		if proc != nil {
			proc.End()
		}
		return err
	}); err != nil {
		return nil, h, err
	}
	proc, mayBeDamaged, err := p.startProcess(child.Command{Binary: binary, Args: []string{workerArg, h.dir, h.sum,
		strconv.FormatInt(p.config.Memory, 10)}, Folder: h.dir, Confine: p.config.Confine}, startTime)
	if err != nil && !mayBeDamaged {
		h = interpreter{}
	}
	if err != nil {
		return nil, h, err
	}
	return &worker{Process: proc}, h, nil
}

// workerArg is the name under which a worker process is started.
const workerArg = "reeve-py-worker"

// startProcess starts a process of the worker program and waits for its ready frame. If it fails, mayBeDamaged reports
// whether a damaged cache may be the reason.
func (p *Pool) startProcess(c child.Command, timeout time.Duration) (_ *child.Process, mayBeDamaged bool, err error) {
	c.Env, c.Stderr = []string{"GOMAXPROCS=2", "TZ=UTC"}, p.config.Stderr
	proc, err := child.Start(c)
	if err != nil {
		return nil, false, reeve.Errorf(reeve.Unavailable, "cannot start a Python worker: %w", err)
	}
	timer := time.AfterFunc(timeout, proc.Kill)
	defer timer.Stop()
	p.trackStarting(proc)
	f, err := wire.ReadFrame(proc.Read)
	if p.untrackStarting(proc) && err != nil {
		proc.End()
		return nil, false, errClosed()
	}
	if err == nil && (f.Kind != wire.KindReady || string(f.Body) != version()) {
		proc.End()
		return nil, false, reeve.Errorf(reeve.Unavailable,
			"the Python worker has a different version from this program").
			Hintf("build both with make build")
	}
	if err != nil {
		proc.End()
		return nil, true, reeve.Errorf(reeve.Unavailable, "the Python worker did not become ready: %w",
			errors.Join(err, proc.ExitError()))
	}
	return proc, true, nil
}

func errClosed() error { return reeve.Errorf(reeve.Unavailable, "the Python sandbox is closed") }

// workerPath returns the path of the worker program: the configured one, or the embedded one, which it makes startable.
func (p *Pool) workerPath() (string, error) {
	if p.config.Binary != "" {
		return p.config.Binary, nil
	}
	p.programOnce.Do(func() {
		if p.program, p.programErr = newProgram(p.config.Dir); p.programErr != nil {
			p.programErr = reeve.Errorf(reeve.Unavailable, "cannot start the Python worker: %w", p.programErr)
		}
	})
	if p.programErr != nil {
		return "", p.programErr
	}
	return p.program.path, nil
}
