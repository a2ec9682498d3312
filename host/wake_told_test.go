package host_test

import (
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/host"
)

// watcher makes an agent that watches something, and gives how often that has woken it since it was last asked.
func (b *bubble) watcher(name, class, what string) (woken func() int) {
	b.t.Helper()
	a := b.agent(name, nil)
	b.want(201, nil, "POST", "/api/agents/"+name+"/subscriptions", object{"class": class, "name": what})
	before := 0
	return func() int {
		b.t.Helper()
		b.pass(time.Second, 200*time.Millisecond)
		now := len(b.runs("agent=" + a.ID))
		defer func() { before = now }()
		return now - before
	}
}

// Every change of a schedule is told, by whomever it is made, and what changes nothing is not.
func TestL03_ChangesOfSchedulesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{DisableAfter: 2})
		a := b.agent("aide", nil)
		b.attach("aide", scheduleTools...)
		woken := b.watcher("w", "key", "SCHEDULE")
		s := b.schedule("aide", object{"cadence_type": "interval", "cadence_value": "30d"})
		if n := woken(); n != 1 {
			t.Errorf("created: woken %d times", n)
		}
		one := b.watcher("one", "id", s.ID)
		patch := func(q object) func() { return func() { b.want(200, nil, "PATCH", "/api/schedules/"+s.ID, q) } }
		edit := func(q object) func() {
			return func() {
				q["schedule_id"] = s.ID
				if res := b.call(s.UserID, a.ID, "schedule_edit", q); res.IsError {
					t.Errorf("%v: %+v", q, res)
				}
			}
		}
		b.agent("other", nil)
		for _, k := range []struct {
			what string
			do   func()
			want int
		}{
			{"renamed", patch(object{"name": "new"}), 1},
			{"renamed to the same", patch(object{"name": "new"}), 0},
			{"nothing said", patch(object{}), 0},
			{"paused", patch(object{"status": "paused"}), 1},
			{"paused twice", patch(object{"status": "paused"}), 0},
			{"resumed", patch(object{"status": "active"}), 1},
			{"resumed twice", patch(object{"status": "active"}), 0},
			{"given another time", patch(object{"cadence_type": "cron", "cadence_value": "0 7 1 1 *"}), 1},
			{"given the same time", patch(object{"cadence_type": "cron", "cadence_value": "0 7 1 1 *"}), 0},
			{"given the same time in other words",
				patch(object{"cadence_type": "cron", "cadence_value": "00  7 1 JAN *", "timezone": "UTC"}), 0},
			{"given the same time in other words by a tool",
				edit(object{"cadence_type": "cron", "cadence_value": "0 7 1 1 ?"}), 0},
			{"given to another agent", patch(object{"agent": "other"}), 1},
			{"given to the same agent", patch(object{"agent": "other"}), 0},
			{"renamed by a tool", edit(object{"name": "newer"}), 1},
			{"renamed to the same by a tool", edit(object{"name": "newer"}), 0},
			{"nothing said by a tool", edit(object{}), 0},
			{"paused by a tool", edit(object{"status": "paused"}), 1},
			{"paused twice by a tool", edit(object{"status": "paused"}), 0},
			{"its agent destroyed", func() {
				b.want(200, nil, "PATCH", "/api/agents/other",
					object{"lifecycle": "destroyed"})
			}, 1},
			{"deleted", func() { b.want(204, nil, "DELETE", "/api/schedules/"+s.ID, nil) }, 1},
		} {
			k.do()
			if n, m := woken(), one(); n != k.want || m != k.want {
				t.Errorf("%s: woken %d times, and %d by its id, want %d", k.what, n, m, k.want)
			}
		}
		b.agent("gone", nil)
		b.schedule("gone", object{"cadence_type": "interval", "cadence_value": "30d"})
		woken()
		b.want(204, nil, "DELETE", "/api/agents/gone", nil)
		if n := woken(); n != 1 {
			t.Errorf("removed with its agent: woken %d times", n)
		}
		// One that is disabled because it fails is told of; that it fires is no change.
		b.agent("clumsy", object{"config": object{"rehearsal": object{"steps": []object{{"tool": "no_such_tool",
			"must": true, "args": object{}}}}}})
		f := b.schedule("clumsy", object{"cadence_type": "interval", "cadence_value": "1h", "notification": "never"})
		woken()
		b.pass(time.Hour, time.Hour)
		if n := woken(); n != 0 || b.getSchedule(f.ID).Failures != 1 {
			t.Errorf("fired: woken %d times: %+v", n, b.getSchedule(f.ID).Timer)
		}
		b.pass(time.Hour, time.Hour)
		if n := woken(); n != 1 || b.getSchedule(f.ID).State != reeve.TimerDisabled {
			t.Errorf("disabled: woken %d times: %+v", n, b.getSchedule(f.ID).Timer)
		}
	})
}

// Every notification is told to who watches them, but to nobody whose own run wrote it.
func TestL03_NotificationsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inBubble(t, host.Config{})
		a := b.agent("aide", nil)
		b.want(201, nil, "POST", "/api/agents/aide/subscriptions", object{"class": "key", "name": "NOTIFICATION"})
		woken := b.watcher("w", "key", "NOTIFICATION")
		s := b.schedule("aide", object{"cadence_type": "interval", "cadence_value": "1h"})
		b.pass(time.Hour, time.Hour)
		if n := woken(); n != 1 || len(b.notifications()) != 1 {
			t.Errorf("woken %d times by %d notifications", n, len(b.notifications()))
		}
		if list := b.runs("agent=" + a.ID); len(list) != 1 {
			t.Errorf("its own notification woke it: %+v", list)
		}
		b.want(200, nil, "PATCH", "/api/schedules/"+s.ID, object{"notification": "never"})
		b.pass(time.Hour, time.Hour)
		if n := woken(); n != 0 || len(b.runs("agent="+a.ID)) != 2 {
			t.Errorf("woken %d times by a run that tells nobody", n)
		}
	})
}
