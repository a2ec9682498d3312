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
	exitPending = 3
)

// usageError is an invalid command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usagef returns a usageError with a formatted message.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitError ends a command with an exit code, without printing anything more.
type exitError struct{ code int }

func (s exitError) Error() string { return fmt.Sprintf("exit code %d", s.code) }

// reportError prints the error of a command, if any, and returns the exit code.
func (a *app) reportError(err error, command string) int {
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return exit.code
	}
	code := exitFailed
	var usage usageError
	if errors.As(err, &usage) {
		code = exitUsage
		err = &reeve.Error{Code: reeve.Validation, Message: usage.Error(), Hint: "see: " + command + " --help"}
	}
	var e *reeve.Error
	if !errors.As(err, &e) {
		e = &reeve.Error{Code: reeve.Internal, Message: err.Error(), Err: err}
	}
	if e.Code == reeve.UnknownOutcome || e.Code == reeve.Canceled {
		code = exitPending
	}
	a.showError(e)
	return code
}

// showError prints an error to standard error: as text, or with --json as a problem document like those of the API.
func (a *app) showError(e *reeve.Error) {
	p, rejected := client.ProblemOf(e)
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
	fmt.Fprintln(a.err, "reeve:", sanitize(e.Message))
	for _, f := range e.Fields {
		line := "  " + sanitize(f.Path) + ": " + sanitize(f.Message)
		if f.Path == "" {
			line = "  " + sanitize(f.Message)
		}
		if f.Expected != "" {
			line += " (expected: " + sanitize(f.Expected) + ")"
		}
		fmt.Fprintln(a.err, line)
	}
	if e.Hint != "" {
		fmt.Fprintln(a.err, "hint:", sanitize(e.Hint))
	}
	if p.CallID != "" {
		fmt.Fprintln(a.err, "why: reeve explain", sanitize(p.CallID))
	}
	if e.Code == reeve.Internal && p.RequestID != "" {
		fmt.Fprintln(a.err, "request:", sanitize(p.RequestID))
	}
}
