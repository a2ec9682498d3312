//go:build !linux || (!amd64 && !arm64)

package confine

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
)

// Available says how commands are held on this machine: not at all.
func Available() (Mode, string) {
	return Off, "there is no confinement for " + runtime.GOOS + " on " + runtime.GOARCH +
		"; Linux on amd64 and arm64 has one"
}

// Serve turns this process into a sandbox if it was started to be one, which does not happen here.
func Serve() { served.Store(true) }

func run(context.Context, Command, Limits) (Result, error) {
	_, reason := Available()
	return Result{}, off("%s", reason)
}

// Room makes a file in memory for a command's Keep, of which there is none here.
func Room(int64) (*os.File, error) {
	_, reason := Available()
	return nil, off("%s", reason)
}

// Spare notes that the server itself made a file, which matters only where commands run.
func Spare(fs.FileInfo) {}

// Sweep clears away what servers left that died, which is nothing here.
func Sweep() {}

// Usage is how many bytes of its disk a folder holds, which is not looked at here.
func Usage(context.Context, string) (int64, error) { return 0, nil }

// Carries tells whether this program carries a small one along to start as a sandbox, which is of no use here.
func Carries() bool { return false }

// Worker confines a program of ours that runs somebody's code by itself, which cannot be done here: it changes nothing.
func Worker(*exec.Cmd, string) (started func(), err error) { return func() {}, nil }
