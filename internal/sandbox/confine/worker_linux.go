//go:build amd64 || arm64

package confine

import (
	"debug/elf"
	"os"
	"os/exec"
	"slices"
	"sync"
)

// Worker has a program of ours that runs somebody's code by itself, such as an interpreter, start in namespaces of its own, in which
// there is nothing, and under Landlock and seccomp; what else it needs not do it gives up itself. It speaks through its standard
// input and output only. Where there are no namespaces, and for programs that need the system's libraries, it changes nothing.
func Worker(cmd *exec.Cmd) error {
	if mode, _ := Available(); mode != Namespaces {
		return nil
	}
	file, err := workers.open(cmd.Path)
	if err != nil || file == nil {
		return err
	}
	sys, err := attributes(Command{Mode: Namespaces})
	if err != nil {
		return err
	}
	sys.Setsid, sys.Setpgid, sys.Pdeathsig = false, true, 0 // its host ends it by its group, and it ends by itself when its host is gone
	cmd.SysProcAttr = sys
	cmd.Args = append([]string{childName}, cmd.Args...)
	cmd.Path = program()
	cmd.ExtraFiles = []*os.File{file}
	return nil
}

// workers are the programs that were started so, each kept open.
var workers opened

type opened struct {
	mu    sync.Mutex
	files map[string]*os.File
}

// open opens a program, once; nil is one that cannot do without the system's libraries.
func (o *opened) open(path string) (*os.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f, ok := o.files[path]; ok {
		return f, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	e, err := elf.NewFile(f)
	if err != nil || slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		_ = f.Close()
		f = nil
	}
	if o.files == nil {
		o.files = map[string]*os.File{}
	}
	o.files[path] = f
	return f, nil
}
