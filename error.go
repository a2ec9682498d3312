package reeve

import (
	"errors"
	"fmt"
	"time"

	"reeve/internal/canonjson"
)

// Code says what kind of error this is. Codes are part of the API: they survive the wire and never change meaning.
type Code string

// The codes. Each has one HTTP status (package httpapi) and one line in docs/errors.md.
const (
	AlreadyExists    Code = "ALREADY_EXISTS"          // the thing is there already
	ApprovalRequired Code = "APPROVAL_REQUIRED"       // a person must approve first; the call is parked
	AssemblyFailed   Code = "CONTEXT_ASSEMBLY_FAILED" // what a model should be asked could not be put together
	BudgetExceeded   Code = "BUDGET_EXCEEDED"         // the call would cost more than is left
	Canceled         Code = "CANCELED"                // the caller went away
	// the same operation id was used with other arguments, or the state forbids it
	Conflict        Code = "CONFLICT"
	Corrupt         Code = "CORRUPT"          // a row of the database cannot be read
	Crashed         Code = "CRASHED"          // a run took its server with it too often, and was given up
	Denied          Code = "DENIED"           // policy or a person said no
	Forbidden       Code = "FORBIDDEN"        // the token's role or workspace does not allow it
	InProgress      Code = "IN_PROGRESS"      // the operation has begun and its outcome is not recorded yet
	Internal        Code = "INTERNAL"         // a fault of Reeve's own
	ModelFailed     Code = "MODEL_FAILED"     // the model's provider refused, or its answer makes no sense
	NotFound        Code = "NOT_FOUND"        // no such thing here
	OutOfScope      Code = "OUT_OF_SCOPE"     // outside the agent's categories or capabilities
	RateLimited     Code = "RATE_LIMITED"     // too many requests
	Skipped         Code = "SKIPPED"          // a person chose not to run it
	Stale           Code = "STALE"            // what the call was based on has changed
	StepLimit       Code = "STEP_LIMIT"       // a turn came to its limit of moves; the next one starts afresh
	Stopped         Code = "STOPPED"          // the kill switch is on
	Timeout         Code = "TIMEOUT"          // it took too long
	TooLarge        Code = "TOO_LARGE"        // more bytes than allowed
	ToolFailed      Code = "TOOL_FAILED"      // the tool refused or failed; it did not have its effect
	Unauthenticated Code = "UNAUTHENTICATED"  // no valid token
	Unavailable     Code = "UNAVAILABLE"      // infrastructure is down; nothing was sent; trying again may work
	UnknownOutcome  Code = "UNKNOWN_OUTCOME"  // it may or may not have happened; a person must say
	Unsupported     Code = "UNSUPPORTED"      // not in this build or on this machine
	Validation      Code = "VALIDATION_ERROR" // the input is wrong; Fields says where
)

// Error is the error of every room: a code for programs, a message and a hint for people.
type Error struct {
	Code       Code          // what kind
	Op         string        // where it arose, for logs; never shown to callers
	Message    string        // what was wrong
	Hint       string        // what to do about it
	Fields     []Field       // which inputs were wrong, and what was expected
	RetryAfter time.Duration // when trying again makes sense; 0 means not said
	Err        error         // the cause; never shown to callers
}

// Field is one wrong input.
type Field struct {
	Path     string `json:"path" doc:"JSON Pointer of the wrong input; empty means the whole"`
	Message  string `json:"message" doc:"What is wrong with it"`
	Expected string `json:"expected,omitempty" doc:"What was expected there"`
}

// Errorf makes an error. A %w verb sets the cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// Hintf returns a copy of e with a hint.
func (e *Error) Hintf(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// Error is for logs: where, what, why. Callers are shown Message and Hint only.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil && e.Err.Error() != e.Message {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is compare by code: errors.Is(err, &reeve.Error{Code: reeve.NotFound}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf gives the code of an error, or Internal for one that has none, or "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// AsError gives err as an *Error, wrapping a foreign one as Internal with a message fit for callers.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "internal error", Err: err}
}

// Wrap notes where an error passed, for logs. Use it deferred: defer reeve.Wrap(&err, "gate.Call(%s)", tool).
func Wrap(err *error, format string, args ...any) {
	if *err == nil {
		return
	}
	op := fmt.Sprintf(format, args...)
	var e *Error
	if errors.As(*err, &e) {
		c := *e
		if c.Op = op; e.Op != "" {
			c.Op = op + ": " + e.Op
		}
		*err = &c
		return
	}
	*err = &Error{Code: Internal, Op: op, Message: "internal error", Err: *err}
}

// InvalidField is an error about one input.
func InvalidField(path, message, expected string) error {
	what := path
	if what == "" {
		what = "the input"
	}
	return &Error{Code: Validation, Message: what + " " + message,
		Fields: []Field{{Path: path, Message: message, Expected: expected}}}
}

// InvalidJSON returns the validation error for a text that canonjson failed to parse with err.
func InvalidJSON(err error) *Error {
	problem := err.Error()
	var e *canonjson.Error
	if errors.As(err, &e) {
		problem = e.Message
	}
	return &Error{Code: Validation, Message: err.Error(),
		Fields: []Field{{Message: problem, Expected: "one valid JSON value"}}}
}
