//go:build amd64 || arm64

package confine

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"reeve/internal/sandbox/confine/cell"
)

// ConfineWorker has a program of ours that runs somebody's code by itself, such as an interpreter, start under the same
// walls as commands: in namespaces of its own, in which there is nothing, under Landlock and seccomp, and unprivileged.
// What else it needs not do it gives up itself. It speaks through its standard input and output only, and may read one
// folder, if it is given one: arguments that lie in it are made to fit where it sees it. Where there are no namespaces,
// Landlock and seccomp hold it alone; where nothing can be held, nothing is changed.
//
// What was opened for it is to be closed by started, when it has been started or cannot be.
func ConfineWorker(cmd *exec.Cmd, folder string) (started func(), err error) {
	mode, _ := Available()
	return worker(cmd, folder, mode)
}

func worker(cmd *exec.Cmd, folder string, mode Mode) (started func(), err error) {
	var files closers
	if mode == Off {
		return files.close, nil
	}
	// A program that is in memory has a path which may be another's tomorrow, so it is opened each time.
	own, err := os.Open(cmd.Path)
	if err != nil {
		return files.close, err
	}
	files = append(files, own)
	libraries, err := linked(own)
	if err != nil {
		return files.close, err
	}
	p := cell.Program{Folder: folder, Libraries: libraries, Namespaces: mode == Namespaces}
	extra := []*os.File{own}
	at := cell.FolderPath
	switch {
	case folder == "":
	case mode == Namespaces:
		trees := files.trees(Command{Root: folder, Mode: mode})
		extra, p.Opened = append(extra, trees...), len(trees) > 0
	default:
		f, err := os.Open(folder)
		if err != nil {
			return files.close, err
		}
		files = append(files, f)
		extra, at = append(extra, f), cell.FolderOpen
	}
	for _, a := range cmd.Args {
		if rest, ok := strings.CutPrefix(a, folder); ok && folder != "" &&
			(rest == "" || rest[0] == filepath.Separator) {
			a = at + rest
		}
		p.Args = append(p.Args, a)
	}
	told, err := json.Marshal(p)
	if err != nil {
		return files.close, err
	}
	sys, err := attributes(Command{Mode: mode})
	if err != nil {
		return files.close, err
	}
	// its host ends it by its group, and it ends by itself when its host is gone
	sys.Setsid, sys.Setpgid, sys.Pdeathsig = false, true, 0
	cmd.SysProcAttr, cmd.ExtraFiles = sys, extra
	cmd.Path, cmd.Args = program(), []string{childName, string(told)}
	return files.close, nil
}

// linked tells whether a program cannot do without the system's libraries.
func linked(program *os.File) (bool, error) {
	e, err := elf.NewFile(program)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}
