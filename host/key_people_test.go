package host_test

import (
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A key is of one person: with it another's call is refused, and is told nothing of what was done. A person is the same
// with whichever of their tokens.
func TestG11_AKeyIsOfOnePerson(t *testing.T) {
	t.Parallel()
	kit.StartOnBothDatabases(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, phone, bob := kit.NewTokenFor(h, "ann", "member"), kit.NewTokenFor(h, "ann", "member"),
			kit.NewTokenFor(h, "bob", "member")
		a, task := rater(h)
		rate := func(note string) kit.Call {
			return kit.Call{"tool": "create_or_update_rating", "idempotency_key": "rate-1",
				"args": kit.Object{"target_kind": "task", "target_id": task, "scores": kit.Object{"energy": 20},
					"note": note}}
		}
		hers, _, status := kit.TryCall(h, a.ID, rate("secretly tired"), ann...)
		if status != http.StatusOK || hers.State != reeve.Committed {
			t.Fatalf("%d %+v", status, hers)
		}
		if again, _, _ := kit.TryCall(h, a.ID, rate("secretly tired"), phone...); !again.Replayed ||
			again.OperationID != hers.OperationID || again.Content != hers.Content {
			t.Errorf("with another token of hers: %+v", again)
		}
		words := map[string]bool{}
		for _, note := range []string{"secretly tired", "awake"} {
			_, p, status := kit.TryCall(h, a.ID, rate(note), bob...)
			if status != http.StatusConflict || p.Code != reeve.Conflict ||
				!strings.Contains(p.Detail, "another user") || !strings.Contains(p.Hint, "nothing was executed") {
				t.Errorf("his, %q: %d %+v", note, status, p)
			}
			words[p.Detail+p.Hint] = true
		}
		if len(words) != 1 {
			t.Errorf("the answers tell whether hers had the same arguments: %v", words)
		}
		r := h.Do("POST", "/api/agents/a/calls/batch", kit.Object{"calls": []any{rate("secretly tired")}}, bob...)
		if !strings.Contains(string(r.Body), "another user") || strings.Contains(string(r.Body), "tired") {
			t.Errorf("in a batch: %s", r.Body)
		}
		h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task, nil, bob...)
		his, _, status := kit.TryCall(h, a.ID, rate("fine").With("idempotency_key", "rate-2"), bob...)
		if status != http.StatusOK || his.Replayed {
			t.Errorf("with a key of his own: %d %+v", status, his)
		}
		// An undo is of one operation, whoever asks for it.
		better, _, _ := kit.TryCall(h, a.ID, rate("better").With("idempotency_key", "rate-3"), ann...)
		for _, who := range [][]string{bob, ann, bob} {
			var res reeve.Result
			h.Want(http.StatusOK, &res, "POST", "/api/operations/"+better.OperationID+"/undo", nil, who...)
			if res.State != reeve.Committed {
				t.Errorf("undo: %+v", res)
			}
		}
	})
}
