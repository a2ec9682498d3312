package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
)

// The list of held work names everything that goes on, but shows what it is about only to those who could read it
// elsewhere: another user's goal, input, turn or request to nobody but owners, and what looks like a secret in a
// waiting call to nobody who may not decide on it.
func TestG27_HeldWorkHidesPrivateText(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, w world) {
		h := w.start(t, tricks()...)
		ann, bob, eve := person(t, h, "ann", reeve.Member), person(t, h, "bob", reeve.Member),
			person(t, h, "eve", reeve.Viewer)
		a := h.Agent("aide", "danger")
		asks := object{"rehearsal": object{"steps": []any{object{"tool": "danger", "args": object{"to": "x"}}},
			"output": "done"}}
		h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, object{"config": asks})
		later := reeve.Now().Add(time.Hour).Format(time.RFC3339Nano)
		schedule := object{"agent": "aide", "name": "ann's schedule", "goal": "ann's goal", "cadence_type": "once",
			"cadence_value": later}
		timer := decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules", schedule, ann...)).ID
		approval := h.Call("aide", "danger", object{"to": "postgres://me:Hunter2Hunter2Hunter2@db"}).ApprovalID
		at := "/api/conversations/" + decode[reeve.Conversation](t, h.Want(201, nil, "POST", "/api/conversations",
			object{"agent": "aide"}, ann...)).ID
		h.Want(201, nil, "POST", at+"/turns", object{"content": "ann's turn"}, ann...)
		h.Want(201, nil, "POST", "/api/agents/aide/wake", object{"input": "ann's wake"}, ann...)
		h.RunUntilIdle(t.Context())
		queued := decode[reeve.Wake](t, h.Want(201, nil, "POST", "/api/agents/aide/wake",
			object{"input": "ann's next wake"}, ann...)).RunKey
		h.Want(201, nil, "POST", "/api/automations", object{"name": "auto"})
		plan := object{"request": "scripts_ask {\"question\": \"ann's question?\"}"}
		h.Want(201, nil, "POST", "/api/automations/auto/plan", plan, ann...)
		h.RunUntilIdle(t.Context())
		h.Agent("other", "danger")
		approved := h.Call("other", "danger", object{"to": "approved"})
		h.Want(204, nil, "POST", "/api/stop", object{"agent": "other"})
		h.Want(200, nil, "POST", "/api/approvals/"+approved.ApprovalID+"/decision", object{"decision": "approve"})
		h.Stop()
		w.cfg.Held = true
		h = w.start(t, tricks()...)

		report := func(headers ...string) (string, map[string]reeve.HeldWork, map[reeve.HeldKind]int) {
			r := h.Want(200, nil, "GET", "/api/hold", nil, headers...)
			body := decode[api.HoldReport](t, r)
			byID := map[string]reeve.HeldWork{}
			for _, v := range body.Work {
				byID[v.ID] = v
			}
			return string(r.Body), byID, body.Counts
		}
		_, owners, counts := report()
		for _, kind := range []reeve.HeldKind{reeve.HeldRun, reeve.HeldWake, reeve.HeldSchedule, reeve.HeldApproval,
			reeve.HeldScriptJob} {
			if counts[kind] == 0 {
				t.Errorf("nothing of kind %s is held: %v", kind, counts)
			}
		}
		if op := owners[approved.OperationID]; op.Agent != "other" || !strings.Contains(op.Description, "danger") {
			t.Errorf("the approved call does not name its agent and tool: %+v", op)
		}
		secrets := map[string]string{timer: "ann's goal", queued: "ann's next wake", approval: "Hunter2Hunter2Hunter2"}
		for id, v := range owners {
			if v.Kind == reeve.HeldRun && strings.Contains(v.Description, "ann's turn") {
				secrets[id] = "ann's turn"
			}
			if v.Kind == reeve.HeldScriptJob {
				secrets[id] = "ann's question"
			}
		}
		if len(secrets) != 5 {
			t.Fatalf("the owner is not shown a turn and a script job: %+v", owners)
		}
		_, hers, _ := report(ann...)
		for id, text := range secrets {
			for who, list := range map[string]map[string]reeve.HeldWork{"the owner": owners, "ann": hers} {
				if !strings.Contains(list[id].Description, text) {
					t.Errorf("%s is not shown %q: %+v", who, text, list[id])
				}
			}
		}
		for who, headers := range map[string][]string{"bob": bob, "eve": eve} {
			text, list, n := report(headers...)
			if strings.Contains(text, "ann's") {
				t.Errorf("%s is shown what is ann's: %s", who, text)
			}
			if who == "eve" && strings.Contains(text, "Hunter2") {
				t.Errorf("a viewer is shown a password that /api/approvals hides: %s", text)
			}
			if who == "bob" && !strings.Contains(list[approval].Description, "Hunter2Hunter2Hunter2") {
				t.Errorf("who may decide is not shown the arguments: %+v", list[approval])
			}
			for id, v := range owners {
				if got := list[id]; got.Kind != v.Kind || got.Agent != v.Agent || got.Description == "" ||
					got.OnResume != v.OnResume {
					t.Errorf("%s %s is listed for %s as %+v", v.Kind, id, who, got)
				}
			}
			if len(n) != len(counts) {
				t.Errorf("%s has the counts %v, the owner %v", who, n, counts)
			}
		}
	})
}
