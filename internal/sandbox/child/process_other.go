//go:build !unix

package child

import (
	"os"
	"syscall"
)

// Self is this program's file.
func Self() (string, error) { return os.Executable() }

// environment is what a worker needs of the system's variables.
func environment() []string { return []string{"SYSTEMROOT=" + os.Getenv("SYSTEMROOT")} }

// directory is where a worker stands: nowhere in particular.
func directory() string { return os.TempDir() }

func attributes() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() } // a worker starts no processes

// peak is not known here.
func peak(*os.ProcessState) int64 { return 0 }
