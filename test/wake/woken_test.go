package wake_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/model"
	"reeve/reevetest"
	"reeve/test/kit"
	tools "reeve/toolbox/journal"
)

// newGym creates a category and a task in it.
func newGym(h *reevetest.Host) (gym reeve.Category, task reeve.Task) {
	h.T.Helper()
	h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
	h.Want(201, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID, "title": "Squat"})
	return gym, task
}

// A run that a subscription woke acts for the user of the subscription. Wakes for several users are separate runs.
func TestL28_SubscriptionRunsActForTheirUsers(t *testing.T) {
	t.Parallel()
	kit.RunOnBothDatabases(t, "- {text: ok}\n", nil, func(t *testing.T, h *reevetest.Host, _ *kit.RecordingModel) {
		h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{
			Capabilities: tools.Capabilities()})
		gym, task := newGym(h)
		a := h.Agent("coach", "start_task_timer", "schedule_create", "users_send", "memory_save", "agent_sleep")
		kit.UpdateAgent(h, a, kit.Object{"categories": []string{gym.ID}})
		kit.SetRehearsal(h, a.ID, "done",
			kit.Object{"tool": "start_task_timer", "args": kit.Object{"task_id": task.ID}, "must": true},
			kit.Object{"tool": "users_send", "must": true, "args": kit.Object{"title": "Squat", "text": "It is deeper"}},
			kit.Object{"tool": "memory_save", "must": true, "args": kit.Object{"content": "I squat deeply"}},
			kit.Object{"tool": "agent_sleep", "must": true, "args": kit.Object{
				"next_wake_at": time.Now().Add(time.Hour).Format(time.RFC3339)}},
			kit.Object{"tool": "schedule_create", "must": true, "args": kit.Object{"goal": "stretch",
				"cadence_type": "cron", "cadence_value": "0 7 * * *"}})
		for _, user := range []string{"mia", "ned"} {
			h.Want(201, nil, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "id", "name": task.ID},
				kit.NewTokenFor(h, user, "member")...)
		}
		h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"title": "Deep squat"})
		var runs []reeve.Run
		kit.Eventually(t, "two runs to end", func() bool {
			runs = kit.ListRuns(h, "agent=coach&state=completed")
			return len(runs) == 2
		})
		users := map[string]bool{}
		for _, r := range runs {
			users[r.UserID] = true
		}
		if !users["mia"] || !users["ned"] {
			t.Errorf("runs %+v", runs)
		}
		owners := map[string]bool{}
		for _, s := range kit.ListSchedules(h) {
			owners[s.UserID] = true
		}
		if len(owners) != 2 || !owners["mia"] || !owners["ned"] {
			t.Errorf("schedules of %v", owners)
		}
		for _, user := range []string{"mia", "ned"} {
			token := kit.NewTokenFor(h, user, "member")
			var told api.NotificationList
			h.Want(200, &told, "GET", "/api/notifications", nil, token...)
			if len(told.Notifications) != 1 || told.Notifications[0].Body != "It is deeper" {
				t.Errorf("%s was told %+v", user, told.Notifications)
			}
			if notes := kit.ListNotes(h, "", token...); len(notes) != 1 || !strings.Contains(notes[0], "I squat deeply") {
				t.Errorf("%s has the notes %v", user, notes)
			}
		}
	})
}

// heldModel is a model whose first answer waits.
type heldModel struct {
	model.Model
	release <-chan struct{}
}

func (m *heldModel) Answer(ctx context.Context, r model.Request, watch func(model.Delta)) (model.Answer, error) {
	select {
	case <-m.release:
	case <-ctx.Done():
	}
	return m.Model.Answer(ctx, r, watch)
}

