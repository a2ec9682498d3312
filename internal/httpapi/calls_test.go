package httpapi_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// Every outcome of a call has the same response on both database engines.
func TestCalls_EveryStatus(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		a := h.Agent("coach", "send", "erase", "lose_outcome", "fail", "look", "long_output", "file_write")
		call := func(status int, tool string, more object, headers ...string) reeve.Result {
			t.Helper()
			body := object{"tool": tool, "args": object{}}
			for k, v := range more {
				body[k] = v
			}
			return decode[reeve.Result](t, h.Want(status, nil, "POST", "/api/agents/coach/calls", body, headers...))
		}
		want := func(r reeve.Result, state reeve.State, code reeve.Code, isError bool) {
			t.Helper()
			if r.State != state || r.Code != code || r.IsError != isError || r.CallID == "" {
				t.Errorf("state %q code %q error %v, want %q %q %v: %+v", r.State, r.Code, r.IsError, state, code,
					isError, r)
			}
		}
		want(call(200, "look", nil), "", "", false)
		sent := call(200, "send", nil, idempotencyKey, "k")
		want(sent, reeve.Committed, "", false)
		if again := call(200, "send", nil, idempotencyKey, "k"); !again.Replayed ||
			again.OperationID != sent.OperationID {
			t.Errorf("replayed %+v", again)
		}
		want(call(200, "fail", nil), reeve.Failed, reeve.ToolFailed, true)
		lost := call(202, "lose_outcome", nil)
		want(lost, reeve.Unknown, reeve.UnknownOutcome, true)
		approved, denied := call(202, "erase", object{"reason": "please"}),
			call(202, "erase", object{"args": object{"n": 2}})
		want(approved, reeve.Parked, reeve.ApprovalRequired, false)
		long := call(200, "long_output", nil)
		if !long.Truncated || long.Size != 42000 || long.Hash == "" {
			t.Errorf("cut: %v, size %d, hash %q", long.Truncated, long.Size, long.Hash)
		}
		var whole strings.Builder
		for whole.Len() < long.Size {
			s := decode[api.OutputSlice](t, h.Want(200, nil, "GET", fmt.Sprintf("/api/outputs/%s?offset=%d&limit=10000",
				long.Hash, whole.Len()), nil))
			whole.WriteString(s.Content)
		}
		if whole.String() != strings.Repeat("all that alpha knows ", 2000) {
			t.Error("the slices do not make up the output")
		}
		if p := call(200, "file_write", object{"args": object{"path": "/shared/a.txt", "content": "x"},
			"preview_only": true}); !p.Preview || p.OperationID != "" {
			t.Errorf("preview %+v", p)
		}

		// Calls that wait for a person are in the inbox. They continue after a decision.
		inbox := decode[api.Inbox](t, h.Want(200, nil, "GET", "/api/inbox", nil))
		if len(inbox.Approvals) != 2 || len(inbox.Unknown) != 1 || inbox.Unknown[0].ID != lost.OperationID {
			t.Errorf("inbox %+v", inbox)
		}
		decide := func(r reeve.Result, decision string) { // with a comment
			t.Helper()
			h.Want(200, nil, "POST", "/api/approvals/"+r.ApprovalID+"/decision",
				object{"decision": decision, "comment": "because"})
			wantProblem(t, h.Do("POST", "/api/approvals/"+r.ApprovalID+"/decision", object{"decision": "approve"}), 409,
				reeve.Conflict)
		}
		decide(approved, "approve")
		decide(denied, "deny")
		h.Want(200, nil, "POST", "/api/operations/"+lost.OperationID+"/resolve", object{"resolution": "happened"})
		wantProblem(t, h.Do("POST", "/api/operations/"+lost.OperationID+"/resolve", object{"resolution": "retry"}), 409,
			reeve.Conflict)
		h.RunUntilIdle(t.Context())
		states := map[string]reeve.State{}
		for _, op := range listAllPages(t, h, "/api/operations?agent=coach", openOperations) {
			states[op.ID] = op.State
		}
		for id, state := range map[string]reeve.State{sent.OperationID: reeve.Committed,
			lost.OperationID: reeve.Committed, approved.OperationID: reeve.Committed,
			denied.OperationID: reeve.DeniedOp} {
			if states[id] != state {
				t.Errorf("operation %s is %s, want %s", id, states[id], state)
			}
		}
		wantProblem(t, h.Do("POST", "/api/operations/"+sent.OperationID+"/undo", nil), 501, reeve.Unsupported)

		// Every action has one result.
		messages := listAllPages(t, h, "/api/agents/"+a.ID+"/messages",
			func(l api.MessageList) ([]reeve.Message, string) { return l.Messages, l.Next })
		results := map[string]int{}
		for _, m := range messages {
			results[m.ActionID]++
		}
		for _, m := range messages {
			if m.Kind == reeve.Action && results[m.ID] != 1 {
				t.Errorf("the action %s has %d results", m.Metadata, results[m.ID])
			}
		}

		h.Want(204, nil, "POST", "/api/stop", object{"reason": "enough"})
		if p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "send"}), 423, reeve.Stopped); !strings.HasSuffix(p.Detail, "is stopped: enough") {
			t.Errorf("detail %q", p.Detail)
		}
		want(call(200, "look", nil), "", "", false)
		h.Want(204, nil, "POST", "/api/resume", object{})
		h.Want(204, nil, "POST", "/api/stop", object{}) // without a reason
		if p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "send"}), 423, reeve.Stopped); !strings.HasSuffix(p.Detail, "is stopped") {
			t.Errorf("detail %q", p.Detail)
		}
		h.Want(204, nil, "POST", "/api/resume", object{})
		want(call(200, "send", nil), reeve.Committed, "", false)
		h.Want(200, nil, "PUT", "/api/budgets/agent:coach", object{"limit": object{"calls": 1}})
		h.Do("POST", "/api/agents/coach/calls", object{"tool": "send"})
		wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "send"}), 402, reeve.BudgetExceeded)
		h.Want(204, nil, "DELETE", "/api/budgets/agent:coach", nil)
		h.Want(200, nil, "PATCH", "/api/agents/coach", object{"policy": object{"tools": object{"send": "deny"}}})
		wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": "send"}), 403, reeve.Denied)
		h.Want(200, nil, "PATCH", "/api/agents/coach", object{"kind": "powerless"})
		wantProblem(t, h.Do("POST", "/api/agents/coach/calls",
			object{"tool": "file_write", "args": object{"path": "/shared/a", "content": "x"}}), 403, reeve.OutOfScope)
	})
}

