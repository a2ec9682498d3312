package wake_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/reevetest"
	"reeve/test/kit"
	tools "reeve/toolbox/journal"
)

// toolUser is an agent that uses one tool when a task of its own changes.
type toolUser struct {
	tool     string
	args     kit.Object
	agent    reeve.Agent
	trigger  string // the task
	userData bool   // set if the tool reads or changes data of its user
}

// newToolUsers creates an agent for each tool that works with the data of users, in an order in which all can succeed,
// and one whose tool does not.
func newToolUsers(h *reevetest.Host) []toolUser {
	h.T.Helper()
	h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{Capabilities: tools.Capabilities()})
	var home reeve.Category
	h.Want(201, &home, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Home"})
	newTask := func(title string) string {
		var task reeve.Task
		h.Want(201, &task, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: home.ID, Title: title})
		return task.ID
	}
	task := newTask("Paint")
	list := []toolUser{
		{tool: "start_task_timer", args: kit.Object{"task_id": task}},
		{tool: "stop_task_timer", args: kit.Object{}},
		{tool: "create_retrospective_time_entry", args: kit.Object{"task_id": task,
			"started_at": "2026-02-17T09:00:00Z", "ended_at": "2026-02-17T10:00:00Z"}},
		{tool: "list_time_entries", args: kit.Object{}},
		{tool: "get_or_create_day_plan", args: kit.Object{"plan_date": "2026-03-02"}},
		{tool: "pin_day_plan_tasks", args: kit.Object{"plan_date": "2026-03-02", "task_ids": []string{task}}},
		{tool: "create_or_update_rating", args: kit.Object{"target_kind": "task", "target_id": task,
			"scores": kit.Object{"focus": 3}}},
		{tool: "get_ratings_summary", args: kit.Object{}},
		{tool: "create_task", args: kit.Object{"category_id": home.ID, "title": "Clean the brushes"}},
	}
	for i := range list {
		u := &list[i]
		u.userData, u.trigger = u.tool != "create_task", newTask(u.tool)
		u.agent = h.Agent(strings.ReplaceAll(u.tool, "_", "-"), u.tool)
		kit.UpdateAgent(h, u.agent, kit.Object{"categories": []string{home.ID}})
		kit.SetRehearsal(h, u.agent.ID, "done", kit.Object{"tool": u.tool, "args": u.args, "must": true})
		kit.Subscribe(h, u.agent.ID, "id", u.trigger, "")
	}
	return list
}

// wakeToolUser changes the agent's task and returns the only run of the agent when it has ended.
func wakeToolUser(h *reevetest.Host, u toolUser) reeve.Run {
	h.T.Helper()
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+u.trigger, kit.Object{"title": "Go"})
	kit.WaitUntilIdle(h)
	runs := kit.ListRuns(h, "agent="+u.agent.ID)
	if len(runs) != 1 {
		h.T.Fatalf("%s: %+v", u.tool, runs)
	}
	return runs[0]
}

// An agent that a change woke acts for the user of the subscription, so it can change time entries, plans and ratings,
// which belong to users, and data of the workspace.
func TestL28_WokenRunsChangeUserData(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	for _, u := range newToolUsers(h) {
		if run := wakeToolUser(h, u); run.State != reeve.RunCompleted || run.UserID != "owner" {
			t.Errorf("%s for the owner: %+v", u.tool, run)
		}
	}
}

// A run that acts for no user, here because its subscription has none, cannot change time entries, plans and ratings.
// It can change data of the workspace. The same agents can do it for a person.
func TestL17_RunWithoutAUserCannotChangeUserData(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	users := newToolUsers(h)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.Dir(), "reeve.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(`UPDATE subscriptions SET user_id = ''`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		switch run := wakeToolUser(h, u); {
		case run.UserID != "":
			t.Errorf("%s acts for %q", u.tool, run.UserID)
		case !u.userData && run.State != reeve.RunCompleted:
			t.Errorf("%s is refused for no user: %s", u.tool, run.Message)
		case u.userData && (run.Code != reeve.Denied || !strings.Contains(run.Message, "acts for no user")):
			t.Errorf("%s for no user: %+v", u.tool, run)
		}
	}
	for _, u := range users {
		if res := h.Call(u.agent.ID, u.tool, u.args); res.IsError {
			t.Errorf("%s for a person: %s", u.tool, res.Message)
		}
	}
}

// To every tool, another user's schedule or run looks exactly like a missing one.
func TestO11_SchedulesOfOthersAreHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		a := b.NewAgent("aide", nil)
		b.AttachTools("aide", scheduleTools...)
		mine := kit.DecodeResult[api.Schedule](t, b.CallAs("ann", a.ID, "schedule_create",
			kit.Object{"goal": "g", "cadence_type": "interval", "cadence_value": "1h"}))
		b.AdvanceBy(90*time.Minute, 30*time.Minute)
		run := b.ListRuns("")[0]
		if run.UserID != "ann" || run.State != reeve.RunCompleted {
			t.Fatalf("%+v", run)
		}
		for tool, args := range map[string]func(id string) kit.Object{
			"schedule_edit":       func(id string) kit.Object { return kit.Object{"schedule_id": id, "name": "x"} },
			"schedule_delete":     func(id string) kit.Object { return kit.Object{"schedule_id": id} },
			"schedule_runs":       func(id string) kit.Object { return kit.Object{"schedule_id": id} },
			"schedule_run_output": func(id string) kit.Object { return kit.Object{"run_id": id} },
		} {
			real, none := mine.ID, "sch_none"
			if tool == "schedule_run_output" {
				real, none = run.ID, "run_none"
			}
			theirs, nobodys := b.CallAs("bob", a.ID, tool, args(real)), b.CallAs("bob", a.ID, tool, args(none))
			if !theirs.IsError || theirs.Code != nobodys.Code || strings.ReplaceAll(theirs.Message, real,
				none) != nobodys.Message || theirs.Hint != nobodys.Hint {
				t.Errorf("%s: %+v\nand of nobody's: %+v", tool, theirs, nobodys)
			}
			if res := b.CallAs("", a.ID, tool, args(real)); !res.IsError {
				t.Errorf("%s on nobody's behalf: %+v", tool, res)
			}
		}
		if got := kit.DecodeResult[kit.Object](t, b.CallAs("bob", a.ID, "schedule_search", kit.Object{})); got["total"] != 0.0 {
			t.Errorf("bob finds %v", got)
		}
		if got := b.GetSchedule(mine.ID); got.Name != mine.Name || got.State != reeve.TimerActive {
			t.Errorf("it was changed: %+v", got)
		}
	})
}
