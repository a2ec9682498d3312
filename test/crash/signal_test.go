package crash_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServe_ASecondSignalEndsItAtOnce checks that the second SIGTERM ends a server that still waits for a call.
func TestServe_ASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	arrived := make(chan struct{}, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	defer slow.Close()
	program, _ := programPaths(t)
	p, c := startPlain(ctx, t, program, world{dir: t.TempDir()}, "REEVE_HTTP_ALLOW="+strings.TrimPrefix(slow.URL, "http://"))
	for path, body := range map[string]object{
		"/api/tools": {"id": "slow", "kind": "http", "description": "Takes long.", "effect": "read",
			"timeout_ms": 60000, "parameters": object{"type": "object"},
			"spec": object{"method": "GET", "url": slow.URL}},
		"/api/agents": {"name": "clerk"},
	} {
		if err := c.do(ctx, "POST", path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.do(ctx, "POST", "/api/agents/clerk/tools", object{"tool_id": "slow"}, nil); err != nil {
		t.Fatal(err)
	}
	// The call never ends.
	go func() {
		_ = c.do(ctx, "POST", "/api/agents/clerk/calls", object{"tool": "slow", "args": object{}}, nil)
	}()
	<-arrived
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := poll(ctx, "it to take no more requests", func() (bool, error) {
		return c.do(ctx, "GET", "/api/agents", nil, nil) != nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.gone
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() ||
		status.Signal() != syscall.SIGTERM {
		t.Errorf("the second signal did not end the server: %v: %s", p.err, &p.log)
	}
}
