package host_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// An undo brings back what was there to the byte, a secret too. Those who look at it are shown it without. A person who
// decides on it is shown what only looks like a secret, but none that is stored.
func TestG21_AnUndoIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, start func(...reeve.Tool) *reevetest.Host) {
		const stored, told = "amber-lantern-willow", "Summer2026rain"
		const title, note = "Use " + stored, "postgres://me:" + told + "@db.example.com"
		h := start()
		var looker api.NewToken
		h.Want(201, &looker, "POST", "/api/tokens", object{"name": "looks on", "user": "bob", "role": "viewer"})
		viewer := []string{"Authorization", "Bearer " + looker.Token}
		h.Want(204, nil, "PUT", "/api/secrets/LAMP", object{"value": stored})
		var gym reeve.Category
		h.Want(201, &gym, "POST", "/api/journal/categories", object{"name": "Gym"})
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", object{"category_id": gym.ID, "title": title,
			"description": note})
		a := h.Agent("coach", "update_task_fields")
		set := func(policy string) {
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, object{"kind": "planner", "categories": []string{gym.ID},
				"policy": object{"tools": object{"update_task_fields": policy}}})
		}
		holds := func(when, title, description string) {
			t.Helper()
			var got reeve.Task
			if h.Want(200, &got, "GET", "/api/journal/tasks/"+task.ID, nil); got.Title != title ||
				got.Description != description {
				t.Errorf("%s: the task is %q, %q", when, got.Title, got.Description)
			}
		}
		unseen := func(when string) {
			t.Helper()
			for _, path := range []string{"operations", "approvals", "proposals", "inbox", "agents/coach/messages",
				"change-sets"} {
				deciders := path != "operations" && path != "agents/coach/messages"
				body := string(h.Want(200, nil, "GET", "/api/"+path, nil).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) && !deciders {
					t.Errorf("%s: /api/%s shows it: %s", when, path, body)
				}
				body = string(h.Want(200, nil, "GET", "/api/"+path, nil, viewer...).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) {
					t.Errorf("%s: /api/%s shows it to those who cannot decide: %s", when, path, body)
				}
			}
		}
		change := func() reeve.Result {
			t.Helper()
			set("allow")
			res := h.Call("coach", "update_task_fields", object{"task_id": task.ID, "title": "Use another",
				"description": ""})
			if res.Undo == nil || strings.Contains(string(res.Undo.Args), stored) ||
				strings.Contains(string(res.Undo.Args), told) || !strings.Contains(string(res.Undo.Args),
				"Use [REDACTED]") {
				t.Errorf("the call's answer: %+v", res)
			}
			return res
		}
		look := func(op string) {
			t.Helper()
			for _, path := range []string{"operations/" + op, "calls/" + op + "/explanation"} {
				body := string(h.Want(200, nil, "GET", "/api/"+path, nil, viewer...).Body)
				if strings.Contains(body, stored) || strings.Contains(body, told) {
					t.Errorf("/api/%s shows it: %s", path, body)
				}
			}
		}
		undo := func(op string) (res reeve.Result) {
			t.Helper()
			h.Do("POST", "/api/operations/"+op+"/undo", nil).Decode(t, &res)
			return res
		}

		res := change()
		look(res.OperationID)
		if again, p, status := do(h, "coach",
			call{"tool": res.Undo.Tool, "args": res.Undo.Args}); again.Code != reeve.Validation &&
			p.Code != reeve.Validation || !strings.Contains(again.Message+p.Detail, "stands for a redacted secret") {
			t.Errorf("called with what is shown: %d %+v %+v", status, again, p)
		}
		holds("called with what is shown", "Use another", "")
		back := undo(res.OperationID)
		look(back.OperationID)
		holds("undone", title, note)
		unseen("undone")

		res = change()
		set("ask")
		parked := undo(res.OperationID)
		look(parked.OperationID)
		unseen("asked for")
		if list := inbox(h).Approvals; len(list) != 1 || !strings.Contains(list[0].Args, "Use [REDACTED]") ||
			!strings.Contains(list[0].Args, told) { // what only looks like a secret is shown to who decides
			t.Fatalf("%+v", list)
		}
		decide(h, parked.ApprovalID, "approve")
		h.RunUntilIdle(t.Context())
		look(parked.OperationID)
		holds("approved", title, note)

		res = change()
		set("propose")
		item := undo(res.OperationID)
		unseen("proposed")
		h.Want(200, nil, "POST", "/api/proposals/"+item.ProposalID+"/accept", object{})
		h.RunUntilIdle(t.Context())
		holds("accepted", title, note)
		var p reeve.Proposal
		if h.Want(200, &p, "GET", "/api/proposals/"+item.ProposalID, nil); p.State != reeve.ProposalApplied {
			t.Errorf("%+v", p)
		}
		look(p.OperationID)
		unseen("accepted")
	})
}
