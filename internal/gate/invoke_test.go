package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"reeve"
)

func TestClassifyError(t *testing.T) {
	t.Parallel()
	dropping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}))
	defer dropping.Close()
	_, dropped := http.Get(dropping.URL) //nolint:bodyclose // the request fails, so there is no body
	closed := httptest.NewServer(nil)
	closed.Close()
	_, refusedDial := http.Get(closed.URL) //nolint:bodyclose // the request fails, so there is no body
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hung.Close()
	shortTimeout := &http.Client{Timeout: 50 * time.Millisecond}
	_, late := shortTimeout.Get(hung.URL) //nolint:bodyclose // the request fails, so there is no body
	_, noName := net.LookupHost("no-such-host.invalid")
	for _, c := range []struct {
		err  error
		want attemptStatus
	}{
		{nil, succeeded},
		{errors.New("timeout: connection reset, unexpected EOF"), refused},
		{fmt.Errorf("deep: %w", errors.New("deadline exceeded")), refused},
		{os.ErrNotExist, refused},
		{reeve.Errorf(reeve.ToolFailed, "no"), refused},
		{reeve.Errorf(reeve.Validation, "no"), refused},
		{reeve.Errorf(reeve.Denied, "no"), refused},
		{reeve.Errorf("", "no code"), refused},
		{reeve.Errorf(reeve.Unavailable, "down"), unsent},
		{reeve.Errorf(reeve.RateLimited, "slow"), unsent},
		{fmt.Errorf("wrapped: %w", reeve.Errorf(reeve.Unavailable, "down")), unsent},
		{refusedDial, unsent},
		{noName, unsent},
		{reeve.Errorf(reeve.Timeout, "late"), ambiguous},
		{reeve.Errorf(reeve.UnknownOutcome, "unknown"), ambiguous},
		{reeve.Errorf(reeve.Internal, "bug"), ambiguous},
		{context.DeadlineExceeded, ambiguous},
		{fmt.Errorf("x: %w", context.Canceled), ambiguous},
		{&toolCrash{what: "boom"}, ambiguous},
		{dropped, ambiguous},
		{late, ambiguous},
		{io.EOF, ambiguous},
		{io.ErrUnexpectedEOF, ambiguous},
		{syscall.ECONNRESET, ambiguous},
		{fmt.Errorf("x: %w", syscall.EPIPE), ambiguous},
		{net.ErrClosed, ambiguous},
		{os.ErrDeadlineExceeded, ambiguous},
	} {
		if got := classifyError(c.err); got != c.want {
			t.Errorf("%T %v: %d, want %d", c.err, c.err, got, c.want)
		}
	}
}
