package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// wakeFixture has the ids of a run, a wake, a subscription, a schedule and a notification.
type wakeFixture struct{ run, wake, subscription, schedule, notification string }

var missingWakes = wakeFixture{run: "run_none", wake: "wake_none", subscription: "sub_none", schedule: "sch_none",
	notification: "ntf_none"}

// createWakeFixture creates a subscription, a schedule, the notification of another schedule that has fired, and a
// parked run.
func createWakeFixture(t *testing.T, h *reevetest.Host, agent string) (x wakeFixture) {
	t.Helper()
	at := "/api/agents/" + agent
	soon := reeve.Now().Add(time.Second).Format(time.RFC3339Nano)
	h.Want(201, nil, "POST", "/api/schedules", object{"agent": agent, "name": "alpha's", "goal": "alpha's",
		"cadence_type": "once", "cadence_value": soon})
	for deadline := reeve.Now().Add(30 * time.Second); x.notification == ""; {
		h.RunUntilIdle(t.Context())
		list := decode[api.NotificationList](t, h.Want(200, nil, "GET", "/api/notifications", nil))
		for _, n := range list.Notifications {
			x.notification = n.ID
		}
		if reeve.Now().After(deadline) {
			t.Fatal("the schedule created no notification")
		}
	}
	x.subscription = decode[reeve.Subscription](t, h.Want(201, nil, "POST", at+"/subscriptions",
		object{"class": "key", "name": "ALPHA"})).ID
	x.schedule = decode[api.Schedule](t, h.Want(201, nil, "POST", "/api/schedules",
		object{"agent": agent, "name": "alpha's", "cadence_type": "cron", "cadence_value": "0 7 * * *"})).ID
	h.Want(200, nil, "PATCH", at,
		object{"config": object{"rehearsal": object{"steps": []any{object{"tool": "erase", "args": object{}}}}}})
	x.wake = decode[reeve.Wake](t, h.Want(201, nil, "POST", at+"/wake", object{"input": "alpha's"})).RunKey
	h.RunUntilIdle(t.Context())
	for _, r := range decode[api.RunList](t, h.Want(200, nil, "GET", "/api/runs?state=parked&agent="+agent, nil)).Runs {
		x.run = r.ID
	}
	if x.run == "" {
		t.Fatal("no run is parked")
	}
	return x
}

func (x wakeFixture) mask(s string) string {
	for _, id := range []string{x.run, x.wake, x.subscription, x.schedule, x.notification} {
		s = strings.ReplaceAll(s, id, "#")
	}
	return s
}

func (x wakeFixture) samples(agentID string) map[string]sample {
	agent := "/api/agents/" + agentID
	return map[string]sample{
		"listRuns":        {"/api/runs", nil, false, reeve.Viewer},
		"getRun":          {"/api/runs/" + x.run, nil, true, reeve.Viewer},
		"listRunWakes":    {"/api/runs/" + x.run + "/wakes", nil, true, reeve.Viewer},
		"cancelRun":       {"/api/runs/" + x.run + "/cancel", nil, true, reeve.Member},
		"planRunUndo":     {"/api/runs/" + x.run + "/undo", nil, true, reeve.Member},
		"undoRun":         {"/api/runs/" + x.run + "/undo", nil, true, reeve.Member},
		"listRunRequests": {"/api/runs/" + x.run + "/requests", nil, true, reeve.Viewer},
		"wakeAgent":       {agent + "/wake", object{}, true, reeve.Member},
		"getWake":         {"/api/wakes/" + x.wake, nil, true, reeve.Viewer},
		"getAgentState":   {agent + "/state", nil, true, reeve.Viewer},
		"putAgentState": {agent + "/state", object{"revision": 0, "slots": object{"primary_goal": "alpha's"}},
			true, reeve.Member},
		"getAgentRuntime":    {agent + "/runtime", nil, true, reeve.Viewer},
		"getNotification":    {"/api/notifications/" + x.notification, nil, true, reeve.Viewer},
		"listAgentWakes":     {agent + "/wakes", nil, true, reeve.Viewer},
		"listSubscriptions":  {agent + "/subscriptions", nil, true, reeve.Viewer},
		"createSubscription": {agent + "/subscriptions", object{"class": "key", "name": "X"}, true, reeve.Member},
		"deleteSubscription": {"/api/subscriptions/" + x.subscription, nil, true, reeve.Member},
		"listSchedules":      {"/api/schedules", nil, false, reeve.Viewer},
		"createSchedule": {"/api/schedules", object{"agent": agentID, "cadence_type": "interval",
			"cadence_value": "2h"}, true, reeve.Member},
		"getSchedule":          {"/api/schedules/" + x.schedule, nil, true, reeve.Viewer},
		"updateSchedule":       {"/api/schedules/" + x.schedule, object{"name": "other"}, true, reeve.Member},
		"deleteSchedule":       {"/api/schedules/" + x.schedule, nil, true, reeve.Member},
		"runSchedule":          {"/api/schedules/" + x.schedule + "/run", nil, true, reeve.Member},
		"trySubscription":      {agent + "/subscriptions/trial?class=key&name=TASK", nil, true, reeve.Viewer},
		"listScheduleRuns":     {"/api/schedules/" + x.schedule + "/runs", nil, true, reeve.Viewer},
		"listNotifications":    {"/api/notifications", nil, false, reeve.Viewer},
		"markNotificationRead": {"/api/notifications/" + x.notification + "/read", nil, true, reeve.Member},
	}
}