// The model is told what changed, merged and bounded. Secrets stay redacted, and each change can be looked up.
func TestL29_TheModelIsToldWhatChanged(t *testing.T) {
	t.Parallel()
	kit.RunOnBothDatabases(t, "- {text: ok}\n", nil, func(t *testing.T, h *reevetest.Host, heard *kit.RecordingModel) {
		h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{Capabilities: tools.Capabilities()})
		h.Want(204, nil, "PUT", "/api/secrets/LOCKER", kit.Object{"value": "hunter2-of-the-locker"})
		gym, task := newGym(h)
		var bot reeve.Agent
		h.Want(200, &bot, "GET", "/api/agents/bot", nil)
		kit.UpdateAgent(h, bot, kit.Object{"categories": []string{gym.ID}})
		release := make(chan struct{}) // wakes are merged while a run is open
		heard.Model = &heldModel{heard.Model, release}
		kit.Subscribe(h, bot.ID, "key", "TASK", "")
		edit := func(q kit.Object) { h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, q) }
		edit(kit.Object{"priority": "high"})
		kit.Eventually(t, "the first run", func() bool { return heard.LastPrompt("") != "" })
		if got := heard.LastPrompt(""); !strings.Contains(got, `priority: "medium" → "high"`) ||
			!strings.Contains(got, `task "Squat" (`+task.ID+`) changed by "owner"`) {
			t.Errorf("the model read %s", got)
		}
		for i := range 50 {
			edit(kit.Object{"title": fmt.Sprint("Squat ", i)})
		}
		clerk := h.Agent("clerk", "update_task_priority")
		kit.UpdateAgent(h, clerk, kit.Object{"categories": []string{gym.ID}})
		byClerk, problem, _ := kit.TryCall(h, "clerk", kit.Call{"tool": "update_task_priority", "reason": `the "plan" says so`,
			"args": kit.Object{"task_id": task.ID, "priority": "low"}}, kit.NewTokenFor(h, "ned", "member")...)
		if byClerk.IsError || problem.Code != "" {
			t.Fatalf("%+v %+v", byClerk, problem)
		}
		edit(kit.Object{"title": "Deep \"squat\"", "description": "the code is hunter2-of-the-locker"})
		for i := range 25 {
			h.Want(201, nil, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID,
				"title": fmt.Sprint(i, strings.Repeat(" long", 30)), "description": strings.Repeat("word ", 300)})
		}
		close(release)
		kit.Eventually(t, "the second run", func() bool {
			return len(kit.ListRuns(h, "agent=bot&state=completed")) == 2
		})
		got := heard.LastPrompt("")
		_, got, _ = strings.Cut(got, "Something that you watch has changed")
		if i := strings.LastIndex(got, "Something that you watch has changed"); i > 0 {
			got = got[i:]
		}
		for _, want := range []string{`title: "Squat" → "Deep \"squat\""`, "in 52 edits", "more\n", "change: chg_",
			`by "owner", agent clerk for "ned"`, `reason: "the \"plan\" says so"`, byClerk.OperationID} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %s", want, got)
			}
		}
		if strings.Contains(got, "hunter2") || len(got) > 6500 {
			t.Errorf("%d bytes: %s", len(got), got)
		}
		wakes := kit.ListWakes(h, "bot")
		var change reeve.ChangeRecord
		h.Want(200, &change, "GET", "/api/changes/"+wakes[0].OperationID, nil)
		if len(change.Entities) != 1 || change.UserID != "owner" || change.Entities[0].Action != reeve.EntityCreated {
			t.Errorf("%+v", change)
		}
		var list api.ChangeList
		h.Want(200, &list, "GET", "/api/changes?limit=3&entity="+task.ID, nil)
		if len(list.Changes) != 3 || list.Next == "" ||
			list.Changes[0].Entities[0].Fields["title"][0] != "Squat 49" {
			t.Errorf("%+v", list)
		}
		list.Changes = nil
		h.Want(200, &list, "GET", "/api/changes?limit=100&entity="+task.ID+"&cursor="+list.Next, nil)
		if len(list.Changes) != 51 { // 50 earlier edits, both priorities and the creation, without the first page
			t.Errorf("%d more changes", len(list.Changes))
		}
		h.Want(404, nil, "GET", "/api/changes/op_none", nil)
	})
}

