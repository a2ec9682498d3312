package host_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// undoing is an agent that writes a file, and whose undos are judged by a policy.
type undoing struct {
	*reevetest.Host
	agent reeve.Agent
}

func newUndoing(t *testing.T) *undoing {
	h := reevetest.Start(t)
	return &undoing{h, h.Agent("a", "file_write", "file_read", "file_restore")}
}

func (u *undoing) policy(restore string) {
	u.T.Helper()
	u.Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		object{"policy": object{"tools": object{"file_restore": restore}}})
}

func (u *undoing) write(content string) (operation string) {
	u.T.Helper()
	return u.Call("a", "file_write", object{"path": "/shared/x.txt", "content": content, "overwrite": true}).OperationID
}

func (u *undoing) undo(operation string) (res reeve.Result) {
	u.T.Helper()
	u.Do("POST", "/api/operations/"+operation+"/undo", nil).Decode(u.T, &res)
	return res
}

// decide has a person accept or reject a proposal, and waits until it is applied.
func (u *undoing) decide(proposal, word string) (p reeve.Proposal) {
	u.T.Helper()
	u.Want(http.StatusOK, nil, "POST", "/api/proposals/"+proposal+"/"+word, object{})
	u.RunUntilIdle(u.T.Context())
	u.Want(http.StatusOK, &p, "GET", "/api/proposals/"+proposal, nil)
	return p
}

func (u *undoing) holds(want string) {
	u.T.Helper()
	if b, err := os.ReadFile(filepath.Join(u.Dir(), "workspaces/default/shared/x.txt")); err != nil ||
		string(b) != want {
		u.T.Errorf("the file holds %q, and not %q: %v", b, want, err)
	}
}

// TestO03_AnUndoThatWasProposed: what became of the proposal is told, and one that came to nothing can be asked for
// again.
func TestO03_AnUndoThatWasProposed(t *testing.T) {
	t.Parallel()
	u := newUndoing(t)
	u.policy("propose")
	u.write("one")
	op := u.write("two")
	first := u.undo(op)
	if again := u.undo(op); first.State != reeve.ProposedOp || again.OperationID != first.OperationID ||
		strings.Contains(again.Content, "Since then") {
		t.Fatalf("it waits: %+v, %+v", first, again)
	}
	u.write("three")
	if p := u.decide(first.ProposalID, "accept"); p.State != reeve.ProposalStale {
		t.Fatalf("accepted when the file was another: %+v", p)
	}
	u.write("two")
	second := u.undo(op)
	if second.State != reeve.ProposedOp || second.Replayed || second.ProposalID == first.ProposalID {
		t.Fatalf("asked for again: %+v", second)
	}
	if p := u.decide(second.ProposalID, "reject"); p.State != reeve.ProposalRejected {
		t.Fatalf("rejected: %+v", p)
	}
	third := u.undo(op)
	if third.State != reeve.ProposedOp || third.Replayed || third.ProposalID == second.ProposalID {
		t.Errorf("after a rejection: %+v", third)
	}
	if p := u.decide(third.ProposalID, "accept"); p.State != reeve.ProposalApplied {
		t.Fatalf("accepted: %+v", p)
	}
	u.holds("one")
	// the same, which is done by now
	u.Want(http.StatusOK, nil, "POST", "/api/proposals/"+second.ProposalID+"/reopen", object{})
	if p := u.decide(second.ProposalID, "accept"); p.State != reeve.ProposalStale {
		t.Fatalf("reopened and accepted: %+v", p)
	}
	u.holds("one")
	if done := u.undo(op); !done.Replayed || done.ProposalID != third.ProposalID ||
		!strings.Contains(done.Content, "Since then: owner accepted it on ") ||
		!strings.Contains(done.Content, "applied as operation op_") {
		t.Errorf("it is done: %+v", done)
	}
	u.write("two")
	next := u.write("four")
	u.decide(u.undo(next).ProposalID, "reject")
	u.policy("allow")
	if res := u.undo(next); res.State != reeve.Committed || res.Replayed {
		t.Errorf("rejected once, and allowed by now: %+v", res)
	}
	u.holds("two")
}

// TestO03_AProposalIsNotUndone: whoever asks for it is told what became of it, and which operation can be undone.
func TestO03_AProposalIsNotUndone(t *testing.T) {
	t.Parallel()
	u := newUndoing(t)
	u.write("one")
	u.Want(http.StatusOK, nil, "PATCH", "/api/agents/a",
		object{"policy": object{"tools": object{"file_write": "propose"}}})
	propose := func(content string) reeve.Result {
		t.Helper()
		return u.Call("a", "file_write", object{"path": "/shared/x.txt", "content": content, "overwrite": true})
	}
	told := func(operation string, words ...string) {
		t.Helper()
		var p api.Problem
		r := u.Do("POST", "/api/operations/"+operation+"/undo", nil)
		r.Decode(t, &p)
		for _, w := range words {
			if r.Status != http.StatusConflict || p.Code != reeve.Conflict || !strings.Contains(p.Detail+" / "+p.Hint,
				w) {
				t.Errorf("%q is not told: %s", w, r.Body)
			}
		}
	}
	no, yes := propose("no"), propose("two")
	told(no.OperationID, no.ProposalID, "waits for a person", "reeve proposals reject "+no.ProposalID)
	u.decide(no.ProposalID, "reject")
	told(no.OperationID, "owner rejected it", "nothing was applied")
	applied := u.decide(yes.ProposalID, "accept").OperationID
	told(yes.OperationID, yes.ProposalID, "owner accepted it", "reeve operations undo "+applied)
	u.holds("two")
	if res := u.undo(applied); res.State != reeve.Committed {
		t.Errorf("the operation that was named: %+v", res)
	}
	u.holds("one")
}

