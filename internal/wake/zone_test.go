package wake

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/internal/store"
)

// A timer whose zone no longer exists is disabled, and its user is notified. A timer that does not depend on its zone
// continues.
func TestO13_UnknownZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, Limits{})
		w.insertAgent("coach", 0)
		soon := time.Now().Add(2 * time.Hour)
		w.insertTimer("cron", "coach", KindCron, "0 * * * *", "look")
		w.insertTimer("local", "coach", KindOnce, soon.Format("2006-01-02T15:04"), "look")
		w.insertTimer("instant", "coach", KindOnce, soon.Format(time.RFC3339), "look")
		w.insertTimer("every", "coach", KindInterval, "1h", "look")
		timer := func(id string) (v reeve.Timer) {
			w.must(w.DB.View(t.Context(), func(s *store.Snap) (err error) {
				v, err = s.Queue().GetTimer(t.Context(), home, "", id)
				return err
			}))
			return v
		}
		for _, id := range []string{"cron", "local", "instant", "every"} {
			v := timer(id)
			v.Zone, v.Notify = "Mars/Base", reeve.NotifyNever
			w.update(func(tx *store.Tx) error { return tx.Queue().UpdateTimer(t.Context(), v) })
		}
		stop := w.startLoop()
		time.Sleep(150 * time.Minute)
		stop()
		ran := map[string]int{}
		for _, run := range w.listRuns("coach") {
			ran[run.ReasonID]++
		}
		if ran["every"] != 2 || ran["instant"] != 1 || len(ran) != 2 {
			t.Errorf("runs by timer: %v", ran)
		}
		if v := timer("every"); v.State != reeve.TimerActive || len(w.Upcoming(v, time.Now())) != firingsShown ||
			w.WhyDisabled(v) != "" {
			t.Errorf("interval with an unknown zone: %+v", v)
		}
		var notifications []reeve.Notification
		w.must(w.DB.View(t.Context(), func(s *store.Snap) (err error) {
			notifications, err = s.Queue().ListNotifications(t.Context(), home, "ann", false, "", 10)
			return err
		}))
		for i, id := range []string{"local", "cron"} { // newest first
			v := timer(id)
			if v.State != reeve.TimerDisabled || v.NextAt != nil || !strings.Contains(w.WhyDisabled(v), "Mars/Base") {
				t.Errorf("%s: %+v, because %q", id, v, w.WhyDisabled(v))
			}
			if len(notifications) != 2 || notifications[i].TimerID != id || !strings.Contains(notifications[i].Title,
				id+" is disabled") ||
				!strings.Contains(notifications[i].Title, "Mars/Base") || !strings.Contains(notifications[i].Body, id) {
				t.Fatalf("notifications of ann: %+v", notifications)
			}
		}
		is, _, err := w.Apply(timer("cron"), reeve.ScheduleRequest{Timezone: "Europe/Berlin"}, time.Now())
		if err != nil || is.State != reeve.TimerActive || is.NextAt == nil || w.WhyDisabled(is) != "" {
			t.Errorf("after a change to a known zone: %+v, %v", is, err)
		}
	})
}
