package httpapi_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// A category is given by id or name and stored by id. An unknown category is refused, with a list of the known ones.
func TestNames_AgentCategoriesMustExist(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		h := env.start(t)
		p := wantProblem(t, h.Do("POST", "/api/agents", object{"name": "coach", "categories": []string{"gym"}}), 400,
			reeve.Validation)
		if len(p.Errors) != 1 || p.Errors[0].Path != "/categories/0" || !strings.Contains(p.Hint, "no categories yet") {
			t.Errorf("%+v", p)
		}
		createCategory := func(name string) string {
			return decode[reeve.Category](t,
				h.Want(201, nil, "POST", "/api/journal/categories", object{"name": name})).ID
		}
		gym, home := createCategory("Gym"), createCategory("Home and garden")
		for _, names := range [][]string{{"gym"}, {"GYM"}, {" Gym "}, {gym}, {"gym", gym, "Gym"}} {
			a := decode[reeve.Agent](t, h.Want(201, nil, "POST", "/api/agents",
				object{"name": "coach", "categories": names}))
			if !slices.Equal(a.Categories, []string{gym}) {
				t.Errorf("%v are %v", names, a.Categories)
			}
			h.Want(204, nil, "DELETE", "/api/agents/coach", nil)
		}
		h.Want(201, nil, "POST", "/api/agents",
			object{"name": "coach", "categories": []string{"home and garden", "gym"}})
		for _, bad := range []string{"", "gyms", "cat_nothing", "Home", gym + "x"} {
			p := wantProblem(t, h.Do("PATCH", "/api/agents/coach", object{"categories": []string{"gym", bad}}), 400,
				reeve.Validation)
			if len(p.Errors) != 1 || p.Errors[0].Path != "/categories/1" ||
				!strings.Contains(p.Hint, "Gym, Home and garden") {
				t.Errorf("%q: %+v", bad, p)
			}
		}
		h.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		wantProblem(t, h.Do("POST", "/api/agents", object{"name": "x", "categories": []string{gym}}, "X-Workspace-Id",
			"beta"), 400, reeve.Validation)

		// An agent may keep a category that was deleted later. The category cannot be assigned again.
		h.Want(204, nil, "DELETE", "/api/journal/categories/"+home, nil)
		a := decode[reeve.Agent](t, h.Want(200, nil, "PATCH", "/api/agents/coach",
			object{"categories": []string{home, "gym"}}))
		if !slices.Equal(a.Categories, []string{home, gym}) {
			t.Errorf("categories %v", a.Categories)
		}
		wantProblem(t, h.Do("POST", "/api/agents", object{"name": "late", "categories": []string{home}}), 400,
			reeve.Validation)
	})
}

// A list filtered by an unknown name fails instead of being empty.
func TestNames_FiltersMustNameExistingEntries(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	h.Want(201, nil, "POST", "/api/agents", object{"name": "coach"})
	for _, path := range []string{"/api/journal/tasks?category=gym", "/api/journal/tasks?label=legs",
		"/api/journal/time-entries?task=task_none", "/api/journal/ratings?category=gym",
		"/api/proposals?set=cs_none", "/api/proposals?agent=nobody", "/api/change-sets?agent=nobody",
		"/api/operations?agent=nobody", "/api/runs?agent=nobody",
		"/api/schedules?agent=nobody", "/api/notes?agent=nobody", "/api/conversations?agent=nobody",
		"/api/conversations?user=nobody", "/api/branches?project=nothing"} {
		wantProblem(t, h.Do("GET", path, nil), 404, reeve.NotFound)
	}
	h.Want(200, nil, "GET", "/api/conversations?user=owner", nil)
	schedule := object{"agent": "coach", "name": "x", "goal": "g", "cron": "0 7 * * *", "zone": "Europe/Nowhere"}
	if r := h.Do("POST", "/api/schedules", schedule); r.Status != 400 {
		t.Errorf("an unknown zone: %d %s", r.Status, r.Body)
	}
}