// A call that is skipped because an earlier call of the batch waits is reported as an error. Sent again with the same
// key, the batch continues with that call.
func TestCalls_BatchReportsSkippedCalls(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		h.Agent("coach", "send", "erase", "look")
		send := func() []reeve.Result {
			t.Helper()
			return decode[api.BatchResponse](t, h.Want(200, nil, "POST", "/api/agents/coach/calls/batch",
				object{"calls": []any{
					object{"tool": "look", "run": "mine"}, object{"tool": "erase", "run": "mine"},
					object{"tool": "send", "run": "mine"}, object{"tool": "look", "run": "mine"},
				}}, idempotencyKey, "batch")).Results
		}
		got := send()
		if got[0].IsError || got[1].State != reeve.Parked {
			t.Fatalf("first two results: %+v", got[:2])
		}
		for _, r := range got[2:] {
			if !r.IsError || r.Code != reeve.Conflict || !strings.Contains(r.Message, "call 2 of the batch, erase") ||
				r.Hint == "" || r.CallID != "" {
				t.Errorf("skipped call: %+v", r)
			}
		}
		h.Want(200, nil, "POST", "/api/approvals/"+got[1].ApprovalID+"/decision", object{"decision": "approve"})
		h.RunUntilIdle(t.Context())
		for i, r := range send() {
			if r.IsError || r.CallID == "" {
				t.Errorf("call %d of the batch that was sent again: %+v", i+1, r)
			}
		}
	})
}

// openOperations returns the entries and the next cursor of a page of operations.
func openOperations(l api.OperationList) ([]reeve.Operation, string) { return l.Operations, l.Next }

