// Package child starts worker processes that have nothing of their parent's but two pipes, and ends them for certain.
package child

import (
	"bufio"
	"os"
	"os/exec"
	"sync"
)

// Command says what to start.
type Command struct {
	Binary  string   // the program
	Args    []string // its command line, beginning with its name
	Env     []string // all the variables that it has
	Folder  string   // what it reads, if anything
	Confine Confine  // may be nil
	Stderr  *os.File // where it may say why it crashes; nil means nowhere
}

// Confine takes a last look at a command before it starts, to confine it to the folder that it reads, or to nothing if
// that is empty. What it gives is called when the command has started, or could not be.
type Confine func(cmd *exec.Cmd, folder string) (started func(), err error)

// Process is a worker as its host sees it.
type Process struct {
	In   *os.File      // what it reads
	Read *bufio.Reader // what it writes
	cmd  *exec.Cmd
	out  *os.File
	once sync.Once
}

// Start starts a worker in a process group of its own. Nothing of this process's surroundings goes along: no variables,
// no files, no directory.
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
	cmd := &exec.Cmd{Path: c.Binary, Args: c.Args, Env: append(environment(), c.Env...), Dir: directory(),
		Stdin: inRead, Stdout: outWrite, Stderr: stderr, SysProcAttr: attributes()}
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
		keepFiles()
		err = cmd.Start()
	}
	if err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return &Process{In: in, Read: bufio.NewReaderSize(out, 16<<10), cmd: cmd, out: out}, nil
}

// Kill ends the process and its group at once. It can be called at any time, from anywhere, more than once.
func (p *Process) Kill() { p.once.Do(func() { killGroup(p.cmd.Process) }) }

// End kills the process and waits until nothing of it is left.
func (p *Process) End() {
	p.Kill()
	_ = p.cmd.Wait() // that it was killed is no news
	p.In.Close()
	p.out.Close()
}

// ExitError says how an ended process ended, if not well.
func (p *Process) ExitError() error {
	if s := p.cmd.ProcessState; s != nil && !s.Success() {
		return &exec.ExitError{ProcessState: s}
	}
	return nil
}

// PeakMemory is the most memory that an ended process had, in bytes; 0 if it cannot be told.
func (p *Process) PeakMemory() int64 { return peak(p.cmd.ProcessState) }
