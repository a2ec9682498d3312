package host_test

import (
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

// What is proposed on behalf of one person is not what is proposed on behalf of another, whatever the arguments: each is decided on by itself.
func TestL27_ProposalsOfTwoPeopleAreTwo(t *testing.T) {
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		h := start()
		ann, bob := as(h, "ann", "member"), as(h, "bob", "member")
		a, task := rater(h)
		patch(h, a, object{"policy": object{"tools": object{"create_or_update_rating": "propose"}}})
		rate := object{"target_kind": "task", "target_id": task, "scores": object{"energy": 20}}
		hers, his := h.Call(a.ID, "create_or_update_rating", rate, ann...), h.Call(a.ID, "create_or_update_rating", rate, bob...)
		if p, q := proposal(h, hers.ProposalID), proposal(h, his.ProposalID); p.ID == q.ID || p.UserID != "ann" || q.UserID != "bob" || p.Round != 1 || q.Round != 2 {
			t.Fatalf("one item for two people: %+v, %+v", p, q)
		}
		for who, first := range map[*[]string]reeve.Result{&ann: hers, &bob: his} {
			if again := h.Call(a.ID, "create_or_update_rating", rate, *who...); again.ProposalID != first.ProposalID {
				t.Errorf("the same again: %+v", again)
			}
		}
		say(h, hers.ProposalID, "reject", "")
		if _, p, status := do(h, a.ID, call{"tool": "create_or_update_rating", "args": rate}, ann...); status != http.StatusForbidden || !strings.Contains(p.Detail, "rejected this") {
			t.Errorf("hers, after it was rejected: %d %+v", status, p)
		}
		say(h, his.ProposalID, "accept", "")
		h.Settle(t.Context())
		h.Want(http.StatusOK, nil, "GET", "/api/journal/ratings/task/"+task, nil, bob...)
		h.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task, nil, ann...)
		if next := h.Call(a.ID, "create_or_update_rating", rate, bob...); proposal(h, next.ProposalID).Round != 3 {
			t.Errorf("his, after it was applied: %+v", next)
		}
	})
}