// listAllPages returns all entries of a list, which it reads in pages of two.
func listAllPages[L, T any](t *testing.T, h *reevetest.Host, path string, open func(L) ([]T, string)) []T {
	t.Helper()
	var out []T
	join := "?"
	if strings.Contains(path, "?") {
		join = "&"
	}
	for cursor := ""; ; {
		list, next := open(decode[L](t, h.Want(200, nil, "GET", path+join+"limit=2"+cursor, nil)))
		out = append(out, list...)
		if next == "" {
			return out
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
}

func TestCalls_PagesListEachEntryOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		var names, ops, approvals []string
		for i := range 7 {
			name := fmt.Sprintf("agent-%d", i)
			h.Agent(name, "send", "erase")
			ops = append(ops, h.Call(name, "send", nil).OperationID)
			r := h.Call(name, "erase", nil)
			ops, approvals, names = append(ops, r.OperationID), append(approvals, r.ApprovalID), append(names, name)
		}
		slices.Reverse(ops) // lists return the newest first
		slices.Reverse(approvals)
		wantEqual := func(what string, got, want []string) {
			t.Helper()
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n%v\nwant\n%v", what, got, want)
			}
		}
		var got []string
		for _, v := range listAllPages(t, h, "/api/agents",
			func(l api.AgentList) ([]reeve.Agent, string) { return l.Agents, l.Next }) {
			got = append(got, v.Name)
		}
		wantEqual("agents", got, names)
		got = nil
		for _, v := range listAllPages(t, h, "/api/operations", openOperations) {
			got = append(got, v.ID)
		}
		wantEqual("operations", got, ops)
		got = nil
		for _, v := range listAllPages(t, h, "/api/approvals?state=pending",
			func(l api.ApprovalList) ([]reeve.Approval, string) { return l.Approvals, l.Next }) {
			got = append(got, v.ID)
		}
		wantEqual("approvals", got, approvals)
		var wakes []string
		for range 7 {
			wake := decode[reeve.Wake](t, h.Want(201, nil, "POST", "/api/agents/agent-0/wake", object{}))
			wakes = append(wakes, wake.RunKey)
		}
		got = nil
		for _, v := range listAllPages(t, h, "/api/agents/agent-0/wakes",
			func(l api.WakeList) ([]reeve.Wake, string) { return l.Wakes, l.Next }) {
			got = append(got, v.RunKey)
		}
		slices.Sort(got) // wakes created at the same time have no order
		slices.Sort(wakes)
		wantEqual("wakes", got, wakes)
	})
}

// A tool can refuse a call in each of its checks. The error has the code of the check's error in every case.
func TestG01_ToolRefusesCall(t *testing.T) {
	t.Parallel()
	no := reeve.Errorf(reeve.Forbidden, "recipient is not allowed")
	ran := 0
	tool := func(id string) reeve.Tool {
		return newTool(id, reeve.Keyed, reeve.SideEffecting,
			func(context.Context, *reeve.Invocation) (any, error) { ran++; return "done", nil })
	}
	security, scope, preview := tool("guarded"), tool("scoped"), tool("previewed")
	security.Check = func(context.Context, *reeve.Invocation) error { return no }
	scope.Categories = func(context.Context, *reeve.Invocation) ([]string, error) { return nil, no }
	preview.Preview = func(context.Context, *reeve.Invocation) (reeve.Preview, error) { return reeve.Preview{}, no }
	h := startServer(t, security, scope, preview)
	h.Agent("coach", "guarded", "scoped", "previewed")
	for tool, step := range map[string]string{"guarded": "security", "scoped": "scope", "previewed": "preview"} {
		p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", object{"tool": tool, "args": object{}}), 403,
			reeve.Forbidden)
		x := decode[reeve.Explanation](t, h.Want(200, nil, "GET", "/api/calls/"+p.CallID+"/explanation", nil))
		if last := x.Steps[slices.IndexFunc(x.Steps,
			func(s reeve.Step) bool { return s.Verdict == reeve.Refused })]; last.Name != step ||
			last.Why != no.Message {
			t.Errorf("%s was refused by %+v", tool, last)
		}
	}
	if ran > 0 {
		t.Errorf("%d calls were made", ran)
	}
}

func TestG03_SameErrorForEveryUnknownTool(t *testing.T) {
	t.Parallel()
	h := startServer(t, testTools()...)
	h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
	defineTool(t, h, object{"id": "betas"}, "X-Workspace-Id", "beta")
	defineTool(t, h, object{"id": "unattached"})
	h.Agent("coach", "look")
	for _, tool := range []string{"nothing", "unattached", "betas", "send"} {
		for _, list := range [][]string{nil, {"look"}} {
			body := object{"tool": tool, "args": object{"place": 7}}
			if list != nil {
				body["tools"] = list
			}
			p := wantProblem(t, h.Do("POST", "/api/agents/coach/calls", body), 404, reeve.NotFound)
			if p.Detail != fmt.Sprintf("tool %q not found", tool) ||
				p.Hint != "list the agent's tools to see which it can call" || p.CallID == "" || p.Errors != nil {
				t.Errorf("%s: %+v", tool, p)
			}
		}
	}
}
