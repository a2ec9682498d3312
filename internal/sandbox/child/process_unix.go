//go:build unix

package child

import (
	"os"
	"runtime"
	"syscall"
)

// Self is this program's file. On Linux it is the very file that runs, even if another has taken its name since.
func Self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// environment is what a worker needs of the system's variables: nothing.
func environment() []string { return nil }

// directory is where a worker stands: nowhere in particular.
func directory() string { return "/" }

// attributes put a worker in a process group of its own, so that all of it can be killed, and keep terminal signals
// from it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) {
	if syscall.Kill(-p.Pid, syscall.SIGKILL) != nil {
		_ = p.Kill() // not yet in its group, or gone
	}
}

// peak is the most memory that an ended process had, in bytes. 0 means that it cannot be told: before a process is a
// program of its own it is a copy of this one, and that counts too.
func peak(s *os.ProcessState) int64 {
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
