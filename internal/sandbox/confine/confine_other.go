//go:build !linux || (!amd64 && !arm64)

package confine

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
)

// Available returns [Off] and the reason. Commands can be confined only on Linux.
func Available() (Mode, string) {
	return Off, "commands cannot be confined on " + runtime.GOOS + "/" + runtime.GOARCH +
		"; use Linux on amd64 or arm64"
}

// Serve does nothing on this system, because no process is started as a sandbox.
func Serve() { servesSandbox.Store(true) }

func run(context.Context, Command, Limits) (Result, error) {
	_, reason := Available()
	return Result{}, unsupportedError("%s", reason)
}

// NewMemoryFile returns an error on this system.
func NewMemoryFile(int64) (*os.File, error) {
	_, reason := Available()
	return nil, unsupportedError("%s", reason)
}

// KeepServerFile does nothing on this system, because no commands run.
func KeepServerFile(fs.FileInfo) {}

// Sweep does nothing on this system, because no commands run.
func Sweep() {}

// Usage returns 0 on this system.
func Usage(context.Context, string) (int64, error) { return 0, nil }

// HasSmallWorker returns false on this system.
func HasSmallWorker() bool { return false }

// ConfineWorker changes nothing on this system.
func ConfineWorker(*exec.Cmd, string) (started func(), err error) { return func() {}, nil }
