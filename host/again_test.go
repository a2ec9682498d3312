package host_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// lateTools are tools whose outcome is never known, with how often they are sent.
func lateTools(sent *counter) []reeve.Tool {
	late := func(context.Context, *reeve.Invocation) (any, error) {
		sent.n.Add(1)
		return nil, reeve.Errorf(reeve.Timeout, "late")
	}
	return []reeve.Tool{tool("unsafe", reeve.Unsafe, late), tool("keyed", reeve.Keyed, late)}
}

// What the policy forbids by now is not run again, whoever says so.
func TestG11_NotRunAgainAgainstThePolicy(t *testing.T) {
	t.Parallel()
	var sent counter
	h := reevetest.StartWith(t, quick(t), lateTools(&sent)...)
	for _, name := range []string{"unsafe", "keyed"} {
		a := h.Agent("a-"+name, name)
		op := settle(h, h.Call(a.ID, name, nil).OperationID)
		before := sent.n.Load()
		h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
			object{"policy": object{"tools": object{name: "deny"}}})
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/resolve", object{"resolution": "retry"})
		if got := settle(h, op.ID); got.State != reeve.DeniedOp || got.Code != reeve.Denied || got.Message == "" ||
			sent.n.Load() != before {
			t.Errorf("%s: sent %d times more, %+v", name, sent.n.Load()-before, got)
		} else if got.Attempts != op.Attempts {
			t.Errorf("%s: %d tries, and there were %d", name, got.Attempts, op.Attempts)
		}
	}
}

// A person's answer is about the outcome that they saw: when somebody else has had it run again, it is not taken for
// the next one. Tries go on counting, and there are as many of them for each time.
func TestG11_AnAnswerIsAboutWhatWasSeen(t *testing.T) {
	t.Parallel()
	var sent counter
	h := reevetest.StartWith(t, quick(t), lateTools(&sent)...)
	for name, tries := range map[string]int{"unsafe": 1, "keyed": 5} {
		op := settle(h, h.Call(h.Agent("a-"+name, name).ID, name, nil).OperationID)
		path, before := "/api/operations/"+op.ID+"/resolve", sent.n.Load()
		if op.State != reeve.Unknown || op.Attempts != tries {
			t.Fatalf("%s: %+v", name, op)
		}
		var said, all sync.WaitGroup
		said.Add(1)
		codes := make(chan int, 8)
		for range cap(codes) {
			all.Go(func() {
				said.Wait()
				codes <- h.Do("POST", path, object{"resolution": "retry", "attempts": tries}).Status
			})
		}
		said.Done()
		all.Wait()
		close(codes)
		taken := 0
		for c := range codes {
			if c == http.StatusOK {
				taken++
			} else if c != http.StatusConflict {
				t.Errorf("%s: status %d", name, c)
			}
		}
		got := settle(h, op.ID)
		if got.State != reeve.Unknown || got.Attempts != 2*tries || taken != 1 || sent.n.Load()-before != int64(tries) {
			t.Errorf("%s: %d answers were taken, it was sent %d times more: %+v", name, taken, sent.n.Load()-before,
				got)
		}
		for _, word := range []string{"retry", "skip", "happened"} {
			r := h.Do("POST", path, object{"resolution": word, "attempts": tries})
			if r.Status != http.StatusConflict || !strings.Contains(string(r.Body), `"STALE"`) ||
				!strings.Contains(string(r.Body), "was retried meanwhile") {
				t.Errorf("%s, %s, of the time before: %d %s", name, word, r.Status, r.Body)
			}
		}
		h.Want(http.StatusOK, nil, "POST", path, object{"resolution": "skip"}) // as it is now
	}
}

// An undo that a person denied, or that nobody approved, did nothing: it can be asked for again. One that was done is
// done once.
func TestO03_AnUndoThatWasDenied(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_write", "file_read", "file_delete")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		object{"policy": object{"tools": object{"file_delete": "ask"}}})
	op := h.Call(a.ID, "file_write", object{"path": "/shared/x.txt", "content": "1"}).OperationID
	undo := func() (res reeve.Result) {
		t.Helper()
		h.Do("POST", "/api/operations/"+op+"/undo", nil).Decode(t, &res)
		return res
	}
	first := undo()
	if again := undo(); first.State != reeve.Parked || again.OperationID != first.OperationID {
		t.Fatalf("it waits: %+v, %+v", first, again)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+first.ApprovalID+"/decision", object{"decision": "deny"})
	second := undo()
	if second.State != reeve.Parked || second.OperationID == first.OperationID || second.Replayed {
		t.Fatalf("asked again: %+v", second)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+second.ApprovalID+"/decision", object{"decision": "deny"})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		object{"policy": object{"tools": object{"file_delete": "allow"}}})
	third := undo()
	if third.State != reeve.Committed || third.Replayed {
		t.Fatalf("allowed by now: %+v", third)
	}
	if again := undo(); again.OperationID != third.OperationID || !again.Replayed {
		t.Errorf("done twice: %+v", again)
	}
}

// Tries go on counting while a person is asked about a budget in between: an answer about the first outcome is none
// about the second.
func TestG11_TriesGoOnThroughAnApproval(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"unsafe", "keyed"} {
		t.Run(name, func(t *testing.T) {
			var sent counter
			h := reevetest.StartWith(t, quick(t), lateTools(&sent)...)
			a := h.Agent("a", name)
			budget(h, "agent:"+a.ID, object{"limit": object{"calls": 1}, "on_exceed": "park"})
			first := settle(h, h.Call(a.ID, name, nil).OperationID)
			path := "/api/operations/" + first.ID + "/resolve"
			h.Want(http.StatusOK, nil, "POST", path, object{"resolution": "retry", "attempts": first.Attempts})
			if parked := settle(h, first.ID); parked.State != reeve.Parked || parked.Attempts != first.Attempts {
				t.Fatalf("%+v", parked)
			}
			h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+inbox(h).Approvals[0].ID+"/decision",
				object{"decision": "approve"})
			second := settle(h, first.ID)
			if second.State != reeve.Unknown || second.Attempts != 2*first.Attempts {
				t.Fatalf("%+v, after %d tries", second, first.Attempts)
			}
			h.Want(http.StatusConflict, nil, "POST", path, object{"resolution": "skip", "attempts": first.Attempts})
			h.Want(http.StatusOK, nil, "POST", path, object{"resolution": "skip", "attempts": second.Attempts})
		})
	}
}
