package gate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A handler that takes too long is cancelled, and the next call works.
func TestG18_ATimeoutEndsTheHandlerAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, effect := range []reeve.Effect{reeve.Read, reeve.Local, reeve.Keyed, reeve.Unsafe} {
		for _, kind := range []string{"heeds", "ignores"} {
			t.Run(string(effect)+" "+kind, func(t *testing.T) {
				ended, never := make(chan error, 1), make(chan struct{})
				x := kit.Tool("x", effect, func(ctx context.Context, inv *reeve.Invocation) (any, error) {
					if string(inv.Args) != "{}" {
						return "quick", nil
					}
					<-ctx.Done()
					ended <- ctx.Err()
					if kind == "ignores" {
						<-never
					}
					return nil, ctx.Err()
				})
				x.TimeoutMS = 30
				h := reevetest.Start(t, x)
				t.Cleanup(func() { close(never) })
				a := h.Agent("a", "x")
				res := h.Call(a.ID, "x", nil)
				if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the handler was told %v", err)
				}
				want := map[reeve.Effect]reeve.State{reeve.Read: "", reeve.Local: reeve.Failed,
					reeve.Keyed: reeve.Dispatched, reeve.Unsafe: reeve.Unknown}[effect]
				if res.State != want {
					t.Errorf("%+v", res)
				}
				if effect == reeve.Read || effect == reeve.Local {
					if res.Code != reeve.Timeout || !strings.Contains(res.Message, "did not finish within 30ms") {
						t.Errorf("the result says %+v", res)
					}
				} else if op := kit.GetOperation(h, res.OperationID); !strings.Contains(op.Message,
					"did not finish within 30ms") {
					t.Errorf("the operation says %+v", op)
				}
				if res := h.Call(a.ID, "x", map[string]any{"n": 1}); res.Content != "quick" {
					t.Errorf("the next call: %+v", res)
				}
			})
		}
	}
}

// A tool that runs a program under its context leaves no child process behind.
func TestG18_TimeoutKillsTheProcessTree(t *testing.T) {
	t.Parallel()
	pids := make(chan int, 2)
	x := kit.Tool("x", reeve.Read, func(ctx context.Context, _ *reeve.Invocation) (any, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 600 & echo $!; wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		var child int
		if _, err := fmt.Fscan(out, &child); err != nil {
			return nil, err
		}
		pids <- cmd.Process.Pid
		pids <- child
		return nil, cmd.Wait()
	})
	x.TimeoutMS = 1000
	h := reevetest.Start(t, x)
	a := h.Agent("a", "x")
	if res := h.Call(a.ID, "x", nil); res.Code != reeve.Timeout {
		t.Errorf("%+v", res)
	}
	for range 2 {
		pid := <-pids
		kit.Eventually(t, "process "+strconv.Itoa(pid)+" to be gone", func() bool {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}
