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

// assets contains the frozen interpreter and the worker program, if make assets and make build put them there.
//
//go:embed asset
var assets embed.FS

// guestFiles are the sources of the worker, from which its version is computed. The worker itself is another program.
//
//go:embed guest/*.go
var guestFiles embed.FS

const (
	packedName = "asset/python.gz"     // the frozen interpreter
	sumName    = "asset/python.sha256" // checksum of its uncompressed content
	workerName = "asset/worker"
)

// version returns the version that a worker must report.
var version = sync.OnceValue(func() string { return wire.Version("py", guestFiles, "guest") })

// Available returns empty strings if this program can run Python. Otherwise it returns the reason and what to do.
func Available() (reason, hint string) {
	for _, a := range []struct{ name, what string }{{packedName, "the Python interpreter"},
		{sumName, "the Python interpreter's checksum"}, {workerName, "the Python worker"}} {
		if _, err := fs.Stat(assets, a.name); err != nil {
			return "this program was built without " + a.what,
				"install npm and run make assets build, which downloads the interpreter and embeds it"
		}
	}
	return "", ""
}

// readChecksum returns the expected checksum of the frozen interpreter.
func readChecksum() (string, error) {
	b, err := fs.ReadFile(assets, sumName)
	return strings.TrimSpace(string(b)), err
}

// program is the worker program. Its path is valid while its file is open.
type program struct {
	file *os.File
	path string
}

// newProgram makes the embedded worker program startable. It copies the program to memory, or to a file in dir if the
// system cannot start programs from memory.
func newProgram(dir string) (*program, error) {
	f, err := assets.Open(workerName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // closing an embedded file does not fail
	file, path, err := child.NewMemoryProgram("reeve-py-worker", f)
	if !errors.Is(err, errors.ErrUnsupported) {
		return &program{file, path}, err
	}
	path = filepath.Join(dir, "worker-"+version())
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return &program{path: path}, writeFileAtomically(path, 0o700, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// Close closes the program's file.
func (p *program) Close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
