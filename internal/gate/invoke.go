package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"reeve"
)

// grace is how long a handler whose time is up may take to clean up and say what it did.
const grace = 250 * time.Millisecond

// invoke runs the tool's handler once. It is the only place that does. It returns by the tool's timeout whatever the handler
// does; one that stays behind finds its context ended, its transaction dead and its invocation closed.
func (p *pass) invoke(ctx context.Context, inv *reeve.Invocation) (any, error) {
	return guard(ctx, p, func(ctx context.Context) (any, error) { return p.tool().Handler(ctx, inv) })
}

// guard runs a tool's function with its timeout, and survives it.
func guard[T any](ctx context.Context, p *pass, f func(context.Context) (T, error)) (T, error) {
	limit := p.tool().Timeout()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	go func() {
		a := answer{err: &crashed{what: "it ended its goroutine"}} // unless it returns
		defer func() {
			if r := recover(); r != nil {
				a.err = &crashed{what: fmt.Sprint(r), stack: debug.Stack()}
			}
			done <- a
		}()
		a.v, a.err = f(ctx)
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	var zero T
	select {
	case a := <-done:
		if a.err == nil {
			return a.v, nil
		}
	case <-late.C:
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return zero, reeve.Errorf(reeve.Canceled, "the call was cancelled")
	}
	return zero, reeve.Errorf(reeve.Timeout, "the tool did not finish within %s", limit)
}

// crashed is a handler that panicked or vanished.
type crashed struct {
	what  string
	stack []byte
}

func (c *crashed) Error() string { return "the tool crashed: " + c.what }

// ending is what an attempt proves.
type ending int

const (
	succeeded ending = iota
	refused          // the tool refused: it had no effect
	unsent           // nothing was sent: trying again may help
	ambiguous        // nobody can tell
)

// judgeError tells what an error proves, by its type and never by its text.
func judgeError(err error) ending {
	var e *reeve.Error
	var op *net.OpError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case err == nil:
		return succeeded
	case errors.As(err, &e):
		switch e.Code {
		case reeve.Unavailable, reeve.RateLimited:
			return unsent
		case reeve.Timeout, reeve.UnknownOutcome, reeve.Canceled, reeve.Internal:
			return ambiguous
		default:
			return refused
		}
	case errors.As(err, new(*crashed)), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ambiguous
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns):
		return unsent
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ambiguous
	}
	return refused
}

// shown turns an attempt's error into one fit for callers. A crash's details go to the log, not to them.
func (p *pass) shown(err error) *reeve.Error {
	var c *crashed
	if errors.As(err, &c) {
		p.g.Log.Error("a tool crashed", "tool", p.tool().ID, "call", p.id, "panic", c.what, "stack", string(c.stack))
		return reeve.Errorf(reeve.Internal, "the tool crashed")
	}
	var e *reeve.Error
	if errors.As(err, &e) {
		c := *e
		return &c
	}
	code := reeve.ToolFailed
	switch judgeError(err) {
	case unsent:
		code = reeve.Unavailable
	case ambiguous:
		code = reeve.Timeout
	case succeeded, refused:
	}
	return &reeve.Error{Code: code, Message: err.Error(), Err: err}
}
