// Package child starts worker processes and ends them. A worker inherits nothing from its parent except two pipes: no
// variables, no open files and no working directory.
//
// [Start] runs a [Command] in a process group of its own and returns a [Process]. [Process.End] kills the whole group
// and waits for the process. [NewMemoryProgram] and [ProgramPath] start a program that exists only in memory.
package child

import (
	"bufio"
	"os"
	"os/exec"
	"sync"
)

// Command describes a worker process to start.
type Command struct {
	Binary  string   // path of the program
	Args    []string // command line, beginning with the program's name
	Env     []string // the complete environment, as name=value
	Folder  string   // folder that the worker reads; empty means none
	Confine Confine  // changes the command before it starts; may be nil
	Stderr  *os.File // standard error, for crash messages; nil discards them
}

// Confine changes a command before it starts, so that the process can read only folder, or no file if folder is empty.
// The caller calls started once the command has started or failed to start, even if Confine returns an error.
type Confine func(cmd *exec.Cmd, folder string) (started func(), err error)

// Process is a running worker process.
type Process struct {
	In   *os.File      // the worker's standard input
	Read *bufio.Reader // the worker's standard output
	cmd  *exec.Cmd
	out  *os.File
	once sync.Once
}

// Start starts a worker in a process group of its own. The worker inherits no variables, open files or working
// directory from this process.
func Start(c Command) (*Process, error) {
	inRead, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inRead.Close()
	out, outWrite, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, err
	}
	defer outWrite.Close()
	stderr := c.Stderr
	if stderr == nil {
		if stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
			in.Close()
			out.Close()
			return nil, err
		}
		defer stderr.Close()
	}
	cmd := &exec.Cmd{Path: c.Binary, Args: c.Args, Env: append(environment(), c.Env...), Dir: workingDirectory(),
		Stdin: inRead, Stdout: outWrite, Stderr: stderr, SysProcAttr: processAttributes()}
	if c.Confine != nil {
		started, refused := c.Confine(cmd, c.Folder)
		defer started()
		err = refused
	}
	if err == nil {
		var done func()
		cmd.Path, done, err = ProgramPath(cmd.Path, append([]*os.File{inRead, outWrite, stderr}, cmd.ExtraFiles...))
		defer done()
	}
	if err == nil {
		closeFilesOnExec()
		err = cmd.Start()
	}
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return &Process{In: in, Read: bufio.NewReaderSize(out, 16<<10), cmd: cmd, out: out}, nil
}

// Kill kills the process group without waiting for it. It is safe to call Kill more than once and concurrently.
func (p *Process) Kill() { p.once.Do(func() { killGroup(p.cmd.Process) }) }

// End kills the process group, waits for the process and closes its pipes.
func (p *Process) End() {
	p.Kill()
	_ = p.cmd.Wait() // the error only says that the process was killed; see ExitError
	p.In.Close()
	p.out.Close()
}

// ExitError returns how the process ended, or nil if it succeeded. It is valid after [Process.End].
func (p *Process) ExitError() error {
	if s := p.cmd.ProcessState; s != nil && !s.Success() {
		return &exec.ExitError{ProcessState: s}
	}
	return nil
}

// PeakMemory returns the largest resident memory of the process in bytes, or 0 if it is unknown. It is valid after
// [Process.End].
func (p *Process) PeakMemory() int64 { return peakMemory(p.cmd.ProcessState) }
