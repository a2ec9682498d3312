package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime/debug"
	"syscall"
	"time"

	"reeve"
)

// cleanupTime is how long a handler may still run after its timeout, to clean up and return an error.
const cleanupTime = 250 * time.Millisecond

// invokeHandler runs the tool's handler once and renders its result as text. No other function runs handlers. It
// returns after the tool's timeout even if the handler does not. Such a handler finds its context cancelled, its
// transaction closed and its invocation closed.
func (a *Attempt) invokeHandler(ctx context.Context, inv *reeve.Invocation) (string, error) {
	return runWithTimeout(ctx, a.timeLimit(), func(ctx context.Context) (string, error) {
		v, err := a.tool().Handler(ctx, inv)
		if err != nil {
			return "", err
		}
		return a.g.renderValue(v), nil // within the timeout, because it may run a MarshalJSON of the tool
	})
}

// errToolNotAsked is returned instead of the result of a tool's own check if such checks are skipped. It has no code,
// so it cannot be confused with a refusal by a tool.
var errToolNotAsked = errors.New("skipped: running the tool's own check requires the role member")

// runToolCheck runs one of a tool's own checks. An error of the check counts as a refusal by the tool.
func runToolCheck[T any](ctx context.Context, d *decider,
	f func(context.Context, *reeve.Invocation) (T, error)) (T, error) {
	if d.skipToolChecks {
		return *new(T), errToolNotAsked
	}
	inv := d.invocation(d.draftID, 0) // built here, so that a check that hangs does not read the changing Decision
	v, err := runWithTimeout(ctx, d.tool().Timeout(), func(ctx context.Context) (T, error) { return f(ctx, inv) })
	if err == nil {
		return v, nil
	}
	e := d.publicError(err)
	if e.Code == reeve.Internal { // reserved for defects of the gate
		e.Code = reeve.ToolFailed
	}
	return v, e
}

// runWithTimeout runs a function of a tool with a timeout and turns a panic into an error.
func runWithTimeout[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := runInGoroutine(ctx, f)
	if a.err == nil || ctx.Err() == nil {
		return a.v, a.err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return a.v, reeve.Errorf(reeve.Canceled, "the call was cancelled")
	}
	return a.v, reeve.Errorf(reeve.Timeout, "the tool did not finish within %s", limit)
}

// funcResult is the return value of a tool's function.
type funcResult[T any] struct {
	v   T
	err error
}

// runRecovered runs a function of a tool and turns a panic into an error.
func runRecovered[T any](ctx context.Context, f func(context.Context) (T, error)) (a funcResult[T]) {
	defer func() {
		if r := recover(); r != nil {
			a.err = &toolCrash{what: fmt.Sprint(r), stack: debug.Stack()}
		}
	}()
	a.v, a.err = f(ctx)
	if a.err != nil {
		_ = a.err.Error() // panics for a nil *reeve.Error, which is recovered here
	}
	return a
}

// runInGoroutine runs a function of a tool in its own goroutine and abandons the goroutine if it does not end with its
// context.
func runInGoroutine[T any](ctx context.Context, f func(context.Context) (T, error)) (a funcResult[T]) {
	done := make(chan funcResult[T], 1)
	go func() {
		a := funcResult[T]{err: &toolCrash{what: "it called runtime.Goexit"}} // replaced if f returns
		defer func() { done <- a }()
		a = runRecovered(ctx, f)
	}()
	select {
	case a = <-done:
	case <-ctx.Done():
		late := time.NewTimer(cleanupTime)
		defer late.Stop()
		select {
		case a = <-done:
		case <-late.C:
			a.err = ctx.Err()
		}
	}
	return a
}

// toolCrash is the error of a tool's function that panicked or ended its goroutine.
type toolCrash struct {
	what  string
	stack []byte
}

func (c *toolCrash) Error() string { return "the tool crashed: " + c.what }

// attemptStatus is what an attempt proves about its effect.
type attemptStatus int

const (
	succeeded attemptStatus = iota
	refused                 // the tool refused the call, which had no effect
	unsent                  // nothing was sent, so another attempt may succeed
	ambiguous               // the call may have taken effect
	awaiting                // the call was accepted and its outcome arrives later from outside
)

// classifyError returns what an error of a handler proves. It looks at the type of the error and never at its text.
func classifyError(err error) attemptStatus {
	if err == nil {
		return succeeded
	}
	var e *reeve.Error
	var op *net.OpError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &e):
		switch e.Code {
		case reeve.Unavailable, reeve.RateLimited:
			return unsent
		case reeve.InProgress:
			return awaiting
		case reeve.Timeout, reeve.UnknownOutcome, reeve.Canceled, reeve.Internal, reeve.Corrupt:
			return ambiguous
		default:
			return refused
		}
	case errors.As(err, new(*toolCrash)), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ambiguous
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns):
		return unsent
	case errors.As(err, &op), errors.As(err, new(*url.Error)), errors.As(err, &timeout) && timeout.Timeout(),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.EPIPE):
		return ambiguous // the connection was lost after it was established
	}
	return refused
}

// publicError converts an error of a tool into one that callers may see. The details of a crash are only logged.
func (d *Decision) publicError(err error) *reeve.Error {
	var c *toolCrash
	if errors.As(err, &c) {
		d.g.Log.Error("tool crashed", "tool", d.tool().ID, "call", d.draftID, "panic", d.redactForLog(c.what),
			"stack", d.redactForLog(string(c.stack)))
		return reeve.Errorf(reeve.Internal, "the tool crashed")
	}
	var e *reeve.Error
	if errors.As(err, &e) {
		c := *e
		if c.Code == "" {
			c.Code = reeve.ToolFailed
		}
		if c.Message == "" {
			c.Message = "the tool failed"
		}
		return &c
	}
	code := reeve.ToolFailed
	switch classifyError(err) {
	case unsent:
		code = reeve.Unavailable
	case ambiguous:
		code = reeve.Timeout
	case succeeded, refused, awaiting:
	}
	return &reeve.Error{Code: code, Message: err.Error(), Err: err}
}