// TestO03_AnUndoWithAKey: the same key is told what has become of the undo, and asks for no other.
func TestO03_AnUndoWithAKey(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		u := &undoing{h, h.Agent("a", "file_write", "file_read", "file_restore")}
		u.write("one")
		op := u.write("two")
		undo := func(key string, status int) (res reeve.Result) {
			t.Helper()
			r := u.Do("POST", "/api/operations/"+op+"/undo", nil, "Idempotency-Key", key)
			if r.Decode(t, &res); r.Status != status {
				t.Errorf("key %s: status %d, want %d: %s", key, r.Status, status, r.Body)
			}
			return res
		}
		u.policy("ask")
		asked := undo("k1", http.StatusAccepted)
		if again := undo("k1", http.StatusAccepted); !again.Replayed || again.ApprovalID != asked.ApprovalID ||
			again.State != reeve.Parked {
			t.Errorf("while it waits: %+v", again)
		}
		u.Want(http.StatusOK, nil, "POST", "/api/approvals/"+asked.ApprovalID+"/decision",
			object{"decision": "deny", "comment": "keep it"})
		for range 2 {
			if again := undo("k1", http.StatusOK); again.OperationID != asked.OperationID ||
				again.State != reeve.DeniedOp || !again.IsError || again.Code != reeve.Denied ||
				!strings.Contains(again.Message, "keep it") {
				t.Errorf("after it was denied: %+v", again)
			}
		}
		next := undo("k2", http.StatusAccepted)
		if next.OperationID == asked.OperationID || next.ApprovalID == "" {
			t.Fatalf("with another key: %+v", next)
		}
		u.Want(http.StatusOK, nil, "POST", "/api/approvals/"+next.ApprovalID+"/decision", object{"decision": "deny"})
		u.policy("propose")
		item := undo("k3", http.StatusAccepted)
		u.decide(item.ProposalID, "accept")
		u.holds("one")
		if again := undo("k3", http.StatusAccepted); again.ProposalID != item.ProposalID ||
			!strings.Contains(again.Content, "applied as operation op_") {
			t.Errorf("after it was applied: %+v", again)
		}
	})
}

// TestO03_AnUndoThatWasTakenBack: then what was done stands again, and can be taken back again. Also where each of them
// is proposed.
func TestO03_AnUndoThatWasTakenBack(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allow", "propose"} {
		t.Run(policy, func(t *testing.T) {
			u := newUndoing(t)
			u.policy(policy)
			take := func(operation, want string) string {
				t.Helper()
				res := u.undo(operation)
				if res.Replayed {
					t.Errorf("not made, but told again: %+v", res)
				}
				if res.ProposalID != "" {
					res.OperationID = u.decide(res.ProposalID, "accept").OperationID
				}
				u.holds(want)
				return res.OperationID
			}
			u.write("one")
			op := u.write("two")
			back := take(op, "one")
			forth := take(back, "two")
			again := take(op, "one")
			if res := u.undo(op); !res.Replayed {
				t.Errorf("made twice: %+v", res)
			}
			take(again, "two")
			if res := u.undo(back); !res.Replayed {
				t.Errorf("what it took back stands: %+v", res)
			}
			take(forth, "one")
		})
	}
}

// TestL17_AnUndoIsForWhomItWasDone: ratings are a person's own, and whoever asks for an undo, theirs are what it is
// about.
func TestL17_AnUndoIsForWhomItWasDone(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	ann, bob := as(h, "ann", "member"), as(h, "bob", "member")
	var gym reeve.Category
	h.Want(http.StatusCreated, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
	a := h.Agent("a", "create_or_update_rating")
	patch(h, a, object{"kind": "planner", "categories": []string{gym.ID}})
	var task reeve.Task
	h.Want(http.StatusCreated, &task, "POST", "/api/journal/tasks", object{"title": "Squat", "category_id": gym.ID})
	rate := func(energy int, note string) object {
		return object{"target_kind": "task", "target_id": task.ID, "scores": object{"energy": energy}, "note": note}
	}
	h.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", rate(3, "mine"), ann...)
	op := h.Call(a.ID, "create_or_update_rating", rate(20, "hers"), ann...).OperationID
	h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op+"/undo", nil, bob...)
	var hers reeve.Rating
	h.Want(http.StatusOK, &hers, "GET", "/api/journal/ratings/task/"+task.ID, nil, ann...)
	if hers.Scores["energy"] != 3 || hers.Note != "mine" {
		t.Errorf("ann's is %+v", hers)
	}
	h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil, bob...)
	if r := h.Do("GET", "/api/agents/a/messages", nil, ann...); !strings.Contains(string(r.Body), "undo of "+op+
		", requested by bob") {
		t.Errorf("who asked is not told: %s", r.Body)
	}
}
