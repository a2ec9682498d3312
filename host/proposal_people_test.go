package host_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
)

// rater makes an agent that rates tasks and pins them, and a task.
func rater(h *reevetest.Host) (a reeve.Agent, task string) {
	h.T.Helper()
	var gym reeve.Category
	h.Want(http.StatusCreated, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
	a = h.Agent("a", "create_or_update_rating", "pin_day_plan_tasks")
	patch(h, a, object{"kind": "planner", "categories": []string{gym.ID}})
	var made reeve.Task
	h.Want(http.StatusCreated, &made, "POST", "/api/journal/tasks", object{"title": "Squat", "category_id": gym.ID})
	return a, made.ID
}

// What is proposed on behalf of one person is not what is proposed on behalf of another, whatever the arguments: each
// is decided on by itself.
func TestL27_ProposalsOfTwoPeopleAreTwo(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, bob := as(h, "ann", "member"), as(h, "bob", "member")
		a, task := rater(h)
		patch(h, a, object{"policy": object{"tools": object{"create_or_update_rating": "propose"}}})
		rate := object{"target_kind": "task", "target_id": task, "scores": object{"energy": 20}}
		hers, his := h.Call(a.ID, "create_or_update_rating", rate, ann...), h.Call(a.ID, "create_or_update_rating",
			rate, bob...)
		if p, q := proposal(h, hers.ProposalID), proposal(h, his.ProposalID); p.ID == q.ID || p.UserID != "ann" ||
			q.UserID != "bob" || p.Round != 1 || q.Round != 2 {
			t.Fatalf("one item for two people: %+v, %+v", p, q)
		}
		for who, first := range map[*[]string]reeve.Result{&ann: hers, &bob: his} {
			if again := h.Call(a.ID, "create_or_update_rating", rate, *who...); again.ProposalID != first.ProposalID {
				t.Errorf("the same again: %+v", again)
			}
		}
		say(h, hers.ProposalID, "reject", "")
		if _, p, status := do(h, a.ID, call{"tool": "create_or_update_rating", "args": rate},
			ann...); status != http.StatusForbidden || !strings.Contains(p.Detail, "rejected this") {
			t.Errorf("hers, after it was rejected: %d %+v", status, p)
		}
		say(h, his.ProposalID, "accept", "")
		h.RunUntilIdle(t.Context())
		h.Want(http.StatusOK, nil, "GET", "/api/journal/ratings/task/"+task, nil, bob...)
		h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task, nil, ann...)
		if next := h.Call(a.ID, "create_or_update_rating", rate, bob...); proposal(h, next.ProposalID).Round != 3 {
			t.Errorf("his, after it was applied: %+v", next)
		}
	})
}

