package main

import (
	"fmt"
	"io"
	"strings"

	"reeve"
)

// printResult prints what a call came to: the tool's words to the output, everything else beside it. Its error is the
// exit code.
func (a *app) printResult(res reeve.Result) error {
	code := exitOf(res)
	if a.json {
		if err := a.print(res, nil); err != nil {
			return err
		}
	} else if pending(res) {
		a.explainPending(res)
	} else if res.IsError || res.State == reeve.DeniedOp {
		a.show(&reeve.Error{Code: res.Code, Message: failure(res), Hint: res.Hint, Fields: res.Fields})
		a.note("why: reeve explain %s", res.CallID)
	} else {
		printContent(a.out, res.Content)
		a.explainResult(res)
	}
	if code != exitDone {
		return silent{code}
	}
	return nil
}

func exitOf(res reeve.Result) int {
	switch {
	case pending(res), res.State == reeve.ProposedOp:
		return exitNotDone
	case res.IsError, res.State == reeve.Failed, res.State == reeve.DeniedOp:
		return exitFailed
	}
	return exitDone
}

func failure(res reeve.Result) string {
	if res.Message != "" {
		return res.Message
	}
	if res.Content != "" {
		return res.Content
	}
	return "the call is " + string(res.State)
}

// printContent ends what a tool said with a line break, so that the prompt stands alone.
func printContent(w io.Writer, s string) {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	fmt.Fprint(w, s)
}

func (a *app) explainPending(res reeve.Result) {
	switch {
	case res.ApprovalID != "":
		a.note("waits for a person: %s", plain(res.Message))
		a.note("see it:  reeve approvals get %s", res.ApprovalID)
		a.note("approve: reeve approvals approve %s --wait", res.ApprovalID)
		a.note("deny:    reeve approvals deny %s", res.ApprovalID)
	case res.State == reeve.Parked:
		a.note("waits for a person: see reeve inbox")
	case res.State == reeve.Unknown:
		a.note("nobody can tell whether it happened: %s", plain(res.Message))
		a.note("say what you find: reeve operations resolve %s happened|retry|skip", res.OperationID)
	default:
		a.note("under way, %s: reeve operations get %s", res.State, res.OperationID)
	}
}

func (a *app) explainResult(res reeve.Result) {
	if res.ProposalID != "" {
		a.note("see it: reeve proposals show %s", res.ProposalID)
		a.note("accept: reeve proposals accept %s --wait", res.ProposalID)
		a.note("reject: reeve proposals reject %s", res.ProposalID)
	}
	if res.Replayed {
		a.note("(the stored result of an earlier call with the same key)")
	}
	if res.Truncated {
		a.note("(cut; the whole, %d bytes: reeve output %s)", res.Size, res.Hash)
	}
	if res.Preview {
		a.note("(nothing was changed; to apply exactly this, call again with --base %s)", plain(res.Base))
	}
	if res.Undo != nil && res.OperationID != "" {
		a.note("(take it back: reeve operations undo %s)", res.OperationID)
	}
}
