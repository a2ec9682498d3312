//go:build unix

package child

import (
	"os"
	"runtime"
	"syscall"
)

// ExecutablePath returns the path of this program's file. On Linux the path leads to the running file even if a newer
// file has replaced it on disk.
func ExecutablePath() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// environment returns the variables that every process on this system needs: none.
func environment() []string { return nil }

// workingDirectory returns the directory in which workers start.
func workingDirectory() string { return "/" }

// processAttributes returns attributes that put a worker in a process group of its own. The whole group can be killed,
// and it receives no signals from the terminal.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) {
	if syscall.Kill(-p.Pid, syscall.SIGKILL) != nil {
		_ = p.Kill() // the process has not joined its group yet, or is gone
	}
}

// peakMemory returns the largest resident memory of an ended process in bytes, or 0 if it is unknown. Until exec, a new
// process is a copy of this one and has its memory. So a peak that is not above this process's own peak says nothing.
func peakMemory(s *os.ProcessState) int64 {
	var own syscall.Rusage
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || u.Maxrss <= own.Maxrss {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
