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

// assets holds the small program, if this program was built with it.
//
//go:embed asset
var assets embed.FS

// carried is where to start the small program that this one carries along, or nothing if there is none, or it is of
// another version, or this machine starts nothing from memory.
var carried = sync.OnceValue(func() string {
	f, err := assets.Open("asset/worker")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // it is part of this program
	file, path, err := child.NewMemoryProgram(childName, f)
	if err != nil {
		return ""
	}
	if versionOf(path) != cell.Version() {
		_ = file.Close()
		return ""
	}
	inMemory = file
	return path
})

// versionOf is what a program says that it is, or nothing.
func versionOf(path string) string {
	p, err := child.Start(child.Command{Binary: path, Args: []string{childName, "version"}})
	if err != nil {
		return ""
	}
	defer p.End()
	said, _ := io.ReadAll(p.Read) // less is another version
	return string(said)
}

// inMemory keeps the small program's file open, and so its path good.
var inMemory *os.File

// program is what to start as a sandbox: the small one, or this program again.
func program() string {
	if path := carried(); path != "" {
		return path
	}
	return "/proc/self/exe"
}

// HasSmallWorker tells whether this program carries the small one along, which starts in a fraction of the time that it
// would take itself.
func HasSmallWorker() bool {
	carried()
	return inMemory != nil
}
