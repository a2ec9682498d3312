package wake_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
)

func TestL01_LifecycleTransitions(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	legal := map[string]string{"created": "active dormant destroyed", "active": "dormant destroyed",
		"dormant": "active destroyed", "destroyed": ""}
	i := 0
	for from, to := range legal {
		for next := range legal {
			var a reeve.Agent
			i++
			made := from
			if from == "destroyed" { // an agent cannot be created as destroyed
				h.Want(400, nil, "POST", "/api/agents", kit.Object{"name": "stillborn", "lifecycle": from})
				made = "active"
			}
			h.Want(201, &a, "POST", "/api/agents", kit.Object{"name": fmt.Sprint("a", i), "lifecycle": made})
			status := 409
			if from == next || strings.Contains(to, next) {
				status = 200
			}
			h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"lifecycle": from})
			h.Want(status, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"lifecycle": next})
		}
	}
}

// Destroying an agent ends its timers and subscriptions, skips queued wakes and ends its run. Later calls of the run
// are refused.
func TestL01_DestroyingEndsEverything(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), newEmitter())
	a := h.Agent("coach", "hold", "write_file", "emit")
	other := h.Agent("other", "emit")
	kit.SetRehearsal(h, a.ID, "done", kit.WriteFileStep("/before.txt", "1"), kit.Object{"tool": "hold"},
		kit.WriteFileStep("/after.txt", "2"),
		kit.Object{"tool": "emit", "args": kit.Object{"class": "key", "name": "X"}})
	kit.Subscribe(h, a.ID, "key", "TASK", "")
	kit.Subscribe(h, other.ID, "key", "X", "")
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{"input": "go"})
	<-g.Reached
	h.Call(other.ID, "emit", kit.Object{"class": "key", "name": "TASK"}) // waits behind the run
	h.Want(200, nil, "PATCH", "/api/agents/coach", kit.Object{"lifecycle": "destroyed"})
	close(g.Release)
	kit.WaitUntilIdle(h)
	run := kit.ListRuns(h, "")[0]
	if run.State != reeve.RunCancelled || run.FinishedAt == nil {
		t.Errorf("the run: %+v", run)
	}
	if n := countCommitted(h, "write_file"); n != 1 {
		t.Errorf("%d files were written, want the one before", n)
	}
	if n := countCommitted(h, "emit"); n != 1 {
		t.Errorf("%d tokens were told, want the other's", n)
	}
	states := map[reeve.WakeState]int{}
	for _, w := range kit.ListWakes(h, a.ID) {
		states[w.State]++
	}
	if states[reeve.WakeTaken] != 1 || states[reeve.WakeSkipped] != 1 {
		t.Errorf("wakes: %v", states)
	}
	var subs api.SubscriptionList
	if h.Want(200, &subs, "GET", "/api/agents/coach/subscriptions", nil); len(subs.Subscriptions) != 0 {
		t.Errorf("it still watches: %+v", subs)
	}
	id := s.ID
	s = api.Schedule{}
	if h.Want(200, &s, "GET", "/api/schedules/"+id, nil); s.State != reeve.TimerCompleted || s.NextAt != nil {
		t.Errorf("its schedule: %+v", s.Timer)
	}
	// A destroyed agent cannot be used again; every attempt is a conflict.
	h.Want(409, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	h.Want(409, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"status": "active"})
	h.Want(409, nil, "POST", "/api/schedules", kit.Object{"agent": a.ID, "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	h.Want(409, nil, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "X"})
	h.Want(404, nil, "POST", "/api/schedules", kit.Object{"agent": "nobody", "goal": "g", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
}

func TestL02_ModesSayWhoMayWake(t *testing.T) {
	t.Parallel()
	for mode, want := range map[reeve.Mode]map[reeve.Reason]bool{
		reeve.Autonomous: {reeve.ReasonSubscription: true, reeve.ReasonTimer: true, reeve.ReasonCatchup: true,
			reeve.ReasonManual: true, reeve.ReasonUser: false},
		reeve.Interactive: {reeve.ReasonSubscription: false, reeve.ReasonTimer: false, reeve.ReasonCatchup: false,
			reeve.ReasonManual: true, reeve.ReasonUser: true},
		reeve.Hybrid: {reeve.ReasonSubscription: true, reeve.ReasonTimer: true, reeve.ReasonCatchup: true,
			reeve.ReasonManual: true, reeve.ReasonUser: true},
		"unheard of": {reeve.ReasonManual: false},
	} {
		for reason, wakes := range want {
			if mode.Allows(reason) != wakes {
				t.Errorf("%s, %s: %v", mode, reason, !wakes)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{}, newEmitter())
		source := b.NewAgent("source", nil)
		b.AttachTools("source", "emit")
		modes := []string{"autonomous", "interactive", "hybrid"}
		for _, mode := range modes {
			b.NewAgent(mode, nil)
			b.Want(201, nil, "POST", "/api/agents/"+mode+"/subscriptions", kit.Object{"class": "key", "name": "TASK"})
			b.NewSchedule(mode, kit.Object{"cadence_type": "once",
				"cadence_value": time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)})
			// Afterwards, because an interactive agent cannot subscribe.
			b.Want(200, nil, "PATCH", "/api/agents/"+mode, kit.Object{"mode": mode})
		}
		b.CallAs("", source.ID, "emit", kit.Object{"class": "key", "name": "TASK"})
		for _, mode := range modes {
			b.Want(201, nil, "POST", "/api/agents/"+mode+"/wake", kit.Object{})
		}
		b.AdvanceBy(2*time.Second, 200*time.Millisecond)
		b.AdvanceBy(2*time.Hour, 10*time.Minute)
		for mode, want := range map[string]int{"autonomous": 1, "hybrid": 1, "interactive": 0} {
			n := map[reeve.Reason]int{}
			for _, r := range b.ListRuns("agent=" + mode) {
				n[r.Reason]++
			}
			if n[reeve.ReasonSubscription] != want || n[reeve.ReasonTimer] != want || n[reeve.ReasonManual] != 1 {
				t.Errorf("%s: %v", mode, n)
			}
		}
		var list api.WakeList
		b.Want(200, &list, "GET", "/api/agents/interactive/wakes", nil)
		if len(list.Wakes) != 3 {
			t.Errorf("%+v", list.Wakes)
		}
		for _, w := range list.Wakes {
			if w.Reason != reeve.ReasonManual && (w.State != reeve.WakeSkipped || w.Why != "the agent is interactive") {
				t.Errorf("%+v", w)
			}
		}
	})
}
