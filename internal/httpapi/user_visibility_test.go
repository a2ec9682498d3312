package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// createUserToken creates a token of a user and returns the headers of the user's requests.
func createUserToken(t *testing.T, h *reevetest.Host, user string, role reeve.Role) []string {
	t.Helper()
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: user, User: user, Role: role})
	return withToken(made.Token)
}

// Entries of one user are hidden from other users: they are in no list, and requests for them fail exactly as for
// entries that do not exist. Owners see them. Everyone sees entries without a user.
func TestO11_EntriesOfUserAreHiddenFromOthers(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t, testTools()...)
		ann, bob, eve := createUserToken(t, h, "ann", reeve.Member), createUserToken(t, h, "bob", reeve.Member),
			createUserToken(t, h, "eve", reeve.Viewer)
		a := h.Agent("aide", "look", "erase")
		at := "/api/agents/" + a.ID
		h.Want(200, nil, "PATCH", at,
			object{"config": object{"rehearsal": object{"steps": []any{object{"tool": "look"}}, "output": "done"}}})
		soon := reeve.Now().Add(time.Second).Format(time.RFC3339Nano)
		sch := decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
			object{"agent": "aide", "name": "ann's own", "goal": "ann's goal", "cadence_type": "once",
				"cadence_value": soon}, ann...))
		manual := decode[reeve.Wake](t, h.Want(201, nil, "POST", at+"/wake", object{"input": "ann's input"}, ann...))
		h.Want(201, nil, "POST", at+"/subscriptions", object{"class": "key", "name": "CATEGORY"})
		env.exec(t, `UPDATE subscriptions SET user_id = ''`) // so that its run acts for no user
		h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "Gym"})
		var note string
		for deadline := reeve.Now().Add(30 * time.Second); note == "" ||
			len(decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?state=completed", nil)).Runs) < 3; {
			h.RunUntilIdle(t.Context())
			for _, n := range decode[api.NotificationList](t, h.Want(200, nil, "GET", "/api/notifications", nil,
				ann...)).Notifications {
				note = n.ID
			}
			if reeve.Now().After(deadline) {
				t.Fatal("the schedule created no notification")
			}
		}
		var annsRuns, runsWithoutUser []string
		for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs {
			if r.UserID == "ann" {
				annsRuns = append(annsRuns, r.ID)
			} else if r.UserID == "" {
				runsWithoutUser = append(runsWithoutUser, r.ID)
			}
		}
		if len(annsRuns) != 2 || len(runsWithoutUser) != 1 {
			t.Fatalf("runs of ann %v, runs without a user %v", annsRuns, runsWithoutUser)
		}
		type look struct {
			method, path, id, none string
			body                   any
			change                 bool
		}
		looks := []look{
			{"GET", "/api/schedules/%s", sch.ID, "sch_none", nil, false},
			{"GET", "/api/schedules/%s/runs", sch.ID, "sch_none", nil, false},
			{"PATCH", "/api/schedules/%s", sch.ID, "sch_none", object{"name": "bob's"}, true},
			{"DELETE", "/api/schedules/%s", sch.ID, "sch_none", nil, true},
			{"GET", "/api/wakes/%s", manual.RunKey, "wake_none", nil, false},
			{"GET", "/api/notifications/%s", note, "ntf_none", nil, false},
			{"POST", "/api/notifications/%s/read", note, "ntf_none", nil, true},
		}
		for _, id := range annsRuns {
			looks = append(looks, look{"GET", "/api/runs/%s", id, "run_none", nil, false},
				look{"GET", "/api/runs/%s/wakes", id, "run_none", nil, false},
				look{"POST", "/api/runs/%s/cancel", id, "run_none", nil, true})
		}
		for _, other := range [][]string{bob, eve} {
			for _, l := range looks {
				if l.change && &other[0] == &eve[0] {
					continue // a viewer cannot change anything
				}
				p := wantProblem(t, h.Do(l.method, fmt.Sprintf(l.path, l.id), l.body, other...), 404, reeve.NotFound)
				q := wantProblem(t, h.Do(l.method, fmt.Sprintf(l.path, l.none), l.body, other...), 404, reeve.NotFound)
				if strings.ReplaceAll(p.Detail, l.id, l.none) != q.Detail || p.Hint != q.Hint {
					t.Errorf("%s %s: detail %q differs from %q", l.method, l.path, p.Detail, q.Detail)
				}
			}
			for _, list := range []string{"/api/schedules", "/api/schedules?agent=aide", "/api/runs",
				"/api/runs?agent=aide", at + "/wakes", "/api/notifications",
				at + "/messages?run=" + annsRuns[0], at + "/messages?run=" + annsRuns[1]} {
				if r := h.Want(200, nil, "GET", list, nil, other...); strings.Contains(string(r.Body), "ann") {
					t.Errorf("%s shows %s", list, r.Body)
				}
			}
			if l := decode[api.ScheduleList](t, h.Want(200, nil, "GET", "/api/schedules", nil, other...)); l.Total != 0 {
				t.Errorf("%d schedules, want 0", l.Total)
			}
			if l := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil, other...)); len(l.Runs) != 1 ||
				l.Runs[0].ID != runsWithoutUser[0] {
				t.Errorf("%+v", l)
			}
			h.Want(200, nil, "GET", "/api/runs/"+runsWithoutUser[0]+"/wakes", nil, other...)
			if l := decode[api.MessageList](t, h.Want(200, nil, "GET", at+"/messages?run="+runsWithoutUser[0], nil,
				other...)); len(l.Messages) == 0 {
				t.Error("messages of a run without a user are hidden")
			}
		}
		for _, l := range looks { // ann and owners see them
			if l.change {
				continue
			}
			h.Want(200, nil, l.method, fmt.Sprintf(l.path, l.id), nil, ann...)
			h.Want(200, nil, l.method, fmt.Sprintf(l.path, l.id), nil)
		}
		if l := decode[api.MessageList](t, h.Want(200, nil, "GET", at+"/messages?run="+annsRuns[0], nil, ann...)); len(l.Messages) == 0 {
			t.Error("messages of ann's run are hidden from ann")
		}
		if got := decode[api.Schedule](t, h.Want(200, nil, "GET", "/api/schedules/"+sch.ID, nil, ann...)); got.Name != "ann's own" {
			t.Errorf("schedule was changed: %+v", got)
		}
		h.Want(200, nil, "PATCH", "/api/schedules/"+sch.ID, object{"name": "an owner's"})
		h.Want(204, nil, "POST", "/api/notifications/"+note+"/read", nil, ann...)
		h.Want(204, nil, "DELETE", "/api/schedules/"+sch.ID, nil, ann...)
	})
}
