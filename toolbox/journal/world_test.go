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

// world is a Reeve whose agents of kind assistant may do everything in the journal, and the categories home and gym.
type world struct {
	*reevetest.Host
	home, gym string
}

func start(t *testing.T, cfg host.Config) *world {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	w := &world{Host: reevetest.StartWith(t, cfg)}
	w.Want(http.StatusOK, nil, "PUT", "/api/profiles/assistant",
		api.ProfileRequest{Capabilities: journal.Capabilities()})
	w.home, w.gym = w.category("Home"), w.category("Gym")
	return w
}

// engines runs a test on SQLite and on PostgreSQL.
func engines(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, host.Config{}))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, start(t, host.Config{Database: storetest.PostgresURL(t)}))
	})
}

func (w *world) category(name string) string {
	w.T.Helper()
	var c reeve.Category
	w.Want(http.StatusCreated, &c, "POST", "/api/journal/categories", reeve.CategoryRequest{Name: name})
	return c.ID
}

// agent makes an agent with all tools of the journal and these categories.
func (w *world) agent(name string, categories ...string) string {
	w.T.Helper()
	var tools []string
	for _, t := range (&journal.Pack{}).Tools() {
		tools = append(tools, t.ID)
	}
	a := w.Agent(name, tools...)
	w.Want(http.StatusOK, nil, "PATCH", "/api/agents/"+a.ID,
		map[string]any{"categories": append([]string{}, categories...)})
	return a.ID
}

func (w *world) task(category, title string) reeve.Task {
	w.T.Helper()
	var t reeve.Task
	w.Want(http.StatusCreated, &t, "POST", "/api/journal/tasks", reeve.TaskDraft{CategoryID: category, Title: title})
	return t
}

func (w *world) view(task string) reeve.TaskView {
	w.T.Helper()
	var v reeve.TaskView
	w.Want(http.StatusOK, &v, "GET", "/api/journal/tasks/"+task, nil)
	return v
}

func (w *world) checklist(task, title string, items ...string) reeve.Checklist {
	w.T.Helper()
	var c reeve.Checklist
	w.Want(http.StatusCreated, &c, "POST", "/api/journal/checklists", reeve.ChecklistDraft{TaskID: task, Title: title,
		Items: items})
	return c
}

func (w *world) check(c reeve.Checklist, items ...int) {
	w.T.Helper()
	yes := true
	var in reeve.ChecklistItemsChange
	for _, i := range items {
		in.Items = append(in.Items, reeve.ChecklistItemChange{ID: c.Items[i].ID, Checked: &yes})
	}
	w.Want(http.StatusOK, nil, "PATCH", "/api/journal/checklists/"+c.ID+"/items", in)
}

// answer is what a tool of the pack says.
type answer struct {
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

// does makes a call that must succeed.
func (w *world) does(agent, tool string, args any, headers ...string) answer {
	w.T.Helper()
	res := w.Call(agent, tool, args, headers...)
	if res.IsError {
		w.T.Fatalf("%s: %s %s", tool, res.Code, res.Message)
	}
	var a answer
	if err := json.Unmarshal([]byte(res.Content), &a); err != nil {
		w.T.Fatalf("%s: %v in %s", tool, err, res.Content)
	}
	a.Result = res
	return a
}

// refusal is how a call was refused, by the gate or by the tool.
type refusal struct {
	Code    reeve.Code
	Message string
	Fields  []reeve.Field
	CallID  string
}

// refused makes a call that must be refused with a code.
func (w *world) refused(code reeve.Code, agent, tool string, args any, headers ...string) refusal {
	w.T.Helper()
	r := w.Do("POST", "/api/agents/"+agent+"/calls", map[string]any{"tool": tool, "args": args}, headers...)
	var out refusal
	if r.Status < 400 {
		var res reeve.Result
		r.Decode(w.T, &res)
		out = refusal{res.Code, res.Message, res.Fields, res.CallID}
	} else {
		var p api.Problem
		r.Decode(w.T, &p)
		out = refusal{p.Code, p.Detail, p.Errors, p.CallID}
	}
	if out.Code != code {
		w.T.Fatalf("%s: got %q, want %q: %s", tool, out.Code, code, r.Body)
	}
	return out
}

// wrong checks that a refusal names a field.
func (w *world) wrong(r refusal, path string) {
	w.T.Helper()
	for _, f := range r.Fields {
		if strings.HasPrefix(f.Path, path) && f.Message != "" {
			return
		}
	}
	w.T.Errorf("the refusal does not name %s: %+v", path, r)
}

func titles(items []reeve.ChecklistItem) string {
	var s []string
	for _, i := range items {
		s = append(s, i.Title)
	}
	return strings.Join(s, " ")
}
