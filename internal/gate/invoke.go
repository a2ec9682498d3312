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

// cleanupTime is how long a handler whose time is up may take to clean up and say what it did.
const cleanupTime = 250 * time.Millisecond

// invokeHandler runs the tool's handler once, and reads its answer. It is the only place that does. It returns by the tool's
// timeout whatever the handler does; one that stays behind finds its context ended, its transaction dead and its
// invocation closed.
func (a *Attempt) invokeHandler(ctx context.Context, inv *reeve.Invocation) (string, error) {
	return runWithTimeout(ctx, a.timeLimit(), func(ctx context.Context) (string, error) {
		v, err := a.tool().Handler(ctx, inv)
		if err != nil {
			return "", err
		}
		return a.g.renderValue(v), nil // here, because it may run code of the tool's own
	})
}

// errToolNotAsked stands for the word of a tool that is not asked. It has no code: errors are told apart by that, and a tool
// may refuse a call by any.
var errToolNotAsked = errors.New("left out: the tool itself would have to be asked, which takes the role of a member")

// runToolCheck runs one of a tool's own checks. An error of the check counts as the tool's refusal and is recorded as one.
func runToolCheck[T any](ctx context.Context, d *decider, f func(context.Context, *reeve.Invocation) (T, error)) (T, error) {
	if d.skipToolChecks {
		return *new(T), errToolNotAsked
	}
	inv := d.invocation(d.draftID, 0) // made here: a check that hangs must not look at a decision that goes on
	v, err := runWithTimeout(ctx, d.tool().Timeout(), func(ctx context.Context) (T, error) { return f(ctx, inv) })
	if err == nil {
		return v, nil
	}
	e := d.publicError(err)
	if e.Code == reeve.Internal { // would be taken for a fault of the gate
		e.Code = reeve.ToolFailed
	}
	return v, e
}

// runWithTimeout runs a tool's function with a timeout, and survives its panics.
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

// funcResult is what a tool's function came to.
type funcResult[T any] struct {
	v   T
	err error
}

// runRecovered runs a tool's function, and turns a panic into an error.
func runRecovered[T any](ctx context.Context, f func(context.Context) (T, error)) (a funcResult[T]) {
	defer func() {
		if r := recover(); r != nil {
			a.err = &toolCrash{what: fmt.Sprint(r), stack: debug.Stack()}
		}
	}()
	a.v, a.err = f(ctx)
	if a.err != nil {
		_ = a.err.Error() // a nil *reeve.Error in an error panics here, where that does no harm
	}
	return a
}

// runInGoroutine runs a tool's function on a goroutine of its own, and leaves it behind if it does not end with its context.
func runInGoroutine[T any](ctx context.Context, f func(context.Context) (T, error)) (a funcResult[T]) {
	done := make(chan funcResult[T], 1)
	go func() {
		a := funcResult[T]{err: &toolCrash{what: "it ended its goroutine"}} // unless it returns
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

// toolCrash is a handler that panicked or vanished.
type toolCrash struct {
	what  string
	stack []byte
}

func (c *toolCrash) Error() string { return "the tool crashed: " + c.what }

// attemptStatus is what an attempt proves.
type attemptStatus int

const (
	succeeded attemptStatus = iota
	refused                 // the tool refused: it had no effect
	unsent                  // nothing was sent: trying again may help
	ambiguous               // nobody can tell
	awaiting                // it has been taken, and its outcome comes from outside
)

// classifyError tells what an error proves, by its type and never by its text.
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
		return ambiguous // a connection was there, and was lost
	}
	return refused
}

// publicError turns an attempt's error into one that callers may see. The details of a crash go to the log only.
func (d *Decision) publicError(err error) *reeve.Error {
	var c *toolCrash
	if errors.As(err, &c) {
		d.g.Log.Error("a tool crashed", "tool", d.tool().ID, "call", d.draftID, "panic", d.redactForLog(c.what),
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
