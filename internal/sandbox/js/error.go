package js

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reeve"
	"reeve/internal/sandbox/js/wire"
)

// Kind says how a run failed.
type Kind string

// The kinds.
const (
	Syntax    Kind = "SYNTAX"    // the script cannot be read; nothing ran
	Thrown    Kind = "THROWN"    // the script threw and nothing caught it
	Unhandled Kind = "UNHANDLED" // the script ended, but a promise was rejected and nobody ever listened
	Stalled   Kind = "STALLED"   // the script waits for something that nothing can bring about any more
	Timeout   Kind = "TIMEOUT"   // Limits.Time is over
	Memory    Kind = "MEMORY"    // Limits.Memory is used up
	Stack     Kind = "STACK"     // calls nest deeper than Limits.Stack
	Output    Kind = "OUTPUT"    // more console output and result than Limits.Output
	Aborted   Kind = "ABORTED"   // the host ended the run with Abort
	Canceled  Kind = "CANCELED"  // the caller's context ended
	Crashed   Kind = "CRASHED"   // the worker process died, or did not keep to the protocol
)

// Error is how a run failed, or what a function of the script's threw at the host.
type Error struct {
	Kind    Kind
	Name    string  // the JavaScript error's name, as TypeError; empty if what was thrown is no error
	Message string  // what it said
	Script  string  // the script's name
	Line    int     // where, in the script as written; 0 means not known
	Column  int     // both count from 1
	Stack   []Frame // innermost first; frames that are not the script's are left out
	Err     error   // the host's error if it was one of those, else a [reeve.Error] by kind

	invocation uint32 // of a guest function: lets the very same value be thrown back
}

// Frame is one line of a stack.
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

// at gives a better reason with the place of this one.
func (e *Error) at(why *Error) *Error {
	why.Line, why.Column, why.Stack = e.Line, e.Column, e.Stack
	return why
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf gives the kind of a run's error, or "" for nil and for errors that no run has.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// abort marks an error that ends the run.
type abort struct{ err error }

func (a *abort) Error() string { return a.err.Error() }
func (a *abort) Unwrap() error { return a.err }

// Abort wraps the error of a host call so that it ends the run. The script does not learn of it: there is nothing to
// catch, it does not matter whether it awaits the call, and no call that it makes after that is performed.
func Abort(err error) error { return &abort{err} }

// newError makes the error of a run without a stack.
func newError(k Kind, script, format string, args ...any) *Error {
	e := &Error{Kind: k, Script: script, Message: fmt.Sprintf(format, args...)}
	e.Err = e.cause()
	return e
}

// cause says in the words of the rest of Reeve what kind of failure this is.
func (e *Error) cause() error {
	code, hint := reeve.ToolFailed, ""
	switch e.Kind {
	case Syntax:
		code = reeve.Validation
	case Thrown, Unhandled:
	case Stalled:
		hint = "the script awaits a promise that nothing will settle"
	case Timeout:
		code = reeve.Timeout
	case Memory, Stack, Output:
		code = reeve.TooLarge
	case Aborted, Crashed:
		code = reeve.Internal
	case Canceled:
		code = reeve.Canceled
	}
	return reeve.Errorf(code, "%s", e.Error()).Hintf("%s", hint)
}

// canceled is the error of a run whose context ended.
func canceled(ctx context.Context, script string) *Error {
	e := &Error{Kind: Canceled, Script: script, Message: "the run was canceled", Err: context.Cause(ctx)}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Kind, e.Message = Timeout, "the caller's time for the run is over"
	}
	return e
}
