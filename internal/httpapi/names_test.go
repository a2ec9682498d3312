package httpapi_test

import (
	"slices"
	"strings"
	"testing"

	"reeve"
)

// A category is named by its id or its name, and kept by its id. One that is not there is refused, with those that are.
func TestNames_TheCategoriesOfAnAgentAreThere(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t)
		p := refused(t, h.Do("POST", "/api/agents", object{"name": "coach", "categories": []string{"gym"}}), 400, reeve.Validation)
		if len(p.Errors) != 1 || p.Errors[0].Path != "/categories/0" || !strings.Contains(p.Hint, "none yet") {
			t.Errorf("%+v", p)
		}
		made := func(name string) string {
			return decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": name})).ID
		}
		gym, home := made("Gym"), made("Home and garden")
		for _, names := range [][]string{{"gym"}, {"GYM"}, {" Gym "}, {gym}, {"gym", gym, "Gym"}} {
			a := decode[reeve.Agent](t, h.Want(201, nil, "POST", "/api/agents", object{"name": "coach", "categories": names}))
			if !slices.Equal(a.Categories, []string{gym}) {
				t.Errorf("%v are %v", names, a.Categories)
			}
			h.Want(204, nil, "DELETE", "/api/agents/coach", nil)
		}
		h.Want(201, nil, "POST", "/api/agents", object{"name": "coach", "categories": []string{"home and garden", "gym"}})
		for _, bad := range []string{"", "gyms", "cat_nothing", "Home", gym + "x"} {
			p := refused(t, h.Do("PATCH", "/api/agents/coach", object{"categories": []string{"gym", bad}}), 400, reeve.Validation)
			if len(p.Errors) != 1 || p.Errors[0].Path != "/categories/1" || !strings.Contains(p.Hint, "Gym, Home and garden") {
				t.Errorf("%q: %+v", bad, p)
			}
		}
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		refused(t, h.Do("POST", "/api/agents", object{"name": "x", "categories": []string{gym}}, "X-Workspace-Id", "beta"), 400, reeve.Validation)

		// One that is gone since may stay, and cannot be given anew.
		h.Want(204, nil, "DELETE", "/api/journal/categories/"+home, nil)
		a := decode[reeve.Agent](t, h.Want(200, nil, "PATCH", "/api/agents/coach", object{"categories": []string{home, "gym"}}))
		if !slices.Equal(a.Categories, []string{home, gym}) {
			t.Errorf("they are %v", a.Categories)
		}
		refused(t, h.Do("POST", "/api/agents", object{"name": "late", "categories": []string{home}}), 400, reeve.Validation)
	})
}

// A list that is narrowed by a name that is not there is refused, and not empty.
func TestNames_FiltersNameWhatIsThere(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.Want(201, nil, "POST", "/api/agents", object{"name": "coach"})
	for _, path := range []string{"/api/journal/tasks?category=gym", "/api/journal/tasks?label=legs", "/api/journal/time-entries?task=task_none", "/api/journal/ratings?category=gym",
		"/api/proposals?set=cs_none", "/api/proposals?agent=nobody", "/api/change-sets?agent=nobody", "/api/operations?agent=nobody", "/api/runs?agent=nobody",
		"/api/schedules?agent=nobody", "/api/notes?agent=nobody", "/api/conversations?agent=nobody", "/api/conversations?user=nobody", "/api/branches?project=nothing"} {
		refused(t, h.Do("GET", path, nil), 404, reeve.NotFound)
	}
	h.Want(200, nil, "GET", "/api/conversations?user=owner", nil)
	schedule := object{"agent": "coach", "name": "x", "goal": "g", "cron": "0 7 * * *", "zone": "Europe/Nowhere"}
	if r := h.Do("POST", "/api/schedules", schedule); r.Status != 400 {
		t.Errorf("an unknown zone: %d %s", r.Status, r.Body)
	}
}

// A subscription is to something that can change.
func TestNames_WhatIsWatchedIsThere(t *testing.T) {
	t.Parallel()
	h := start(t)
	coach := decode[reeve.Agent](t, h.Want(201, nil, "POST", "/api/agents", object{"name": "coach"}))
	gym := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "Gym"}))
	const at = "/api/agents/coach/subscriptions"
	for _, v := range [][2]string{{"key", "TASKS"}, {"key", "task"}, {"key", "X"}, {"subtype", "task.finished"}, {"subtype", "Task.done"}, {"subtype", "TASK"},
		{"id", "gym"}, {"id", "coach"}, {"id", "task_none"}, {"id", gym.ID + "x"}} {
		refusedAt(t, h.Do("POST", at, object{"class": v[0], "name": v[1]}), "/name")
	}
	for _, v := range [][2]string{{"key", "TASK"}, {"key", "AGENT_STATE"}, {"key", "SESSION_FILE"}, {"subtype", "task.done"}, {"subtype", "rating.task"}, {"subtype", "time_entry.ended"},
		{"id", gym.ID}, {"id", coach.ID}, {"id", "/shared/plan.md"}} {
		h.Want(201, nil, "POST", at, object{"class": v[0], "name": v[1]})
	}
	own := start(t, tricks()...) // whose tools may tell of anything
	own.Want(201, nil, "POST", "/api/agents", object{"name": "coach"})
	own.Want(201, nil, "POST", at, object{"class": "key", "name": "LETTER"})
	refusedAt(t, own.Do("POST", at, object{"class": "key", "name": "task"}), "/name")
}