// A subscription must name something that can change.
func TestNames_SubscriptionTargetsMustExist(t *testing.T) {
	t.Parallel()
	h := startServer(t)
	coach := decode[reeve.Agent](t, h.Want(201, nil, "POST", "/api/agents", object{"name": "coach"}))
	gym := decode[reeve.Category](t, h.Want(201, nil, "POST", "/api/journal/categories", object{"name": "Gym"}))
	const at = "/api/agents/coach/subscriptions"
	for _, v := range [][2]string{{"key", "TASKS"}, {"key", "task"}, {"key", "X"}, {"subtype", "task.finished"},
		{"subtype", "Task.done"}, {"subtype", "TASK"},
		{"id", "gym"}, {"id", "coach"}, {"id", "task_none"}, {"id", gym.ID + "x"}} {
		wantFieldError(t, h.Do("POST", at, object{"class": v[0], "name": v[1]}), "/name")
	}
	for _, v := range [][2]string{{"key", "TASK"}, {"key", "AGENT_STATE"}, {"key", "SESSION_FILE"},
		{"subtype", "task.done"}, {"subtype", "rating.task"}, {"subtype", "time_entry.ended"},
		{"id", gym.ID}, {"id", coach.ID}, {"id", "/shared/plan.md"}} {
		h.Want(201, nil, "POST", at, object{"class": v[0], "name": v[1]})
	}
	own := startServer(t, testTools()...) // its tools may report changes of any key
	own.Want(201, nil, "POST", "/api/agents", object{"name": "coach"})
	own.Want(201, nil, "POST", at, object{"class": "key", "name": "LETTER"})
	wantFieldError(t, own.Do("POST", at, object{"class": "key", "name": "task"}), "/name")
}

// An inbox, agent or project in the settings of a tool must exist in the agent's workspace. Otherwise the tool is not
// attached.
func TestNames_ToolSettingsMustNameExistingEntries(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, env testEnv) {
		srv := newMailServer(t, env)
		srv.Want(201, nil, "POST", "/api/agents", object{"name": "aide"})
		helper := srv.Agent("helper")
		path := t.TempDir()
		for _, args := range [][]string{{"init", "-q", "-b", "main"},
			{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"}} {
			if out, err := exec.Command("git", append([]string{"-C", path}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		attach := func(tool string, config object, headers ...string) reevetest.Reply {
			return srv.Do("POST", "/api/agents/aide/tools", object{"tool_id": tool, "config": config}, headers...)
		}
		settings := []struct {
			tool, path string
			config     object
		}{
			{"email_search", "/config/default_inbox", object{"default_inbox": "jane-d"}},
			{"email_search", "/config/default_inbox", object{"default_inbox": "jane.d@x.example", "default_limit": 5}},
			{"delegate", "/config/agents/0", object{"agents": []string{"mate"}}},
			{"loop_in", "/config/agents/1", object{"agents": []string{helper.ID, "mate"}}},
			{"shell_exec", "/config/project", object{"project": "site"}},
			{"file_read", "/config/project", object{"project": "site"}},
			{"file_search", "/config/project", object{"project": "site", "default_limit": 5}},
		}
		for _, s := range settings {
			wantFieldError(t, attach(s.tool, s.config), s.path)
		}
		wantFieldError(t, attach("delegate", object{"agents": []string{""}}), "/config/agents/0")
		list := decode[api.ToolList](t, srv.Want(200, nil, "GET", "/api/agents/aide/tools", nil)).Tools
		if slices.ContainsFunc(list, func(v api.ToolView) bool {
			return v.ID == "delegate" || v.ID == "email_search" || v.ID == "shell_exec"
		}) {
			t.Errorf("a tool was attached whose settings were refused: %+v", list)
		}
		srv.Agent("mate")
		srv.Want(201, nil, "POST", "/api/projects", object{"name": "site", "path": path})
		srv.importMails("one", "", "1", object{"message_id": "a", "inbox": "jane-d", "sender": "s@x.example",
			"body": "hello"})
		srv.Want(201, nil, "POST", "/api/workspaces", object{"id": "beta"})
		srv.Want(201, nil, "POST", "/api/agents", object{"name": "aide"}, "X-Workspace-Id", "beta")
		for _, s := range settings {
			at := s.path
			if s.tool == "loop_in" {
				at = "/config/agents/0" // the agent helper does not exist in beta either
			}
			wantFieldError(t, attach(s.tool, s.config, "X-Workspace-Id", "beta"), at)
			if r := attach(s.tool, s.config); r.Status != 201 {
				t.Errorf("%s %v: %d %s", s.tool, s.config, r.Status, r.Body)
			}
			srv.Want(204, nil, "DELETE", "/api/agents/aide/tools/"+s.tool, nil)
		}
	})
}
