package reeve

import (
	"errors"
	"fmt"
	"time"

	"reeve/internal/canonjson"
)

// Code is the kind of an error. Codes are part of the API and never change their meaning.
type Code string

// The codes. Each has one HTTP status (package httpapi) and one line in docs/errors.md.
const (
	AlreadyExists    Code = "ALREADY_EXISTS"          // an object with this id or name exists
	ApprovalRequired Code = "APPROVAL_REQUIRED"       // a person must approve first; the call is parked
	AssemblyFailed   Code = "CONTEXT_ASSEMBLY_FAILED" // the prompt could not be assembled
	BudgetExceeded   Code = "BUDGET_EXCEEDED"         // the call would exceed a budget
	Canceled         Code = "CANCELED"                // the caller cancelled the request, or the run was ended
	// Conflict means that the operation id was used with other arguments, or that the state forbids the change.
	Conflict        Code = "CONFLICT"
	Corrupt         Code = "CORRUPT"          // a row of the database cannot be read
	Crashed         Code = "CRASHED"          // the server crashed too often during the run
	Denied          Code = "DENIED"           // policy or a person refused the call
	Forbidden       Code = "FORBIDDEN"        // the token's role or workspace does not allow it
	InProgress      Code = "IN_PROGRESS"      // the operation has started and has no outcome yet
	Internal        Code = "INTERNAL"         // an error in Reeve
	ModelFailed     Code = "MODEL_FAILED"     // the provider refused, or the answer is invalid
	NotFound        Code = "NOT_FOUND"        // no such object in this workspace
	OutOfScope      Code = "OUT_OF_SCOPE"     // outside the agent's categories or capabilities
	RateLimited     Code = "RATE_LIMITED"     // too many requests
	Skipped         Code = "SKIPPED"          // a person chose not to run it
	Stale           Code = "STALE"            // the state that the call is based on has changed
	StepLimit       Code = "STEP_LIMIT"       // the turn reached its limit of model requests
	Stopped         Code = "STOPPED"          // the kill switch is on
	Timeout         Code = "TIMEOUT"          // the time limit was exceeded
	TooLarge        Code = "TOO_LARGE"        // more bytes than allowed
	ToolFailed      Code = "TOOL_FAILED"      // the tool refused or failed, without effect
	Unauthenticated Code = "UNAUTHENTICATED"  // no valid token
	Unavailable     Code = "UNAVAILABLE"      // infrastructure is down; nothing was sent; a retry may work
	UnknownOutcome  Code = "UNKNOWN_OUTCOME"  // the effect may have happened; a person must resolve it
	Unsupported     Code = "UNSUPPORTED"      // not available in this build or on this machine
	Validation      Code = "VALIDATION_ERROR" // the input is invalid; see Fields
)

// Error is the error type of all packages: a code for programs, a message and a hint for people.
type Error struct {
	Code       Code
	Op         string        // where the error arose; logged, never shown to callers
	Message    string        // what is wrong
	Hint       string        // what to do
	Fields     []Field       // invalid inputs
	RetryAfter time.Duration // delay before a retry; 0 means unspecified
	Err        error         // cause; logged, never shown to callers
}

// Field describes one invalid input.
type Field struct {
	Path     string `json:"path" doc:"JSON Pointer of the invalid input; empty means the whole body"`
	Message  string `json:"message" doc:"What is wrong"`
	Expected string `json:"expected,omitempty" doc:"What is expected instead"`
}

// Errorf returns an error with a formatted message. A %w verb sets the cause.
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

// Error returns the text for logs: place, code, message and cause. Callers see Message and Hint only.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is compare by code: errors.Is(err, &reeve.Error{Code: reeve.NotFound}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// CodeOf returns the code of err, Internal if err has no code, and "" if err is nil.
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

// AsError returns the *Error in err's chain. Any other error becomes an Internal error with a neutral message.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "internal error", Err: err}
}

// Wrap adds a place to an error, for logs. Use it deferred: defer reeve.Wrap(&err, "gate.Call(%s)", tool).
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

// InvalidField returns a validation error about one input.
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