// change_get reads a change with its reason and author, within the categories and the user of the caller.
func TestL16_ChangesAreReadWithinScope(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{Capabilities: tools.Capabilities()})
	gym, task := newGym(h)
	var home reeve.Category
	h.Want(201, &home, "POST", "/api/journal/categories", kit.Object{"name": "Home"})
	inside, outside := h.Agent("inside", "change_get", "update_task_priority"), h.Agent("outside", "change_get")
	kit.UpdateAgent(h, inside, kit.Object{"categories": []string{gym.ID}})
	kit.UpdateAgent(h, outside, kit.Object{"categories": []string{home.ID}})
	done := h.Call(inside.ID, "update_task_priority", kit.Object{"task_id": task.ID, "priority": "low"})
	if done.IsError {
		t.Fatalf("%+v", done)
	}
	args := kit.Object{"change_id": done.OperationID}
	if res := h.Call(inside.ID, "change_get", args); res.IsError || !strings.Contains(res.Content, `"low"`) ||
		!strings.Contains(res.Content, `"tool":"update_task_priority"`) || !strings.Contains(res.Content, inside.ID) {
		t.Errorf("inside: %+v", res)
	}
	if res := h.Call(outside.ID, "change_get", args); !res.IsError || res.Code != reeve.NotFound {
		t.Errorf("outside: %+v", res)
	}
	// Private entries belong to their user.
	mia, ned := kit.NewTokenFor(h, "mia", "member"), kit.NewTokenFor(h, "ned", "member")
	h.Want(201, nil, "POST", "/api/journal/time-entries", kit.Object{"task_id": task.ID,
		"started_at": "2026-03-02T08:00:00Z", "ended_at": "2026-03-02T09:00:00Z", "description": "private"}, mia...)
	var list api.ChangeList
	h.Want(200, &list, "GET", "/api/changes", nil, mia...)
	if len(list.Changes) == 0 || list.Changes[0].Entities[0].Kind != "time_entry" {
		t.Fatalf("%+v", list)
	}
	id := list.Changes[0].ID
	h.Want(404, nil, "GET", "/api/changes/"+id, nil, ned...)
	h.Want(404, nil, "GET", "/api/changes/"+id, nil)
	if res := h.Call(inside.ID, "change_get", kit.Object{"change_id": id}); !res.IsError {
		t.Errorf("another's time entry: %+v", res)
	}
	// Changes of agents and schedules have fields too.
	kit.UpdateAgent(h, outside, kit.Object{"mode": "autonomous", "config": kit.Object{"model": "small"}})
	list = api.ChangeList{}
	h.Want(200, &list, "GET", "/api/changes?entity="+outside.ID, nil)
	if f := list.Changes[0].Entities[0].Fields; f["mode"] != [2]string{"hybrid", "autonomous"} ||
		f["config.model"][1] != "small" {
		t.Errorf("%+v", list.Changes[0])
	}
	var s api.Schedule
	h.Want(201, &s, "POST", "/api/schedules", kit.Object{"agent": "inside", "cadence_type": "cron",
		"cadence_value": "0 7 * * *"})
	h.Want(200, nil, "PATCH", "/api/schedules/"+s.ID, kit.Object{"name": "morning"})
	list = api.ChangeList{}
	h.Want(200, &list, "GET", "/api/changes?entity="+s.ID, nil)
	if f := list.Changes[0].Entities[0].Fields; len(f) != 1 || f["name"][1] != "morning" {
		t.Errorf("%+v", list.Changes[0])
	}
}

