//go:build amd64 || arm64

package confine

import (
	"embed"
	"io"
	"os"
	"sync"

	"reeve/internal/sandbox/child"
	"reeve/internal/sandbox/confine/cell"
)

// assets contains the small sandbox program, if make build put it there.
//
//go:embed asset
var assets embed.FS

// smallWorkerPath returns the path of the embedded sandbox program in memory. It returns "" if there is none, if it has
// another version, or if this system cannot start programs from memory.
var smallWorkerPath = sync.OnceValue(func() string {
	f, err := assets.Open("asset/worker")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // closing an embedded file does not fail
	file, path, err := child.NewMemoryProgram(childName, f)
	if err != nil {
		return ""
	}
	if readVersion(path) != cell.Version() {
		_ = file.Close()
		return ""
	}
	smallWorkerFile = file
	return path
})

// readVersion returns the version that a program prints, or "" if it does not start.
func readVersion(path string) string {
	p, err := child.Start(child.Command{Binary: path, Args: []string{childName, "version"}})
	if err != nil {
		return ""
	}
	defer p.End()
	version, _ := io.ReadAll(p.Read) // an incomplete version differs from every version
	return string(version)
}

// smallWorkerFile is the embedded program in memory. Its path is valid while the file is open.
var smallWorkerFile *os.File

// sandboxProgram returns the path of the program to start as a sandbox: the small program or this one.
func sandboxProgram() string {
	if path := smallWorkerPath(); path != "" {
		return path
	}
	return "/proc/self/exe"
}

// HasSmallWorker reports whether the embedded sandbox program works. It starts much faster than the whole program.
func HasSmallWorker() bool {
	smallWorkerPath()
	return smallWorkerFile != nil
}
