package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is the real binary, running.
type server struct {
	cmd *exec.Cmd
	url string
}

// buildServer builds it from this tree, once.
func buildServer(ctx context.Context, c config) (string, error) {
	program := filepath.Join(c.dir, "reeve")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/reeve")
	build.Dir, build.Stderr = "..", os.Stderr
	return program, build.Run()
}

// startServer starts it on a data directory, and on a PostgreSQL database if one is named, and says how long it took from the
// start of the process until /readyz was answered.
func startServer(ctx context.Context, program, dir, database string) (*server, time.Duration, error) {
	args := []string{"serve", "--dir", dir, "--listen", "127.0.0.1:0"}
	if database != "" {
		args = append(args, "--database", database)
	}
	s := &server{cmd: exec.CommandContext(ctx, program, args...)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, 0, err
	}
	lines := bufio.NewScanner(out)
	for s.url == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), "is ready at "); ok {
			s.url = strings.TrimSpace(after)
		}
	}
	if s.url == "" {
		return nil, 0, errors.Join(errors.New("the server did not say that it is ready"), lines.Err(), s.cmd.Wait())
	}
	resp, err := http.Get(s.url + "/readyz")
	if err != nil {
		return nil, 0, errors.Join(err, s.stop())
	}
	took := time.Since(start)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, errors.Join(fmt.Errorf("/readyz says %s", resp.Status), s.stop())
	}
	return s, took, nil
}

func (s *server) stop() error {
	http.DefaultClient.CloseIdleConnections()
	return errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
}

// resident is the memory that the process holds, in MB.
func (s *server) resident() (float64, error) { return residentOf(strconv.Itoa(s.cmd.Process.Pid)) }

// residentOf is the memory that a process holds, in MB.
func residentOf(pid string) (float64, error) {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024, err
		}
	}
	return 0, errors.New("the kernel does not say how much memory a process holds")
}
