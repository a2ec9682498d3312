package crash_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a real server or witness that can be killed as by a power cut.
type process struct {
	cmd    *exec.Cmd
	url    string        // where it answers; set before ready is closed
	ready  chan struct{} // closed when it says that it answers
	gone   chan struct{} // closed when it has ended
	killed bool          // it was ended by SIGKILL; set before gone is closed
	err    error         // how it ended; set before gone is closed
	log    logBuffer
}

// logBuffer is what a process wrote to standard error.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *logBuffer) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// processGroup has the running processes, so that none outlives the test.
type processGroup struct {
	mu    sync.Mutex
	alive map[*process]bool
}

// start starts a program. It does not wait until the program is ready.
func (f *processGroup) start(env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ready: make(chan struct{}), gone: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = killWithParent()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.alive[p] = true
	f.mu.Unlock()
	go func() {
		lines := bufio.NewScanner(out)
		for said := false; lines.Scan(); {
			if _, url, ok := strings.Cut(lines.Text(), "is ready at "); ok && !said {
				said, p.url = true, strings.TrimSpace(url)
				close(p.ready)
			}
		}
		p.err = p.cmd.Wait()
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		p.killed = ok && status.Signaled() && status.Signal() == syscall.SIGKILL
		f.mu.Lock()
		delete(f.alive, p)
		f.mu.Unlock()
		close(p.gone)
	}()
	return p, nil
}

// killAll kills the processes that still run.
func (f *processGroup) killAll() {
	f.mu.Lock()
	var left []*process
	for p := range f.alive {
		left = append(left, p)
	}
	f.mu.Unlock()
	for _, p := range left {
		p.kill()
	}
}

// hasAnswered reports whether the process became ready.
func (p *process) hasAnswered() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// kill kills the process and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

// waitUntilReady waits until the process is ready. errGone means that it ended before.
func (p *process) waitUntilReady(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.gone:
	case <-ctx.Done():
		return fmt.Errorf("the process was not ready in time: %s", &p.log)
	}
	if !p.killed {
		return fmt.Errorf("the process ended by itself: %w: %s", p.err, &p.log)
	}
	return errGone
}

// stop sends SIGTERM and waits until the process has ended.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.gone:
	case <-time.After(30 * time.Second):
		p.kill()
		return fmt.Errorf("the process did not stop when asked to: %s", &p.log)
	}
	if p.err != nil && !p.killed {
		return fmt.Errorf("the process did not end well: %w: %s", p.err, &p.log)
	}
	return nil
}

// errGone is the error of a request without an answer: no connection, or a broken one.
var errGone = errors.New("the server is gone")

// statusError is an answer that is not a success.
type statusError struct {
	status int
	text   string
}

func (r *statusError) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

// hasStatus reports whether an error is an answer with a status.
func hasStatus(err error, status int) bool {
	var r *statusError
	return errors.As(err, &r) && r.status == status
}

// caller makes requests as an outside client.
type caller struct {
	http      *http.Client
	url       string
	token     string
	workspace string
}

// do makes a request. Headers come in pairs. It fails with errGone if there was no answer.
func (c caller) do(ctx context.Context, method, path string, in, out any, headers ...string) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
		req.Header.Set("X-Workspace-Id", c.workspace)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s took too long: %w", method, path, err)
		}
		return fmt.Errorf("%w: %w", errGone, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %w", method, path, &statusError{res.StatusCode, string(b)})
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// buildPrograms builds the real binary and the witness once, in the folder that TestMain removes.
var buildPrograms = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-o", os.Getenv(buildDir)+"/", "reeve/cmd/reeve",
		"reeve/cmd/witness").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

// buildDir is the environment variable that names the folder for built programs.
const buildDir = "REEVE_TEST_BUILD"

// programPaths returns the paths of the real binary and of the witness.
func programPaths(t *testing.T) (server, witness string) {
	t.Helper()
	if err := buildPrograms(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(os.Getenv(buildDir), "reeve"), filepath.Join(os.Getenv(buildDir), "witness")
}

// poll calls f until it is done, it fails, or ctx ends.
func poll(ctx context.Context, what string, f func() (bool, error)) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited too long: %s", what)
		case <-time.After(wait):
		}
	}
}
