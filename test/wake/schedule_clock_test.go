package wake_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/test/kit"
)

// Through the clock changes of 2000 in Berlin a daily schedule fires once a day.
func TestO14_ClockChangesGiveOneRunADay(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ start, end, want string }{
		// 02:30 is skipped: 03:00 local
		{"2000-03-25 12:00", "2000-03-27 12:00", "2000-03-26T01:00:00Z 2000-03-27T00:30:00Z"},
		// 02:30 comes twice: the first
		{"2000-10-28 12:00", "2000-10-30 12:00", "2000-10-29T00:30:00Z 2000-10-30T01:30:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := kit.NewBubbleHost(t, host.Config{})
			b.NewAgent("aide", nil)
			b.AdvanceTo(k.start, 0)
			b.NewSchedule("aide", kit.Object{"cadence_type": "cron", "cadence_value": "30 2 * * *",
				"timezone": "Europe/Berlin"})
			b.AdvanceTo(k.end, 10*time.Minute)
			var got []string
			for _, r := range b.ListRuns("") {
				got = append([]string{r.ScheduledAt.Format(time.RFC3339)}, got...)
			}
			if strings.Join(got, " ") != k.want {
				t.Errorf("it fired at %v, want %s", got, k.want)
			}
		})
	}
}

// After three days of sleep there is one run, marked, with the number of missed times. A clock that is put forward by a
// day has the same effect.
func TestO15_MissedTimesAreOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		b.NewAgent("aide", nil)
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "cron", "cadence_value": "0 * * * *"})
		b.AdvanceTo("2000-01-01 01:00", time.Minute)
		b.Stop()
		time.Sleep(72 * time.Hour)
		b = b.Reopen()
		b.StepAll()
		runs := b.ListRuns("")
		if len(runs) != 2 || runs[0].Reason != reeve.ReasonCatchup || runs[1].Reason != reeve.ReasonTimer {
			t.Fatalf("runs: %+v", runs)
		}
		if s = b.GetSchedule(s.ID); s.Missed != 71 || len(s.MissedAt) != 20 ||
			!s.MissedAt[0].Before(*runs[0].ScheduledAt) {
			t.Errorf("missed: %d, shown %d", s.Missed, len(s.MissedAt))
		}
		if !s.NextAt.After(time.Now()) || len(b.ListNotifications()) != 2 {
			t.Errorf("next at %s; %d notifications", s.NextAt, len(b.ListNotifications()))
		}
		time.Sleep(24 * time.Hour) // forward a day, in one leap
		b.StepAll()
		if n := len(b.ListRuns("")); n != 3 {
			t.Errorf("forward a day: %d runs", n)
		}
	})
}

// The clock is put back by an hour. Nothing fires again.
func TestO15_TheClockGoesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{Dir: dir})
		b.NewAgent("aide", nil)
		b.NewSchedule("aide", kit.Object{"name": "cron", "cadence_type": "cron", "cadence_value": "0 7 * * *"})
		b.NewSchedule("aide", kit.Object{"name": "interval", "cadence_type": "interval", "cadence_value": "150m"})
		b.AdvanceTo("2000-01-01 07:00", 30*time.Minute)
		if n := len(b.ListRuns("")); n != 3 {
			t.Fatalf("%d runs", n)
		}
		b.Stop()
	})
	synctest.Test(t, func(t *testing.T) { // time begins at midnight again
		time.Sleep(6 * time.Hour)
		b := kit.NewBubbleHost(t, host.Config{Dir: dir})
		b.AdvanceBy(75*time.Minute, time.Minute) // 07:15
		if n := len(b.ListRuns("")); n != 3 {
			t.Errorf("%d runs after the clock went back", n)
		}
		var list api.ScheduleList
		b.Want(200, &list, "GET", "/api/schedules", nil)
		for _, s := range list.Schedules { // even when it is planned anew
			b.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"status": "paused"})
		}
		b.Stop()
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(6 * time.Hour)
		b := kit.NewBubbleHost(t, host.Config{Dir: dir})
		var list api.ScheduleList
		b.Want(200, &list, "GET", "/api/schedules?name=cron", nil)
		b.Want(200, nil, "PATCH", "/api/schedules/"+list.Schedules[0].ID, kit.Object{"status": "active"})
		b.AdvanceBy(75*time.Minute, time.Minute)
		if n := len(b.ListRuns("")); n != 3 {
			t.Errorf("the same instant ran twice: %d runs", n)
		}
		b.AdvanceTo("2000-01-02 07:01", 0)
		if n := len(b.ListRuns("")); n != 4 {
			t.Errorf("%d runs the next morning", n)
		}
		b.Stop()
	})
}

// A new zone keeps the wall-clock time.
func TestO15_ZoneChangeKeepsTheWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		b.NewAgent("aide", nil)
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "cron", "cadence_value": "0 7 * * *",
			"timezone": "Europe/Berlin"})
		b.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"timezone": "America/New_York"})
		b.AdvanceTo("2000-01-02 00:00", time.Hour)
		runs := b.ListRuns("")
		if len(runs) != 1 || runs[0].ScheduledAt.Format(time.RFC3339) != "2000-01-01T12:00:00Z" {
			t.Errorf("runs: %+v", runs)
		}
	})
}
