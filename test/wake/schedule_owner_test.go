package wake_test

import (
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

// An agent that a change woke acts for no user, so it cannot change time entries, plans and ratings, which belong to
// users. It can change data of the workspace, and for a user it can change everything.
func TestL17_RunWithoutAUserCannotChangeUserData(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	h.Want(200, nil, "PUT", "/api/profiles/assistant", api.ProfileRequest{Capabilities: tools.Capabilities()})
	var home reeve.Category
	h.Want(201, &home, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: "Home"})
	var task reeve.Task
	h.Want(201, &task, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: home.ID, Title: "Paint"})
	own := map[string]kit.Object{
		"start_task_timer": {"task_id": task.ID},
		"stop_task_timer":  {},
		"create_retrospective_time_entry": {"task_id": task.ID, "started_at": "2026-02-17T09:00:00Z",
			"ended_at": "2026-02-17T10:00:00Z"},
		"list_time_entries":       {},
		"get_or_create_day_plan":  {"plan_date": "2026-03-02"},
		"pin_day_plan_tasks":      {"plan_date": "2026-03-02", "task_ids": []string{task.ID}},
		"create_or_update_rating": {"target_kind": "task", "target_id": task.ID, "scores": kit.Object{"focus": 3}},
		"get_ratings_summary":     {},
	}
	agents := map[string]reeve.Agent{}
	wake := func(name, tool string, args kit.Object) {
		a := h.Agent(name, tool)
		h.Want(200, nil, "PATCH", "/api/agents/"+a.ID, kit.Object{"categories": []string{home.ID}})
		kit.SetRehearsal(h, a.ID, "done", kit.Object{"tool": tool, "args": args, "must": true})
		h.Want(201, nil, "POST", "/api/agents/"+a.ID+"/subscriptions", kit.Object{"class": "id", "name": task.ID})
		agents[tool] = a
	}
	for tool, args := range own {
		wake(strings.ReplaceAll(tool, "_", "-"), tool, args)
	}
	wake("clerk", "create_task", kit.Object{"category_id": home.ID, "title": "Clean the brushes"})
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"title": "Paint it"})
	kit.WaitUntilIdle(h)
	for tool, a := range agents {
		runs := kit.ListRuns(h, "agent="+a.ID)
		if len(runs) != 1 || runs[0].UserID != "" {
			t.Fatalf("%s: %+v", tool, runs)
		}
		switch run := runs[0]; {
		case own[tool] == nil && run.State != reeve.RunCompleted:
			t.Errorf("%s is refused on nobody's behalf: %s", tool, run.Message)
		case own[tool] != nil && (run.Code != reeve.Denied || !strings.Contains(run.Message, "acts for no user")):
			t.Errorf("%s on nobody's behalf: %+v", tool, run)
		}
	}
	for _, tool := range []string{"start_task_timer", "stop_task_timer", "create_retrospective_time_entry",
		"list_time_entries", "get_or_create_day_plan", "pin_day_plan_tasks", "create_or_update_rating",
		"get_ratings_summary"} {
		if res := h.Call(agents[tool].ID, tool, own[tool]); res.IsError {
			t.Errorf("%s for a person: %s", tool, res.Message)
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
