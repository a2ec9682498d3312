package host_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// lateTools are tools whose outcome is never known, with how often they are sent.
func lateTools(sent *kit.Counter) []reeve.Tool {
	late := func(context.Context, *reeve.Invocation) (any, error) {
		sent.N.Add(1)
		return nil, reeve.Errorf(reeve.Timeout, "late")
	}
	return []reeve.Tool{kit.Tool("unsafe", reeve.Unsafe, late), kit.Tool("keyed", reeve.Keyed, late)}
}

// What the policy forbids by now is not run again, whoever says so.
func TestG11_NotRunAgainAgainstThePolicy(t *testing.T) {
	t.Parallel()
	var sent kit.Counter
	h := reevetest.StartWith(t, kit.FastConfig(t), lateTools(&sent)...)
	for _, name := range []string{"unsafe", "keyed"} {
		a := h.Agent("a-"+name, name)
		op := finishOperation(h, h.Call(a.ID, name, nil).OperationID)
		before := sent.N.Load()
		h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
			kit.Object{"policy": kit.Object{"tools": kit.Object{name: "deny"}}})
		h.Want(http.StatusOK, nil, "POST", "/api/operations/"+op.ID+"/resolve", kit.Object{"resolution": "retry"})
		if got := finishOperation(h, op.ID); got.State != reeve.DeniedOp || got.Code != reeve.Denied ||
			got.Message == "" ||
			sent.N.Load() != before {
			t.Errorf("%s: sent %d times more, %+v", name, sent.N.Load()-before, got)
		} else if got.Tries != op.Tries {
			t.Errorf("%s: %d tries, and there were %d", name, got.Tries, op.Tries)
		}
	}
}

// A person's answer is about the outcome that they saw: when somebody else has had it run again, it is not taken for
// the next one. Tries go on counting, and there are as many of them for each time.
func TestG11_AnAnswerIsAboutWhatWasSeen(t *testing.T) {
	t.Parallel()
	var sent kit.Counter
	h := reevetest.StartWith(t, kit.FastConfig(t), lateTools(&sent)...)
	for name, tries := range map[string]int{"unsafe": 1, "keyed": 5} {
		op := finishOperation(h, h.Call(h.Agent("a-"+name, name).ID, name, nil).OperationID)
		path, before := "/api/operations/"+op.ID+"/resolve", sent.N.Load()
		if op.State != reeve.Unknown || op.Tries != tries {
			t.Fatalf("%s: %+v", name, op)
		}
		var said, all sync.WaitGroup
		said.Add(1)
		codes := make(chan int, 8)
		for range cap(codes) {
			all.Go(func() {
				said.Wait()
				codes <- h.Do("POST", path, kit.Object{"resolution": "retry", "tries": tries}).Status
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
		got := finishOperation(h, op.ID)
		if got.State != reeve.Unknown || got.Tries != 2*tries || taken != 1 || sent.N.Load()-before != int64(tries) {
			t.Errorf("%s: %d answers were taken, it was sent %d times more: %+v", name, taken, sent.N.Load()-before,
				got)
		}
		for _, word := range []string{"retry", "skip", "happened"} {
			r := h.Do("POST", path, kit.Object{"resolution": word, "tries": tries})
			if r.Status != http.StatusConflict || !strings.Contains(string(r.Body), `"STALE"`) ||
				!strings.Contains(string(r.Body), "was retried meanwhile") {
				t.Errorf("%s, %s, of the time before: %d %s", name, word, r.Status, r.Body)
			}
		}
		h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "skip"}) // as it is now
	}
}

// An undo that a person denied, or that nobody approved, did nothing: it can be asked for again. One that was done is
// done once.
func TestO03_AnUndoThatWasDenied(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	a := h.Agent("a", "file_write", "file_read", "file_delete")
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_delete": "ask"}}})
	op := h.Call(a.ID, "file_write", kit.Object{"path": "/shared/x.txt", "content": "1"}).OperationID
	undo := func() (res reeve.Result) {
		t.Helper()
		h.Do("POST", "/api/operations/"+op+"/undo", nil).Decode(t, &res)
		return res
	}
	first := undo()
	if again := undo(); first.State != reeve.Parked || again.OperationID != first.OperationID {
		t.Fatalf("it waits: %+v, %+v", first, again)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+first.ApprovalID+"/decision", kit.Object{"decision": "deny"})
	second := undo()
	if second.State != reeve.Parked || second.OperationID == first.OperationID || second.Replayed {
		t.Fatalf("asked again: %+v", second)
	}
	h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+second.ApprovalID+"/decision", kit.Object{"decision": "deny"})
	h.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		kit.Object{"policy": kit.Object{"tools": kit.Object{"file_delete": "allow"}}})
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
			var sent kit.Counter
			h := reevetest.StartWith(t, kit.FastConfig(t), lateTools(&sent)...)
			a := h.Agent("a", name)
			kit.SetBudget(h, "agent:"+a.ID, kit.Object{"limit": kit.Object{"calls": 1}, "on_exceed": "park"})
			first := finishOperation(h, h.Call(a.ID, name, nil).OperationID)
			path := "/api/operations/" + first.ID + "/resolve"
			h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "retry", "tries": first.Tries})
			if parked := finishOperation(h, first.ID); parked.State != reeve.Parked || parked.Tries != first.Tries {
				t.Fatalf("%+v", parked)
			}
			h.Want(http.StatusOK, nil, "POST", "/api/approvals/"+kit.GetInbox(h).Approvals[0].ID+"/decision",
				kit.Object{"decision": "approve"})
			second := finishOperation(h, first.ID)
			if second.State != reeve.Unknown || second.Tries != 2*first.Tries {
				t.Fatalf("%+v, after %d tries", second, first.Tries)
			}
			h.Want(http.StatusConflict, nil, "POST", path, kit.Object{"resolution": "skip", "tries": first.Tries})
			h.Want(http.StatusOK, nil, "POST", path, kit.Object{"resolution": "skip", "tries": second.Tries})
		})
	}
}
