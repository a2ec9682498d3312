package wake_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

// Notification policies, alerts, disabling and enabling. The answer goes to the conversation in which the schedule was
// made.
func TestO17_Notifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		for _, policy := range []string{"always", "conditional", "never"} {
			b.NewAgent(policy, kit.Object{"config": kit.RehearsalConfig("fine")})
			b.NewSchedule(policy, kit.Object{"name": policy, "cadence_type": "interval", "cadence_value": "1h",
				"notification": policy})
		}
		wordy := b.NewAgent("wordy",
			kit.Object{"config": kit.Object{"rehearsal": kit.Object{"steps": []kit.Object{}, "output": "look",
				"notify": true}}})
		b.NewSchedule("wordy", kit.Object{"name": "wordy", "cadence_type": "interval", "cadence_value": "1h",
			"notification": "conditional"})
		b.AttachTools("wordy", "schedule_create")
		made := kit.DecodeResult[api.Schedule](t, b.CallAs("owner", wordy.ID, "schedule_create",
			kit.Object{"goal": "g", "name": "from afar", "cadence_type": "interval", "cadence_value": "1h"}))
		b.AdvanceBy(time.Hour, time.Hour)
		got := map[string]int{}
		for _, n := range b.ListNotifications() {
			got[n.Title+": "+n.Body]++
			if n.TimerID == made.ID && n.Session != wordy.ID+":session:default" {
				t.Errorf("%+v", n)
			}
		}
		if len(got) != 3 || got["always: fine"] != 1 || got["wordy: look"] != 1 || got["from afar: look"] != 1 {
			t.Errorf("told: %v", got)
		}
		var messages api.MessageList
		b.Want(200, &messages, "GET", "/api/agents/wordy/messages", nil)
		last := messages.Messages[len(messages.Messages)-1]
		if last.Kind != reeve.Observation || !strings.Contains(last.Content, "look") ||
			!strings.Contains(string(last.Metadata), made.ID) {
			t.Errorf("the conversation that made it ends with %+v", last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		b.NewAgent("bad", kit.Object{
			"config": kit.Object{"rehearsal": kit.Object{"steps": []kit.Object{{"fail": "no luck"}}}}})
		s := b.NewSchedule("bad", kit.Object{"name": "bad", "cadence_type": "interval", "cadence_value": "1h",
			"notification": "never"})
		var titles []string
		for range 7 {
			b.AdvanceBy(time.Hour, time.Hour)
			if list := b.ListNotifications(); len(list) > len(titles) {
				titles = append(titles, list[0].Title)
			}
		}
		if strings.Join(titles, "; ") != "bad failed 3 times in a row; bad is disabled after 5 failures in a row" {
			t.Errorf("told: %v", titles)
		}
		if got := b.GetSchedule(s.ID); got.State != reeve.TimerDisabled || got.Failures != 5 ||
			len(b.ListRuns("")) != 5 ||
			got.NextAt != nil {
			t.Errorf("%+v, %d runs", got.Timer, len(b.ListRuns("")))
		}
		b.Want(200, nil, "PATCH", "/api/agents/bad", kit.Object{"config": kit.RehearsalConfig("better")})
		b.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"status": "active"})
		if got := b.GetSchedule(s.ID); got.Failures != 0 || got.State != reeve.TimerActive {
			t.Errorf("re-enabled: %+v", got.Timer)
		}
		b.AdvanceBy(time.Hour, time.Hour)
		if n := len(b.ListRuns("state=completed")); n != 1 {
			t.Errorf("%d runs after it was enabled", n)
		}
	})
}

// The webhook gets each notification under its id, again after a failure, at most ten times. Private addresses are
// reached only if the operator allows it.
func TestO17_Webhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	fail := 2
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		var n reeve.Notification
		if json.Unmarshal(body, &n) != nil || n.ID != r.Header.Get("Idempotency-Key") || n.Title == "" {
			t.Errorf("it was told %s under %s", body, r.Header.Get("Idempotency-Key"))
		}
		if seen[n.ID]++; seen[n.ID] <= fail {
			w.WriteHeader(503)
		}
	}))
	t.Cleanup(hook.Close)
	tell := func(h *reevetest.Host) {
		h.Agent("aide")
		kit.SetRehearsal(h, "aide", "ok")
		h.Want(201, nil, "POST", "/api/schedules", kit.Object{"agent": "aide", "goal": "g", "cadence_type": "once",
			"cadence_value": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339Nano)})
	}
	list := func(h *reevetest.Host) []reeve.Notification {
		var l api.NotificationList
		h.Want(200, &l, "GET", "/api/notifications", nil)
		return l.Notifications
	}
	fail = 0
	h := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Webhook: hook.URL + "/hook?secret=abcdefgh",
		HTTPAllow: []string{strings.TrimPrefix(hook.URL, "http://")}})
	tell(h)
	kit.Eventually(t, "the webhook to be told", func() bool {
		h.RunUntilIdle(t.Context())
		l := list(h)
		return len(l) == 1 && l[0].DeliveredAt != nil
	})
	h.RunUntilIdle(t.Context())
	mu.Lock()
	if len(seen) != 1 || seen[list(h)[0].ID] != 1 {
		t.Errorf("it was told %v", seen)
	}
	clear(seen)
	mu.Unlock()
	guarded := reevetest.StartWith(t, host.Config{Dir: t.TempDir(), Webhook: hook.URL})
	tell(guarded)
	kit.Eventually(t, "a notification", func() bool { guarded.RunUntilIdle(t.Context()); return len(list(guarded)) == 1 })
	guarded.RunUntilIdle(t.Context())
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 0 || list(guarded)[0].DeliveredAt != nil {
		t.Errorf("a private address was reached: %v", seen)
	}
}
