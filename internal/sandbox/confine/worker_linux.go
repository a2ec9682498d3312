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

// ConfineWorker changes the command of a worker process, such as an interpreter of untrusted code, so that it starts
// confined like a command of [Run]: in empty namespaces, under Landlock and seccomp, and unprivileged. The worker can
// use only its standard input and output, and read one folder if folder is not empty. Arguments that are paths in the
// folder are changed to the paths that the worker sees. Without namespaces only Landlock and seccomp confine the
// worker. In mode Off the command is not changed.
//
// The caller calls started, which closes files opened for the worker, once the worker has started or failed to start.
func ConfineWorker(cmd *exec.Cmd, folder string) (started func(), err error) {
	mode, _ := Available()
	return confineProgram(cmd, folder, mode)
}

func confineProgram(cmd *exec.Cmd, folder string, mode Mode) (started func(), err error) {
	var files openFiles
	if mode == Off {
		return files.close, nil
	}
	// The path of a program in memory is a descriptor number, which may be reused later. So the file is opened now.
	own, err := os.Open(cmd.Path)
	if err != nil {
		return files.close, err
	}
	files = append(files, own)
	libraries, err := isDynamic(own)
	if err != nil {
		return files.close, err
	}
	p := cell.Program{Folder: folder, Libraries: libraries, Namespaces: mode == Namespaces}
	extra := []*os.File{own}
	at := cell.FolderPath
	switch {
	case folder == "":
	case mode == Namespaces:
		trees := files.openTrees(Command{Root: folder, Mode: mode})
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
	encoded, err := json.Marshal(p)
	if err != nil {
		return files.close, err
	}
	sys, err := processAttributes(Command{Mode: mode})
	if err != nil {
		return files.close, err
	}
	// The host kills the worker by its process group, and the worker itself ends when its host is gone.
	sys.Setsid, sys.Setpgid, sys.Pdeathsig = false, true, 0
	cmd.SysProcAttr, cmd.ExtraFiles = sys, extra
	cmd.Path, cmd.Args = sandboxProgram(), []string{childName, string(encoded)}
	return files.close, nil
}

// isDynamic reports whether a program is dynamically linked and so needs the system's libraries.
func isDynamic(program *os.File) (bool, error) {
	e, err := elf.NewFile(program)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}