// An undo is about one operation: two people's undos with the same arguments are two items, each of which takes back
// what was done for its person.
func TestL17_UndosOfTwoPeopleAreTwo(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, bob := as(h, "ann", "member"), as(h, "bob", "member")
		a, task := rater(h)
		pin := func(day string, who []string) string {
			t.Helper()
			return h.Call(a.ID, "pin_day_plan_tasks", object{"plan_date": day, "task_ids": []string{task}}, who...).
				OperationID
		}
		pinned := func(day string, who []string) int {
			t.Helper()
			var p reeve.DayPlan
			h.Want(http.StatusOK, &p, "GET", "/api/journal/plans/"+day, nil, who...)
			return len(p.Pinned)
		}
		undo := func(op string, who []string) (res reeve.Result) {
			t.Helper()
			h.Want(http.StatusAccepted, &res, "POST", "/api/operations/"+op+"/undo", nil, who...)
			return res
		}
		for word, left := range map[string]int{"accept": 0, "reject": 1} {
			patch(h, a, object{"policy": object{}})
			day := map[string]string{"accept": "2026-03-02", "reject": "2026-03-03"}[word]
			hers, his := pin(day, ann), pin(day, bob)
			patch(h, a, object{"policy": object{"tools": object{"pin_day_plan_tasks": "propose"}}})
			first, second := undo(hers, ann), undo(his, bob)
			if first.ProposalID == second.ProposalID {
				t.Fatalf("one item for two undos: %+v", second)
			}
			say(h, first.ProposalID, word, "")
			h.RunUntilIdle(t.Context())
			if again := undo(his, bob); pinned(day, ann) != left || pinned(day, bob) != 1 ||
				again.ProposalID != second.ProposalID || strings.Contains(again.Content, "Since then") {
				t.Errorf("%s hers: %d and %d pins, and he is told %+v", word, pinned(day, ann), pinned(day, bob), again)
			}
			say(h, second.ProposalID, "accept", "")
			h.RunUntilIdle(t.Context())
			if pinned(day, bob) != 0 || pinned(day, ann) != left {
				t.Errorf("his was accepted: %d and %d pins", pinned(day, ann), pinned(day, bob))
			}
		}
		patch(h, a, object{"policy": object{}})
		one := pin("2026-03-04", ann)
		h.Want(http.StatusOK, nil, "POST", "/api/journal/plans/2026-03-04/pins", reeve.PinChange{Unpin: []string{task}},
			ann...)
		two := pin("2026-03-04", ann)
		patch(h, a, object{"policy": object{"tools": object{"pin_day_plan_tasks": "propose"}}})
		if first, second := undo(one, ann), undo(two, ann); first.ProposalID == second.ProposalID {
			t.Errorf("one item for undos of two operations: %+v", second)
		}
	})
}

// A person who asks for an undo again, after its proposal was rejected, asks anew. A call that says the same stays
// rejected, whatever became of the undo.
func TestL27_ARejectedUndoIsAskedForAnew(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		a, task := rater(h)
		day := func(key string) object { return object{"plan_date": "2026-03-02", key: []string{task}} }
		op := h.Call(a.ID, "pin_day_plan_tasks", day("task_ids")).OperationID
		patch(h, a, object{"policy": object{"tools": object{"pin_day_plan_tasks": "propose"}}})
		undo := func() (res reeve.Result) {
			t.Helper()
			h.Want(http.StatusAccepted, &res, "POST", "/api/operations/"+op+"/undo", nil)
			return res
		}
		first := undo()
		args := json.RawMessage(proposal(h, first.ProposalID).Args)
		rejected := func(when string) {
			t.Helper()
			_, p, status := do(h, a.ID, call{"tool": "pin_day_plan_tasks", "args": args})
			if status != http.StatusForbidden || p.Code != reeve.Denied ||
				!strings.Contains(p.Detail, first.ProposalID) {
				t.Errorf("an equal call, %s: %d %+v", when, status, p)
			}
		}
		say(h, first.ProposalID, "reject", "not yet")
		rejected("after the undo was rejected")
		second := undo()
		if second.Replayed || second.ProposalID == first.ProposalID || proposal(h, second.ProposalID).
			State != reeve.ProposalPending {
			t.Fatalf("asked for again: %+v", second)
		}
		if again := undo(); !again.Replayed || again.ProposalID != second.ProposalID {
			t.Errorf("while it waits: %+v", again)
		}
		rejected("while the next undo waits")
		say(h, second.ProposalID, "accept", "")
		h.RunUntilIdle(t.Context())
		if p := proposal(h, second.ProposalID); p.State != reeve.ProposalApplied {
			t.Errorf("accepted: %+v", p)
		}
		rejected("after the next undo was made")
		say(h, first.ProposalID, "reopen", "")
		if res, p, status := do(h, a.ID,
			call{"tool": "pin_day_plan_tasks", "args": args}); status != http.StatusAccepted ||
			res.ProposalID != first.ProposalID {
			t.Errorf("an equal call, after a person reopened it: %d %+v %+v", status, res, p)
		}
	})
}
