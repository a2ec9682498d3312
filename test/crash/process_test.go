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

// process is a real server or witness: a process of its own that can be killed as a power cut would.
type process struct {
	cmd    *exec.Cmd
	url    string        // where it answers; set before ready is closed
	ready  chan struct{} // closed when it says that it answers
	gone   chan struct{} // closed when it has ended
	killed bool          // it was ended by SIGKILL; set before gone is closed
	err    error         // how it ended; set before gone is closed
	log    journal
}

// journal is what a process wrote to standard error.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// family is the processes that are running, so that none outlives the test.
type family struct {
	mu    sync.Mutex
	alive map[*process]bool
}

// start runs a program until it ends. It does not wait for it to be ready.
func (f *family) start(env []string, program string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(program, args...), ready: make(chan struct{}), gone: make(chan struct{})}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = orphanless()
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

// end kills whatever still runs.
func (f *family) end() {
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

// answered tells whether the process got as far as answering.
func (p *process) answered() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// kill is the power cut. It waits until the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.gone
}

// await waits until the process answers. errGone means that it ended before.
func (p *process) await(ctx context.Context) error {
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

// stop asks the process to end, as an operator does, and waits until it has.
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

// errGone is what a client sees of a crash: no connection, or one that broke off.
var errGone = errors.New("the server is gone")

// refusal is an answer that is not a success.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return fmt.Sprintf("status %d: %s", r.status, r.text) }

// refusedWith tells whether an error is an answer with this status.
func refusedWith(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == status
}

// caller makes requests as a client outside does.
type caller struct {
	http      *http.Client
	url       string
	token     string
	workspace string
}

// do makes a request. Headers come in pairs. It fails with errGone when there was no answer.
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
		return fmt.Errorf("%s %s: %w", method, path, &refusal{res.StatusCode, string(b)})
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// build makes the real binary and the witness, once for all tests, in the directory that TestMain removes.
var build = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-o", os.Getenv(buildDir)+"/", "reeve/cmd/reeve",
		"reeve/cmd/witness").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

// buildDir names the environment variable in which TestMain says where programs are built.
const buildDir = "REEVE_TEST_BUILD"

// programs gives the paths of the real binary and of the witness.
func programs(t *testing.T) (server, witness string) {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(os.Getenv(buildDir), "reeve"), filepath.Join(os.Getenv(buildDir), "witness")
}

// poll calls f until it says that it is done, or fails, or ctx ends.
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
