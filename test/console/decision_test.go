package console_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A decision carries the hash of what the person saw. With the hash of another card nothing is decided.
func TestC07_AStaleDecisionIsRefused(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start(guarded())
		h.Agent("clerk", "guarded")
		card := func(n int) (c api.ApprovalCard) {
			id := h.Call("clerk", "guarded", kit.Call{"n": n}).ApprovalID
			h.Want(http.StatusOK, &c, "GET", "/api/approvals/"+id+"/card", nil)
			return c
		}
		one, two := card(1), card(2)
		if one.AgentName != "clerk" || one.Effect != reeve.Unsafe || one.Tier != reeve.Privileged ||
			one.Shown == two.Shown || one.Shown == "" || one.Hidden || one.CanUndo || one.Approval.Args != `{"n":1}` {
			t.Errorf("%+v", one)
		}
		at := "/api/approvals/" + one.Approval.ID + "/decision"
		h.Want(http.StatusConflict, nil, "POST", at, api.DecisionRequest{Decision: "approve", Shown: two.Shown})
		var a reeve.Approval
		h.Want(http.StatusOK, &a, "GET", "/api/approvals/"+one.Approval.ID, nil)
		if a.State != reeve.ApprovalPending {
			t.Errorf("a refused decision left it %s", a.State)
		}
		h.Want(http.StatusOK, &a, "POST", at, api.DecisionRequest{Decision: "approve", Shown: one.Shown})
		if a.State != reeve.ApprovalApproved {
			t.Errorf("%+v", a)
		}
	})
}

// The card says whether the tool records how to undo the call.
func TestC04_TheCardSaysWhetherTheCallCanBeUndone(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		final, undoable := guarded(), guarded()
		undoable.ID, undoable.Undoable = "undoable", true
		h := start(final, undoable)
		h.Agent("clerk", "guarded", "undoable")
		for _, tool := range []string{"guarded", "undoable"} {
			var c api.ApprovalCard
			id := h.Call("clerk", tool, kit.Call{"n": 1}).ApprovalID
			h.Want(http.StatusOK, &c, "GET", "/api/approvals/"+id+"/card", nil)
			if c.CanUndo != (tool == "undoable") {
				t.Errorf("%s: can_undo is %t", tool, c.CanUndo)
			}
		}
	})
}

// A batch records one decision for each call. Those that fail do not stop the others.
func TestC08_ABatchDecidesEachCall(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start(guarded())
		h.Agent("clerk", "guarded")
		var ids []string
		for n := range 3 {
			ids = append(ids, h.Call("clerk", "guarded", kit.Call{"n": n}).ApprovalID)
		}
		deny := api.DecisionRequest{Decision: "deny", Comment: "not today"}
		var out api.BatchDecisionList
		h.Want(http.StatusOK, &out, "POST", "/api/approvals/decisions", api.BatchDecisionRequest{
			Decisions: []api.BatchDecision{{ID: ids[0], DecisionRequest: api.DecisionRequest{Decision: "approve"}},
				{ID: "apr_none", DecisionRequest: deny}, {ID: ids[1], DecisionRequest: deny},
				{ID: ids[2], DecisionRequest: api.DecisionRequest{Decision: "approve", Shown: "other"}}}})
		if len(out.Results) != 4 {
			t.Fatalf("%+v", out)
		}
		for i, want := range []reeve.ApprovalState{reeve.ApprovalApproved, "", reeve.ApprovalDenied, ""} {
			r := out.Results[i]
			if (r.Approval == nil) != (want == "") || (r.Failure == nil) != (want != "") ||
				r.Approval != nil && (r.Approval.State != want || r.Approval.DecidedBy != "owner") {
				t.Errorf("%d: %+v", i, r)
			}
		}
		if c := out.Results[1].Failure.Code; c != reeve.NotFound {
			t.Errorf("unknown approval: %s", c)
		}
		if c := out.Results[3].Failure.Code; c != reeve.Stale {
			t.Errorf("stale card: %s", c)
		}
	})
}

// Nobody sees a stored secret in a call that waits, was decided or was proposed. Members see what only looks like a
// secret, because they decide on it. An owner asks for the secret and gets it.
func TestC04_CallsAreShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	const stored, likely = "hunter22-Passw0rd", "postgres://me:marmot77otter@db.example/x"
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start(guarded())
		h.Want(http.StatusNoContent, nil, "PUT", "/api/secrets/WORD", kit.Object{"value": stored})
		h.Agent("clerk", "guarded")
		kit.UpdateAgent(h, h.Agent("drafter", "guarded"), kit.Object{"policy": kit.Object{"tools": kit.Object{"guarded": "propose"}}})
		member, viewer := kit.NewTokenFor(h, "mia", "member"), kit.NewTokenFor(h, "vic", "viewer")
		check := func(method, path string, body any, who []string, showsLikely bool) {
			t.Helper()
			text := string(h.Do(method, path, body, who...).Body)
			if strings.Contains(text, stored) || !strings.Contains(text, "guarded") {
				t.Errorf("%s %s: %s", method, path, text)
			}
			if strings.Contains(text, "marmot77otter") != showsLikely {
				t.Errorf("%s %s: it must show what looks like a secret: %t: %s", method, path, showsLikely, text)
			}
		}
		args := kit.Call{"word": stored, "url": likely}
		call := func(agent string, n int) (res reeve.Result) {
			t.Helper()
			h.Do("POST", "/api/agents/"+agent+"/calls", kit.Object{"tool": "guarded", "args": args.With("n", n),
				"reason": "because " + stored}).Decode(t, &res)
			return res
		}
		waiting, denied, edited := call("clerk", 1), call("clerk", 2), call("clerk", 3)
		proposed := call("drafter", 1).ProposalID
		for _, path := range []string{"/api/inbox", "/api/approvals?state=pending",
			"/api/approvals/" + waiting.ApprovalID, "/api/approvals/" + waiting.ApprovalID + "/card",
			"/api/operations/" + waiting.OperationID, "/api/calls/" + waiting.CallID + "/explanation",
			"/api/proposals/" + proposed} {
			check("GET", path, nil, member, true)
			check("GET", path, nil, viewer, false)
		}
		check("POST", "/api/approvals/"+denied.ApprovalID+"/decision", kit.Object{"decision": "deny"}, member, true)
		check("POST", "/api/approvals/"+edited.ApprovalID+"/edit",
			kit.Object{"args": args.With("n", 4)}, member, true)
		check("POST", "/api/proposals/"+proposed+"/reject", kit.Object{}, member, true)
		var revealed api.RevealedCall
		h.Want(http.StatusOK, &revealed, "GET", "/api/approvals/"+waiting.ApprovalID+"/revealed", nil)
		if !strings.Contains(revealed.Args, stored) {
			t.Errorf("%+v", revealed)
		}
		h.Want(http.StatusForbidden, nil, "GET", "/api/approvals/"+waiting.ApprovalID+"/revealed", nil, member...)
	})
}

