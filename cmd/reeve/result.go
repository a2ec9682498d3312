package main

import (
	"fmt"
	"io"
	"strings"

	"reeve"
)

// printResult prints the result of a call: the tool's content to standard output, everything else to standard error.
// If the call did not succeed, it returns an exitError.
func (a *app) printResult(res reeve.Result) error {
	code := resultExitCode(res)
	if a.json {
		if err := a.print(res, nil); err != nil {
			return err
		}
	} else if isPending(res) {
		a.notePending(res)
	} else if res.IsError || res.State == reeve.DeniedOp {
		a.showError(&reeve.Error{Code: res.Code, Message: failureMessage(res), Hint: res.Hint, Fields: res.Fields})
		a.notef("why: reeve explain %s", res.CallID)
	} else {
		printContent(a.out, res.Content)
		a.noteResult(res)
	}
	if code != exitDone {
		return exitError{code}
	}
	return nil
}

// resultExitCode returns the exit code for the result of a call.
func resultExitCode(res reeve.Result) int {
	switch {
	case isPending(res), res.State == reeve.ProposedOp:
		return exitPending
	case res.IsError, res.State == reeve.Failed, res.State == reeve.DeniedOp:
		return exitFailed
	}
	return exitDone
}

// failureMessage returns the message of a failed call.
func failureMessage(res reeve.Result) string {
	if res.Message != "" {
		return res.Message
	}
	if res.Content != "" {
		return res.Content
	}
	return "the call is " + string(res.State)
}

// printContent prints s and ends it with a line break.
func printContent(w io.Writer, s string) {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	fmt.Fprint(w, s)
}

// notePending prints why a call is not finished, and what to do.
func (a *app) notePending(res reeve.Result) {
	switch {
	case res.ApprovalID != "":
		a.notef("approval required: %s", sanitize(res.Message))
		a.notef("show:    reeve approvals show %s", res.ApprovalID)
		a.notef("approve: reeve approvals approve %s --wait", res.ApprovalID)
		a.notef("deny:    reeve approvals deny %s", res.ApprovalID)
	case res.State == reeve.Parked:
		a.notef("the call waits for a person; see reeve inbox")
	case res.State == reeve.Unknown:
		a.notef("unknown outcome: %s", sanitize(res.Message))
		a.notef("check whether the change happened, then: reeve operations resolve %s happened|retry|skip",
			res.OperationID)
	default:
		a.notef("the operation is %s; follow it: reeve operations show %s --wait", res.State, res.OperationID)
	}
}

// noteResult prints what a user can do next with a finished call.
func (a *app) noteResult(res reeve.Result) {
	if res.ProposalID != "" {
		a.notef("show:   reeve proposals show %s", res.ProposalID)
		a.notef("accept: reeve proposals accept %s --wait", res.ProposalID)
		a.notef("reject: reeve proposals reject %s", res.ProposalID)
	}
	if res.Replayed {
		a.notef("(stored result of an earlier call with the same key)")
	}
	if res.Truncated {
		a.notef("(truncated; full output, %d bytes: reeve output %s)", res.Size, res.Hash)
	}
	if res.Preview {
		a.notef("(preview only; to apply exactly this change, repeat the call with --base %s)", sanitize(res.Base))
	}
	if res.Undo != nil && res.OperationID != "" {
		a.notef("(undo: reeve operations undo %s)", res.OperationID)
	}
}