// Agents can watch agents, their answers, and the firings of schedules.
func TestL03_AgentsAndFiringsCanBeWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		a := b.NewAgent("aide", nil)
		s := b.NewSchedule("aide", kit.Object{"cadence_type": "interval", "cadence_value": "1h"})
		watch := map[string]func() int{}
		for i, w := range [][2]string{{"key", "AGENT"}, {"subtype", "agent.changed"}, {"key", "AGENT_MESSAGE"},
			{"subtype", "agent_message.timer"}, {"key", "SCHEDULE_FIRED"}, {"key", "SCHEDULE_ENDED"},
			{"subtype", "schedule_ended.completed"}, {"id", s.ID}} {
			watch[w[1]] = b.NewWatcher(fmt.Sprint("w", i), w[0], w[1])
		}
		count := func() string {
			b.AdvanceBy(2*time.Second, 200*time.Millisecond)
			text := ""
			for _, name := range []string{"AGENT", "agent.changed", "AGENT_MESSAGE", "agent_message.timer",
				"SCHEDULE_FIRED", "SCHEDULE_ENDED", "schedule_ended.completed", s.ID} {
				text += fmt.Sprint(min(watch[name](), 1), " ")
			}
			return text
		}
		count()
		b.Want(200, nil, "PATCH", "/api/agents/aide", kit.Object{"throttle_ms": 1})
		if got := count(); got != "1 1 1 0 0 0 0 0 " { // the watchers answer
			t.Errorf("changed: %s", got)
		}
		b.Want(200, nil, "PATCH", "/api/agents/aide", kit.Object{"throttle_ms": 1})
		if got := count(); got != "0 0 0 0 0 0 0 0 " {
			t.Errorf("changed nothing: %s", got)
		}
		b.AdvanceBy(time.Hour, 10*time.Minute)
		if got := count(); got != "0 0 1 1 1 1 1 1 " {
			t.Errorf("fired: %s", got)
		}
		if n := len(b.ListRuns("agent=" + a.ID)); n != 1 {
			t.Errorf("aide ran %d times", n)
		}
	})
}

// Agents that watch each other settle, after a number of runs that does not grow with delays.
func TestL05_MutualWatchersSettleWithDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, delay := range []time.Duration{0, time.Second, time.Minute} {
			b := kit.NewBubbleHost(t, host.Config{}, newEmitter())
			for i, name := range []string{"ann", "bob"} {
				b.NewAgent(name, kit.Object{"throttle_ms": delay.Milliseconds() * int64(i+1),
					"config": kit.RehearsalConfig("done", kit.Object{"tool": "emit",
						"args": kit.Object{"class": "key", "name": "TASK"}})})
				b.AttachTools(name, "emit")
				for _, key := range []string{"TASK", "AGENT_MESSAGE"} {
					b.Want(201, nil, "POST", "/api/agents/"+name+"/subscriptions", kit.Object{"class": "key",
						"name": key})
				}
			}
			b.Want(201, nil, "POST", "/api/agents/ann/wake", kit.Object{})
			b.AdvanceBy(time.Second, 100*time.Millisecond)
			b.AdvanceBy(10*time.Minute, 5*time.Second)
			ann, bob := len(b.ListRuns("agent=ann")), len(b.ListRuns("agent=bob"))
			if ann != 1 || bob < 1 || bob > 2 { // bob's throttle may keep the edit and the answer together
				t.Errorf("with a delay of %v: ann ran %d times, bob %d times", delay, ann, bob)
			}
			b.Stop()
		}
	})
}

