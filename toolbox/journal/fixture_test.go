package journal_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"reeve"
	"reeve/api"
	"reeve/host"
	"reeve/internal/store/storetest"
	"reeve/reevetest"
	"reeve/toolbox/journal"
)

// fixture is a server whose agents of kind assistant have all journal capabilities, with the categories Home and Gym.
type fixture struct {
	*reevetest.Host
	home, gym string
}

func newFixture(t *testing.T, cfg host.Config) *fixture {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	fx := &fixture{Host: reevetest.StartWith(t, cfg)}
	fx.Want(http.StatusOK, nil, "PUT", "/api/profiles/assistant",
		api.ProfileRequest{Capabilities: journal.Capabilities()})
	fx.home, fx.gym = fx.createCategory("Home"), fx.createCategory("Gym")
	return fx
}

// forEachEngine runs a test on SQLite and on PostgreSQL.
func forEachEngine(t *testing.T, test func(t *testing.T, fx *fixture)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, host.Config{}))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, newFixture(t, host.Config{Database: storetest.PostgresURL(t)}))
	})
}

func (fx *fixture) createCategory(name string) string {
	fx.T.Helper()
	var c reeve.Category
	fx.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: name})
	return c.ID
}

// createAgent creates an agent with all journal tools and these categories.
func (fx *fixture) createAgent(name string, categories ...string) string {
	fx.T.Helper()
	var tools []string
	for _, t := range (&journal.Pack{}).Tools() {
		tools = append(tools, t.ID)
	}
	a := fx.Agent(name, tools...)
	fx.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		map[string]any{"categories": append([]string{}, categories...)})
	return a.ID
}

func (fx *fixture) createTask(category, title string) reeve.Task {
	fx.T.Helper()
	var t reeve.Task
	fx.Want(http.StatusCreated, &t, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: category, Title: title})
	return t
}

func (fx *fixture) getTask(task string) reeve.TaskView {
	fx.T.Helper()
	var v reeve.TaskView
	fx.Want(http.StatusOK, &v, "GET", "/api/journal/tasks/"+task, nil)
	return v
}

func (fx *fixture) createChecklist(task, title string, items ...string) reeve.Checklist {
	fx.T.Helper()
	var c reeve.Checklist
	fx.Want(http.StatusCreated, &c, "POST", "/api/journal/checklists", reeve.ChecklistDraft{TaskID: task, Title: title,
		Items: items})
	return c
}

func (fx *fixture) checkItems(c reeve.Checklist, items ...int) {
	fx.T.Helper()
	yes := true
	var in reeve.ChecklistItemsChange
	for _, i := range items {
		in.Items = append(in.Items, reeve.ChecklistItemChange{ID: c.Items[i].ID, Checked: &yes})
	}
	fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/checklists/"+c.ID+"/items", in)
}

// toolResult has the fields of the results of all journal tools.
type toolResult struct {
	Changed    []string             `json:"changed_ids"`
	Task       reeve.Task           `json:"task"`
	Other      *reeve.Task          `json:"other_task"`
	Moved      int                  `json:"moved_items"`
	Links      []reeve.Link         `json:"links"`
	Checklist  reeve.Checklist      `json:"checklist"`
	Checklists []reeve.Checklist    `json:"checklists"`
	TimeEntry  reeve.TimeEntry      `json:"time_entry"`
	Plan       reeve.DayPlan        `json:"day_plan"`
	Rating     *reeve.Rating        `json:"rating"`
	Times      []reeve.TimeEntry    `json:"time_entries"`
	Next       string               `json:"next_cursor"`
	Tasks      []reeve.TaskView     `json:"tasks"`
	Categories []reeve.Category     `json:"categories"`
	Summary    []reeve.ScoreSummary `json:"scores"`
	Count      int                  `json:"count"`

	Result reeve.Result `json:"-"`
}

// mustCall makes a call that must succeed.
func (fx *fixture) mustCall(agent, tool string, args any, headers ...string) toolResult {
	fx.T.Helper()
	res := fx.Call(agent, tool, args, headers...)
	if res.IsError {
		fx.T.Fatalf("%s: %s %s", tool, res.Code, res.Message)
	}
	var a toolResult
	if err := json.Unmarshal([]byte(res.Content), &a); err != nil {
		fx.T.Fatalf("%s: %v in %s", tool, err, res.Content)
	}
	a.Result = res
	return a
}

// refusal is the error of a call, from the gate or from the tool.
type refusal struct {
	Code    reeve.Code
	Message string
	Fields  []reeve.Field
	CallID  string
}

// wantError makes a call that must fail with a code.
func (fx *fixture) wantError(code reeve.Code, agent, tool string, args any, headers ...string) refusal {
	fx.T.Helper()
	r := fx.Do("POST", "/api/agents/"+agent+"/calls", map[string]any{"tool": tool, "args": args}, headers...)
	var out refusal
	if r.Status < 400 {
		var res reeve.Result
		r.Decode(fx.T, &res)
		out = refusal{res.Code, res.Message, res.Fields, res.CallID}
	} else {
		var p api.Problem
		r.Decode(fx.T, &p)
		out = refusal{p.Code, p.Detail, p.Errors, p.CallID}
	}
	if out.Code != code {
		fx.T.Fatalf("%s: got %q, want %q: %s", tool, out.Code, code, r.Body)
	}
	return out
}

// wantField checks that a refusal names a field.
func (fx *fixture) wantField(r refusal, path string) {
	fx.T.Helper()
	for _, f := range r.Fields {
		if strings.HasPrefix(f.Path, path) && f.Message != "" {
			return
		}
	}
	fx.T.Errorf("the refusal does not name %s: %+v", path, r)
}

func joinTitles(items []reeve.ChecklistItem) string {
	var s []string
	for _, i := range items {
		s = append(s, i.Title)
	}
	return strings.Join(s, " ")
}
