package js

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// Kind is the way in which a run failed.
type Kind string

// The kinds.
const (
	Syntax    Kind = "SYNTAX"    // the script does not parse; nothing ran
	Thrown    Kind = "THROWN"    // the script threw an error and did not catch it
	Unhandled Kind = "UNHANDLED" // the script ended, and a rejected promise has no handler
	Stalled   Kind = "STALLED"   // the script awaits a promise that can never be settled
	Timeout   Kind = "TIMEOUT"   // the run exceeded Limits.Time
	Memory    Kind = "MEMORY"    // the run exceeded Limits.Memory
	Stack     Kind = "STACK"     // calls nest deeper than Limits.Stack
	Output    Kind = "OUTPUT"    // console output and result exceed Limits.Output
	Aborted   Kind = "ABORTED"   // a host call ended the run with Abort
	Compute   Kind = "COMPUTE"   // the script exceeded Limits.Compute
	Canceled  Kind = "CANCELED"  // the caller's context ended
	Crashed   Kind = "CRASHED"   // the worker process died or violated the protocol
)

// Error is the error of a failed run, or an error that a function of the script threw when the host called it.
type Error struct {
	Kind    Kind
	Name    string  // name of the JavaScript error, such as TypeError; empty if the thrown value is not an error
	Message string  // message of the JavaScript error, or the thrown value as text
	Script  string  // name of the script
	Line    int     // position in the script as written, counted from 1; 0 means unknown
	Column  int     // counted from 1
	Stack   []Frame // innermost first; only frames of the script
	Err     error   // error of the host call that caused the failure, or else a [reeve.Error] by kind

	invocation uint32 // id of the invocation that threw, so that the same value can be thrown back
}

// Frame is one line of a stack trace.
type Frame = wire.Place

func (e *Error) Error() string {
	var b strings.Builder
	if e.Script != "" && e.Line > 0 {
		fmt.Fprintf(&b, "%s:%d:%d: ", e.Script, e.Line, e.Column)
	}
	switch {
	case e.Name != "" && e.Message != "":
		b.WriteString(e.Name + ": " + e.Message)
	default:
		b.WriteString(e.Name + e.Message)
	}
	return b.String()
}

// copyPlaceTo copies the position and stack of e to other, and returns other.
func (e *Error) copyPlaceTo(other *Error) *Error {
	other.Line, other.Column, other.Stack = e.Line, e.Column, e.Stack
	return other
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of a run's error, or "" if err is nil or not an [*Error].
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// abortError wraps an error that ends the run.
type abortError struct{ err error }

func (a *abortError) Error() string { return a.err.Error() }
func (a *abortError) Unwrap() error { return a.err }

// Abort wraps the error of a host call so that the error ends the run. The script cannot catch the error, whether it
// awaits the call or not, and none of its later calls is performed.
func Abort(err error) error { return &abortError{err} }

// newError returns an Error without a position.
func newError(k Kind, script, format string, args ...any) *Error {
	e := &Error{Kind: k, Script: script, Message: fmt.Sprintf(format, args...)}
	e.Err = e.reeveError()
	return e
}

// NotRun is returned by a host call that was not made, as in a dry run. The script gets a placeholder: a value whose
// properties are placeholders too, and whose text is "‹Text, not run›" with the properties after Text.
type NotRun struct{ Text string }

func (n *NotRun) Error() string { return n.Text + " was not run" }

// reeveError returns a reeve.Error with the code that corresponds to the kind of e.
func (e *Error) reeveError() error {
	code, hint := reeve.ToolFailed, ""
	switch e.Kind {
	case Syntax:
		code = reeve.Validation
	case Thrown, Unhandled:
	case Stalled:
		hint = "settle every promise that the script awaits"
	case Timeout:
		code = reeve.Timeout
	case Compute:
		code, hint = reeve.Timeout, "look for an endless loop, or let a tool do the work"
	case Memory, Stack, Output:
		code = reeve.TooLarge
	case Aborted, Crashed:
		code = reeve.Internal
	case Canceled:
		code = reeve.Canceled
	}
	return reeve.Errorf(code, "%s", e.Error()).Hintf("%s", hint)
}

// canceledError returns the error of a run whose context ended.
func canceledError(ctx context.Context, script string) *Error {
	e := &Error{Kind: Canceled, Script: script, Message: "the run was cancelled", Err: context.Cause(ctx)}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Kind, e.Message = Timeout, "the run exceeded the caller's deadline"
	}
	return e
}