// A card says that what the call is based on has changed. The person previews the call again: the new call shows the
// present state, and the old one is replaced.
func TestC07_AChangedBaseIsShownAndPreviewedAgain(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		kit.UpdateAgent(h, h.Agent("clerk", "file_write"), kit.Object{"policy": kit.Object{"tools": kit.Object{
			"file_write": "ask"}}})
		h.Agent("other", "file_write")
		write := func(agent, text string) reeve.Result {
			return h.Call(agent, "file_write", kit.Call{"path": "/shared/a.txt", "content": text,
				"overwrite": true})
		}
		card := func(id string) (c api.ApprovalCard) {
			h.Want(http.StatusOK, &c, "GET", "/api/approvals/"+id+"/card", nil)
			return c
		}
		write("other", "one\n")
		waiting := write("clerk", "two\n").ApprovalID
		if c := card(waiting); c.Stale != "" {
			t.Errorf("%+v", c)
		}
		write("other", "between\n")
		if c := card(waiting); c.Stale == "" || c.Approval.State != reeve.ApprovalPending {
			t.Errorf("%+v", c)
		}
		var a reeve.Approval
		edit := "/api/approvals/" + waiting + "/edit"
		h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+waiting+"/decision",
			api.DecisionRequest{Decision: "approve", Shown: card(waiting).Shown})
		h.Want(http.StatusConflict, nil, "POST", edit, api.EditRequest{Shown: "another"})
		h.Want(http.StatusOK, &a, "POST", edit, api.EditRequest{Shown: card(waiting).Shown})
		c := card(a.ID)
		if c.Stale != "" || !strings.Contains(c.Approval.Preview, "-between") || c.Proposed == nil {
			t.Errorf("%+v", c)
		}
		if c := card(waiting); c.Approval.State != reeve.ApprovalReplaced || c.Replaced != a.ID {
			t.Errorf("%+v", c)
		}
		kit.Decide(h, a.ID, "approve")
		kit.WaitUntilIdle(h)
		if op := kit.GetOperation(h, a.OperationID); op.State != reeve.Committed {
			t.Errorf("%+v", op)
		}
	})
}

// A card says that the agent may no longer make the call, and a decision on that card is refused. A proposal says that
// accepting it would apply nothing.
func TestC07_ACallThatCanNoLongerRunIsShown(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start(guarded())
		clerk := h.Agent("clerk", "guarded")
		waiting := h.Call("clerk", "guarded", kit.Call{"n": 1}).ApprovalID
		card := func() (c api.ApprovalCard) {
			h.Want(http.StatusOK, &c, "GET", "/api/approvals/"+waiting+"/card", nil)
			return c
		}
		if c := card(); c.Stale != "" {
			t.Errorf("%+v", c)
		}
		for _, way := range []string{"policy", "detached"} {
			if way == "policy" {
				kit.UpdateAgent(h, clerk, kit.Object{"policy": kit.Object{"tools": kit.Object{"guarded": "deny"}}})
			} else {
				kit.UpdateAgent(h, clerk, kit.Object{"policy": kit.Object{}})
				h.Want(http.StatusNoContent, nil, "DELETE", "/api/agents/clerk/tools/guarded", nil)
			}
			c := card()
			if c.Stale == "" {
				t.Errorf("%s: %+v", way, c)
			}
			h.Want(http.StatusConflict, nil, "POST", "/api/approvals/"+waiting+"/decision",
				api.DecisionRequest{Decision: "approve", Shown: c.Shown})
			if c := card(); c.Approval.State != reeve.ApprovalPending {
				t.Errorf("%s: a refused decision left it %s", way, c.Approval.State)
			}
		}
		kit.UpdateAgent(h, h.Agent("drafter", "file_write"), kit.Object{"policy": kit.Object{"tools": kit.Object{
			"file_write": "propose"}}})
		h.Agent("other", "file_write")
		write := func(agent, text string) reeve.Result {
			return h.Call(agent, "file_write", kit.Call{"path": "/shared/a.txt", "content": text, "overwrite": true})
		}
		write("other", "one\n")
		proposed := write("drafter", "two\n").ProposalID
		if p := kit.GetProposal(h, proposed); p.Stale != "" {
			t.Errorf("%+v", p)
		}
		write("other", "between\n")
		if p := kit.GetProposal(h, proposed); p.Stale == "" || p.State != reeve.ProposalPending {
			t.Errorf("%+v", p)
		}
	})
}
