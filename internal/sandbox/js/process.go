package js

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"reeve"
	"reeve/internal/sandbox/js/guest"
	"reeve/internal/sandbox/js/wire"
)

// startTime is how long a worker may take to be ready. It is generous: machines are busy, and the only alternative is failure.
const startTime = 30 * time.Second

// process is a worker as the host sees it.
type process struct {
	cmd  *exec.Cmd
	in   *os.File // what it reads
	out  *os.File // what it writes
	read *bufio.Reader
	once sync.Once
}

// spawn starts a worker and waits until it is ready.
func (p *Pool) spawn() (*process, error) {
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
		return nil, reeve.Errorf(reeve.Unsupported, "this program cannot run scripts: its main does not begin with ServeWorker").
			Hintf("call host.ServeWorker() first thing in main")
	}
	path, err := self()
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
		if p.smallFile, p.smallPath, err = inMemory(f); err != nil {
			p.smallPath = ""
		}
	})
	if p.smallFails.Load() {
		return ""
	}
	return p.smallPath
}

// launch starts one program as a worker.
func (p *Pool) launch(binary string) (_ *process, err error) {
	defer reeve.Wrap(&err, "js.launch")
	inRead, in, err := os.Pipe()
	if err != nil {
		return nil, reeve.Errorf(reeve.Unavailable, "cannot start a script worker: %w", err)
	}
	defer inRead.Close()
	out, outWrite, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, reeve.Errorf(reeve.Unavailable, "cannot start a script worker: %w", err)
	}
	defer outWrite.Close()
	// Nothing of this process's surroundings goes along: no variables, no files, no directory.
	cmd := &exec.Cmd{Path: binary, Args: []string{"reeve-js-worker"}, Env: append(environment(), workerVariable+"=1", "GOMAXPROCS=1", "TZ=UTC"),
		Dir: directory(), Stdin: inRead, Stdout: outWrite, SysProcAttr: attributes()}
	if p.config.Stderr != nil {
		cmd.Stderr = p.config.Stderr
	}
	proc := &process{cmd: cmd, in: in, out: out, read: bufio.NewReaderSize(out, 16<<10)}
	if p.config.Confine != nil {
		err = p.config.Confine(cmd)
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		in.Close()
		out.Close()
		return nil, reeve.Errorf(reeve.Unavailable, "cannot start a script worker: %w", err)
	}
	timer := time.AfterFunc(startTime, proc.kill)
	defer timer.Stop()
	f, err := wire.ReadFrame(proc.read)
	if err == nil && (f.Kind != wire.KindReady || string(f.Body) != guest.Version()) {
		err = wire.ErrMalformed
	}
	if err != nil {
		proc.end()
		return nil, reeve.Errorf(reeve.Unavailable, "a script worker did not get ready: %w", errors.Join(err, proc.fate())).
			Hintf("is %s a program whose main begins with host.ServeWorker()?", binary)
	}
	return proc, nil
}

// kill ends the process at once. It can be called at any time, from anywhere, more than once.
func (p *process) kill() { p.once.Do(func() { killGroup(p.cmd.Process) }) }

// end kills the process and waits until nothing of it is left.
func (p *process) end() {
	p.kill()
	_ = p.cmd.Wait() // that it was killed is no news
	p.in.Close()
	p.out.Close()
}

// fate says how an ended process ended, if not well.
func (p *process) fate() error {
	if s := p.cmd.ProcessState; s != nil && !s.Success() {
		return &exec.ExitError{ProcessState: s}
	}
	return nil
}
