package js

import (
	"errors"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// startTime is how long a worker may take to be ready. It is generous: machines are busy, and the only alternative is
// failure.
const startTime = 30 * time.Second

// spawn starts a worker and waits until it is ready.
func (p *Pool) spawn() (*child.Process, error) {
	if p.config.Binary != "" {
		return p.launch(p.config.Binary)
	}
	if path := p.small(); path != "" {
		if proc, err := p.launch(path); err == nil {
			return proc, nil
		}
		p.smallFails.Store(true) // of another version, or this machine starts nothing from memory
	}
	if !served.Load() {
		return nil, reeve.Errorf(reeve.Unsupported,
			"this program cannot run scripts: its main does not begin with ServeWorker").
			Hintf("call host.ServeWorker() first thing in main")
	}
	path, err := child.Self()
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot find this program's own file: %w", err)
	}
	return p.launch(path)
}

// small is where to start the small worker program from, if this program carries it and it works.
func (p *Pool) small() string {
	p.smallOnce.Do(func() {
		f, err := asset()
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }() // it is part of this program
		if p.smallFile, p.smallPath, err = child.NewMemoryProgram("reeve-js-worker", f); err != nil {
			p.smallPath = ""
		}
	})
	if p.smallFails.Load() {
		return ""
	}
	return p.smallPath
}

// launch starts one program as a worker.
func (p *Pool) launch(binary string) (_ *child.Process, err error) {
	defer reeve.Wrap(&err, "js.launch")
	proc, err := child.Start(child.Command{Binary: binary, Args: []string{"reeve-js-worker"},
		Env:     []string{workerVariable + "=1", "GOMAXPROCS=1", "TZ=UTC"},
		Confine: p.config.Confine, Stderr: p.config.Stderr})
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot start a script worker: %w", err)
	}
	timer := time.AfterFunc(startTime, proc.Kill)
	defer timer.Stop()
	f, err := wire.ReadFrame(proc.Read)
	if err == nil && (f.Kind != wire.KindReady || string(f.Body) != guest.Version()) {
		err = wire.ErrMalformed
	}
	if err != nil {
		proc.End()
		return nil, reeve.Errorf(reeve.Unavailable, "a script worker did not get ready: %w",
			errors.Join(err, proc.ExitError())).
			Hintf("is %s a program whose main begins with host.ServeWorker()?", binary)
	}
	return proc, nil
}