// What can never fire is refused. What cannot fire any more is shown.
func TestL32_WhatCanNeverFireIsRefusedOrShown(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	subscribe := func(status int, agent, class, name, when string) {
		t.Helper()
		if r := h.Do("POST", "/api/agents/"+agent+"/subscriptions", kit.Object{"class": class, "name": name,
			"predicate": when}); r.Status != status {
			t.Errorf("%s %s:%s %q: %d %s", agent, class, name, when, r.Status, r.Body)
		}
	}
	schedule := func(status int, agent, cron string) {
		t.Helper()
		if r := h.Do("POST", "/api/schedules", kit.Object{"agent": agent, "cadence_type": "cron",
			"cadence_value": cron}); r.Status != status {
			t.Errorf("%s %s: %d %s", agent, cron, r.Status, r.Body)
		}
	}
	for name, q := range map[string]kit.Object{"talker": {"mode": "interactive"}, "sleeper": {"lifecycle": "dormant"},
		"gone": {"lifecycle": "destroyed"}} {
		kit.UpdateAgent(h, h.Agent(name), q)
		subscribe(409, name, "key", "TASK", "")
		schedule(409, name, "0 7 * * *")
	}
	h.Agent("clerk")
	subscribe(400, "clerk", "key", "TASKS", "")
	subscribe(400, "clerk", "subtype", "task.finished", "")
	subscribe(400, "clerk", "id", "task_none", "")
	subscribe(400, "clerk", "key", "FILE", "entity.size > 1")
	subscribe(201, "clerk", "key", "TASK", `entity.status == "done"`)
	subscribe(201, "clerk", "subtype", "agent_message.subscription", "")
	schedule(400, "clerk", "0 0 30 2 *")
	schedule(201, "clerk", "0 7 * * *")
	canFire := func() (list []string) {
		var subs api.SubscriptionList
		h.Want(200, &subs, "GET", "/api/agents/clerk/subscriptions", nil)
		for _, s := range subs.Subscriptions {
			list = append(list, fmt.Sprint(s.CanFire, s.WhyNot))
		}
		var schedules api.ScheduleList
		h.Want(200, &schedules, "GET", "/api/schedules", nil)
		for _, s := range schedules.Schedules {
			list = append(list, fmt.Sprint(s.CanFire, s.WhyNot))
		}
		return list
	}
	doctor := func() (ok bool) {
		var report api.DoctorReport
		h.Want(200, &report, "GET", "/api/doctor", nil)
		for _, c := range report.Checks {
			if c.Name == "wakes" {
				return c.OK
			}
		}
		t.Error("the doctor does not check wakes")
		return false
	}
	// A predicate sees the entities of the agent's categories, and clerk has none.
	if got := strings.Join(canFire(), ", "); got != "falseits predicate never holds, because the agent has no "+
		"categories, so it can see no entity, true, true" || doctor() {
		t.Errorf("without categories: %s, and the doctor: %v", got, doctor())
	}
	gym, made := newGym(h)
	task := made.ID
	h.Want(200, nil, "PATCH", "/api/agents/clerk", kit.Object{"categories": []string{gym.ID}})
	if got := strings.Join(canFire(), ", "); got != "true, true, true" || !doctor() {
		t.Errorf("%s, and the doctor: %v", got, doctor())
	}
	subscribe(201, "clerk", "id", task, "")
	subscribe(201, "clerk", "id", task, "true")
	h.Want(200, nil, "PATCH", "/api/agents/clerk", kit.Object{"categories": []string{}})
	if got := canFire(); got[2] != "true" || !strings.HasSuffix(got[3], "the agent's categories do not include "+task) {
		t.Errorf("out of scope: %s", got)
	}
	h.Want(204, nil, "DELETE", "/api/journal/tasks/"+task, nil)
	if got := canFire(); got[2] != "false"+task+" does not exist any more" || got[3] != got[2] || doctor() {
		t.Errorf("after the task was deleted: %s, and the doctor: %v", got, doctor())
	}
	h.Want(200, nil, "PATCH", "/api/agents/clerk", kit.Object{"mode": "interactive"})
	for _, s := range canFire() {
		if !strings.HasPrefix(s, "falsethe agent is interactive") {
			t.Errorf("after the change of mode: %s", s)
		}
	}
	if doctor() {
		t.Error("the doctor finds nothing")
	}
}
