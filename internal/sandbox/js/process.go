package js

import (
	"errors"
	"time"

	"reeve"
	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// startTime is how long a worker may take to become ready. It is generous, because a busy machine may be slow.
const startTime = 30 * time.Second

// startWorker starts a worker and waits until it is ready. It tries the configured program, or else the embedded
// program and then the running program.
func (p *Pool) startWorker() (*child.Process, error) {
	if p.config.Binary != "" {
		return p.startProgram(p.config.Binary)
	}
	if path := p.smallWorkerPath(); path != "" {
		if proc, err := p.startProgram(path); err == nil {
			return proc, nil
		}
		// The small worker has another version, or this system cannot start programs from memory.
		p.smallFails.Store(true)
	}
	if !servesWorkers.Load() {
		return nil, reeve.Errorf(reeve.Unsupported,
			"this program cannot run scripts: its main function does not call host.ServeWorker").
			Hintf("call host.ServeWorker() at the start of main")
	}
	path, err := child.ExecutablePath()
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot find the file of this program: %w", err)
	}
	return p.startProgram(path)
}

// smallWorkerPath returns the path of the embedded worker program in memory, or "" if there is none or it does not
// start.
func (p *Pool) smallWorkerPath() string {
	p.smallOnce.Do(func() {
		f, err := openSmallWorker()
		if err != nil {
			return
		}
		defer func() { _ = f.Close() }() // closing an embedded file does not fail
		if p.smallFile, p.smallPath, err = child.NewMemoryProgram("reeve-js-worker", f); err != nil {
			p.smallPath = ""
		}
	})
	if p.smallFails.Load() {
		return ""
	}
	return p.smallPath
}

// startProgram starts a program as a worker and waits for its ready frame. It fails if the worker has another version.
func (p *Pool) startProgram(binary string) (_ *child.Process, err error) {
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
		return nil, reeve.Errorf(reeve.Unavailable, "the script worker did not become ready: %w",
			errors.Join(err, proc.ExitError())).
			Hintf("check that main of %s calls host.ServeWorker() first", binary)
	}
	return proc, nil
}
