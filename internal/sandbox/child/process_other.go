//go:build !unix

package child

import (
	"os"
	"syscall"
)

// ExecutablePath returns the path of this program's file.
func ExecutablePath() (string, error) { return os.Executable() }

// environment returns the variables that every process on this system needs.
func environment() []string { return []string{"SYSTEMROOT=" + os.Getenv("SYSTEMROOT")} }

// workingDirectory returns the directory in which workers start.
func workingDirectory() string { return os.TempDir() }

func processAttributes() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() } // a worker starts no processes

// peakMemory returns 0, because the value is unknown on this system.
func peakMemory(*os.ProcessState) int64 { return 0 }
