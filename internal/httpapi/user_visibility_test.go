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

// person makes a token of somebody's and gives the headers of their requests.
func person(t *testing.T, h *reevetest.Host, user string, role reeve.Role) []string {
	t.Helper()
	var made api.NewToken
	h.Want(201, &made, "POST", "/api/tokens", api.TokenRequest{Name: user, User: user, Role: role})
	return as(made.Token)
}

// What is on one user's behalf is not there for another, over REST too: in the very words for what never was, in no
// list, and it cannot be changed. Owners see it, and what is on nobody's behalf everybody sees.
func TestO11_OverREST(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		ann, bob, eve := person(t, h, "ann", reeve.Member), person(t, h, "bob", reeve.Member),
			person(t, h, "eve", reeve.Viewer)
		a := h.Agent("aide", "looks", "danger")
		at := "/api/agents/" + a.ID
		h.Want(200, nil, "PATCH", at,
			object{"config": object{"rehearsal": object{"steps": []any{object{"tool": "looks"}}, "output": "done"}}})
		soon := reeve.Now().Add(time.Second).Format(time.RFC3339Nano)
		sch := decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
			object{"agent": "aide", "name": "ann's own", "goal": "ann's goal", "cadence_type": "once",
				"cadence_value": soon}, ann...))
		manual := decode[reeve.Wake](t, h.Want(201, nil, "POST", at+"/wake", object{"input": "ann's wish"}, ann...))
		h.Want(201, nil, "POST", at+"/subscriptions", object{"class": "key", "name": "CATEGORY"})
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
				t.Fatal("the schedule told nobody")
			}
		}
		var hers, nobodys []string
		for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil)).Runs {
			if r.UserID == "ann" {
				hers = append(hers, r.ID)
			} else if r.UserID == "" {
				nobodys = append(nobodys, r.ID)
			}
		}
		if len(hers) != 2 || len(nobodys) != 1 {
			t.Fatalf("runs of hers %v, of nobody's %v", hers, nobodys)
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
		for _, id := range hers {
			looks = append(looks, look{"GET", "/api/runs/%s", id, "run_none", nil, false},
				look{"GET", "/api/runs/%s/wakes", id, "run_none", nil, false},
				look{"POST", "/api/runs/%s/cancel", id, "run_none", nil, true})
		}
		for _, other := range [][]string{bob, eve} {
			for _, l := range looks {
				if l.change && &other[0] == &eve[0] {
					continue // a viewer changes nothing anyway
				}
				p := refused(t, h.Do(l.method, fmt.Sprintf(l.path, l.id), l.body, other...), 404, reeve.NotFound)
				q := refused(t, h.Do(l.method, fmt.Sprintf(l.path, l.none), l.body, other...), 404, reeve.NotFound)
				if strings.ReplaceAll(p.Detail, l.id, l.none) != q.Detail || p.Hint != q.Hint {
					t.Errorf("%s %s: %q is not as %q", l.method, l.path, p.Detail, q.Detail)
				}
			}
			for _, list := range []string{"/api/schedules", "/api/schedules?agent=aide", "/api/runs",
				"/api/runs?agent=aide", at + "/wakes", "/api/notifications",
				at + "/messages?run=" + hers[0], at + "/messages?run=" + hers[1]} {
				if r := h.Want(200, nil, "GET", list, nil, other...); strings.Contains(string(r.Body), "ann") {
					t.Errorf("%s shows %s", list, r.Body)
				}
			}
			if l := decode[api.ScheduleList](t, h.Want(200, nil, "GET", "/api/schedules", nil,
				other...)); l.Total != 0 {
				t.Errorf("the count of schedules says %d", l.Total)
			}
			if l := decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs", nil, other...)); len(l.Runs) != 1 ||
				l.Runs[0].ID != nobodys[0] {
				t.Errorf("%+v", l)
			}
			h.Want(200, nil, "GET", "/api/runs/"+nobodys[0]+"/wakes", nil, other...)
			if l := decode[api.MessageList](t, h.Want(200, nil, "GET", at+"/messages?run="+nobodys[0], nil,
				other...)); len(l.Messages) == 0 {
				t.Error("the thread of nobody's run is hidden")
			}
		}
		for _, l := range looks { // to her and to an owner they are there
			if l.change {
				continue
			}
			h.Want(200, nil, l.method, fmt.Sprintf(l.path, l.id), nil, ann...)
			h.Want(200, nil, l.method, fmt.Sprintf(l.path, l.id), nil)
		}
		if l := decode[api.MessageList](t, h.Want(200, nil, "GET", at+"/messages?run="+hers[0], nil,
			ann...)); len(l.Messages) == 0 {
			t.Error("her run's thread is hidden from her")
		}
		if got := decode[api.Schedule](t, h.Want(200, nil, "GET", "/api/schedules/"+sch.ID, nil,
			ann...)); got.Name != "ann's own" {
			t.Errorf("it was changed: %+v", got)
		}
		h.Want(200, nil, "PATCH", "/api/schedules/"+sch.ID, object{"name": "an owner's"})
		h.Want(204, nil, "POST", "/api/notifications/"+note+"/read", nil, ann...)
		h.Want(204, nil, "DELETE", "/api/schedules/"+sch.ID, nil, ann...)
	})
}
