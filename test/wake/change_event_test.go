package wake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/host"
	"reeve/test/kit"
)

// Every change of a schedule is an event, whoever makes it. A request that changes nothing is none.
func TestL03_ScheduleChangesAreEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{DisableAfter: 2})
		a := b.NewAgent("aide", nil)
		b.AttachTools("aide", scheduleTools...)
		woken := b.NewWatcher("w", "key", "SCHEDULE")
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "interval", "cadence_value": "30d"})
		if n := woken(); n != 1 {
			t.Errorf("created: woken %d times", n)
		}
		one := b.NewWatcher("one", "id", s.ID)
		patch := func(q kit.Object) func() { return func() { b.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, q) } }
		edit := func(q kit.Object) func() {
			return func() {
				q["schedule_id"] = s.ID
				if res := b.CallAs(s.UserID, a.ID, "schedule_edit", q); res.IsError {
					t.Errorf("%v: %+v", q, res)
				}
			}
		}
		b.NewAgent("other", nil)
		for _, k := range []struct {
			what string
			do   func()
			want int
		}{
			{"renamed", patch(kit.Object{"name": "new"}), 1},
			{"renamed to the same", patch(kit.Object{"name": "new"}), 0},
			{"nothing said", patch(kit.Object{}), 0},
			{"paused", patch(kit.Object{"status": "paused"}), 1},
			{"paused twice", patch(kit.Object{"status": "paused"}), 0},
			{"resumed", patch(kit.Object{"status": "active"}), 1},
			{"resumed twice", patch(kit.Object{"status": "active"}), 0},
			{"given another time", patch(kit.Object{"cadence_type": "cron", "cadence_value": "0 7 1 1 *"}), 1},
			{"given the same time", patch(kit.Object{"cadence_type": "cron", "cadence_value": "0 7 1 1 *"}), 0},
			{"given the same time in other words",
				patch(kit.Object{"cadence_type": "cron", "cadence_value": "00  7 1 JAN *", "timezone": "UTC"}), 0},
			{"given the same time in other words by a tool",
				edit(kit.Object{"cadence_type": "cron", "cadence_value": "0 7 1 1 ?"}), 0},
			{"given to another agent", patch(kit.Object{"agent": "other"}), 1},
			{"given to the same agent", patch(kit.Object{"agent": "other"}), 0},
			{"renamed by a tool", edit(kit.Object{"name": "newer"}), 1},
			{"renamed to the same by a tool", edit(kit.Object{"name": "newer"}), 0},
			{"nothing said by a tool", edit(kit.Object{}), 0},
			{"paused by a tool", edit(kit.Object{"status": "paused"}), 1},
			{"paused twice by a tool", edit(kit.Object{"status": "paused"}), 0},
			{"its agent destroyed", func() {
				b.Want(200, nil, "PATCH", "/api/agents/other", kit.Object{"lifecycle": "destroyed"})
			}, 1},
			{"deleted", func() { b.Want(204, nil, "DELETE", "/api/schedules/"+s.ID, nil) }, 1},
		} {
			k.do()
			if n, m := woken(), one(); n != k.want || m != k.want {
				t.Errorf("%s: woken %d times, and %d by its id, want %d", k.what, n, m, k.want)
			}
		}
		b.NewAgent("gone", nil)
		b.NewSchedule("gone", kit.Object{"cadence_type": "interval", "cadence_value": "30d"})
		woken()
		b.Want(204, nil, "DELETE", "/api/agents/gone", nil)
		if n := woken(); n != 1 {
			t.Errorf("removed with its agent: woken %d times", n)
		}
		// Disabling a failing schedule is an event. A firing is not.
		b.NewAgent("clumsy", kit.Object{
			"config": kit.Object{"rehearsal": kit.Object{"steps": []kit.Object{{"tool": "no_such_tool",
				"must": true, "args": kit.Object{}}}}}})
		f := b.NewSchedule("clumsy", kit.Object{"cadence_type": "interval", "cadence_value": "1h",
			"notification": "never"})
		woken()
		b.AdvanceBy(time.Hour, time.Hour)
		if n := woken(); n != 0 || b.GetSchedule(f.ID).Failures != 1 {
			t.Errorf("fired: woken %d times: %+v", n, b.GetSchedule(f.ID).Timer)
		}
		b.AdvanceBy(time.Hour, time.Hour)
		if n := woken(); n != 1 || b.GetSchedule(f.ID).State != reeve.TimerDisabled {
			t.Errorf("disabled: woken %d times: %+v", n, b.GetSchedule(f.ID).Timer)
		}
	})
}

// Every notification is an event for its subscribers, except for the agent whose run wrote it.
func TestL03_NotificationsAreEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		a := b.NewAgent("aide", nil)
		b.Want(201, nil, "POST", "/api/agents/aide/subscriptions", kit.Object{"class": "key", "name": "NOTIFICATION"})
		woken := b.NewWatcher("w", "key", "NOTIFICATION")
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		b.AdvanceBy(time.Hour, time.Hour)
		if n := woken(); n != 1 || len(b.ListNotifications()) != 1 {
			t.Errorf("woken %d times by %d notifications", n, len(b.ListNotifications()))
		}
		if list := b.ListRuns("agent=" + a.ID); len(list) != 1 {
			t.Errorf("its own notification woke it: %+v", list)
		}
		b.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"notification": "never"})
		b.AdvanceBy(time.Hour, time.Hour)
		if n := woken(); n != 0 || len(b.ListRuns("agent="+a.ID)) != 2 {
			t.Errorf("woken %d times by a run that tells nobody", n)
		}
	})
}
