package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reeve"
	"reeve/api"
	"reeve/client"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitNotDone = 3
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// silent ends a command that has said all there is to say.
type silent struct{ code int }

func (s silent) Error() string { return fmt.Sprintf("exit code %d", s.code) }

// report shows a command's error and gives the exit code.
func (a *app) report(err error, command string) int {
	var s silent
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &s):
		return s.code
	}
	code := exitFailed
	var wrong usageError
	if errors.As(err, &wrong) {
		code = exitUsage
		err = &reeve.Error{Code: reeve.Validation, Message: wrong.Error(), Hint: "see: " + command + " --help"}
	}
	var e *reeve.Error
	if !errors.As(err, &e) {
		e = &reeve.Error{Code: reeve.Internal, Message: err.Error(), Err: err}
	}
	if e.Code == reeve.UnknownOutcome || e.Code == reeve.Canceled {
		code = exitNotDone
	}
	a.show(e)
	return code
}

// show writes an error to the error stream: for people in lines, for programs as the problem the API would give.
func (a *app) show(e *reeve.Error) {
	p, rejected := client.Rejected(e)
	if a.json {
		if !rejected {
			p = api.Problem{Type: "about:blank", Title: strings.ToLower(strings.ReplaceAll(string(e.Code), "_", " "))}
		}
		p.Code, p.Detail, p.Hint, p.Errors = e.Code, e.Message, e.Hint, e.Fields
		enc := json.NewEncoder(a.err)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(p)
		return
	}
	fmt.Fprintln(a.err, "reeve:", plain(e.Message))
	for _, f := range e.Fields {
		line := "  " + plain(f.Path) + ": " + plain(f.Message)
		if f.Path == "" {
			line = "  " + plain(f.Message)
		}
		if f.Expected != "" {
			line += " (expected: " + plain(f.Expected) + ")"
		}
		fmt.Fprintln(a.err, line)
	}
	if e.Hint != "" {
		fmt.Fprintln(a.err, "hint:", plain(e.Hint))
	}
	if p.CallID != "" {
		fmt.Fprintln(a.err, "why: reeve explain", plain(p.CallID))
	}
	if e.Code == reeve.Internal && p.RequestID != "" {
		fmt.Fprintln(a.err, "request:", plain(p.RequestID))
	}
}
