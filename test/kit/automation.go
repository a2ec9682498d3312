package kit

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"reeve"
	"reeve/api"
	"reeve/reevetest"
)

// WaitForAutomationRun waits until the last run of an automation has ended, and returns it.
func WaitForAutomationRun(h *reevetest.Host, name string) (last reeve.AutomationRun) {
	h.T.Helper()
	for deadline := time.Now().Add(reevetest.Timeout); ; time.Sleep(10 * time.Millisecond) {
		var list api.AutomationRunList
		h.Want(http.StatusOK, &list, "GET", "/api/automations/"+name+"/runs?limit=1", nil)
		if len(list.Runs) == 1 {
			if last = list.Runs[0]; last.Run.ID != "" && last.Run.State.IsFinal() {
				return last
			}
		}
		if time.Now().After(deadline) {
			h.T.Fatalf("the run is %+v", last)
		}
	}
}

// Automation is an automation under test and the host that it runs on.
type Automation struct {
	*reevetest.Host
	T    *testing.T
	Name string
}

// WaitForRun steps the host until the latest run of the automation is in a state.
func (a *Automation) WaitForRun(want reeve.RunState) {
	a.T.Helper()
	Eventually(a.T, "the run to be "+string(want), func() bool {
		if _, err := a.Step(a.T.Context()); err != nil {
			a.T.Fatal(err)
		}
		runs := ListAutomationRuns(a)
		return len(runs) > 0 && runs[0].Run.State == want
	})
}

// Path returns the API path of the automation, followed by rest.
func (a *Automation) Path(rest string) string { return "/api/automations/" + a.Name + rest }

// SaveVersion saves a version of the script and returns its number. fix marks it as a repair.
func (a *Automation) SaveVersion(source string, fix bool) string {
	a.T.Helper()
	var v reeve.ScriptVersion
	a.Want(201, &v, "POST", a.Path("/versions"), Call{"source": source, "fix": fix})
	return v.Version()
}

// StartRun requests a run, serves it and returns it when it has stopped running.
func (a *Automation) StartRun(body Call) reeve.AutomationRun {
	a.T.Helper()
	var asked reeve.AutomationRun
	a.Want(201, &asked, "POST", a.Path("/runs"), body)
	return a.ServeRun(asked)
}

// ServeRun steps the host until a requested run has stopped running, and returns it.
func (a *Automation) ServeRun(asked reeve.AutomationRun) (out reeve.AutomationRun) {
	a.T.Helper()
	var w reeve.Wake
	for range 50 {
		if _, err := a.Step(a.T.Context()); err != nil {
			a.T.Fatal(err)
		}
		a.Want(200, &w, "GET", "/api/wakes/"+url.PathEscape(asked.Wake.RunKey), nil)
		if w.RunID == "" {
			continue
		}
		a.Want(200, &out, "GET", a.Path("/runs/"+w.RunID), nil)
		if out.Run.State != reeve.RunRunning {
			return out
		}
	}
	a.T.Fatalf("the run did not come to an end: %+v", out.Run)
	return out
}

// RunOnce starts a run without settings and serves it.
func (a *Automation) RunOnce() reeve.AutomationRun { a.T.Helper(); return a.StartRun(Call{}) }

// MustComplete runs the automation once and fails the test unless the run completes.
func (a *Automation) MustComplete() reeve.AutomationRun {
	a.T.Helper()
	r := a.RunOnce()
	if r.Run.State != reeve.RunCompleted {
		a.T.Fatalf("the run is %s: %s %s", r.Run.State, r.Run.Code, r.Run.Message)
	}
	return r
}

// MustFail runs the automation once and fails the test unless the run fails with a class and a message that contains
// all texts.
func (a *Automation) MustFail(class reeve.FailureClass, says ...string) reeve.AutomationRun {
	a.T.Helper()
	r := a.RunOnce()
	if r.Run.State != reeve.RunFailed || r.Script.Class != class {
		a.T.Fatalf("the run is %s (%s, %s): %s; want a failure of class %s", r.Run.State, r.Run.Code, r.Script.Class,
			r.Run.Message, class)
	}
	for _, s := range says {
		if !strings.Contains(r.Run.Message, s) {
			a.T.Errorf("%q does not say %q", r.Run.Message, s)
		}
	}
	return r
}

// ListItems returns the items that a query selects.
func (a *Automation) ListItems(query string) (l reeve.ItemList) {
	a.T.Helper()
	a.Want(200, &l, "GET", a.Path("/items?"+query), nil)
	return l
}

// GetItem returns an item with its history.
func (a *Automation) GetItem(id string) (v api.ItemHistory) {
	a.T.Helper()
	a.Want(200, &v, "GET", a.Path("/items/"+url.PathEscape(id)), nil)
	return v
}

// ItemState returns the state of an item.
func (a *Automation) ItemState(id string) reeve.ItemState { a.T.Helper(); return a.GetItem(id).State }

// WantItems checks how many items the automation has.
func (a *Automation) WantItems(n int) {
	a.T.Helper()
	if l := a.ListItems(""); l.Total != n {
		a.T.Errorf("there are %d items, want %d: %+v", l.Total, n, l.Items)
	}
}

// Get returns the automation as the API shows it.
func (a *Automation) Get() (m reeve.Automation) {
	a.T.Helper()
	a.Want(200, &m, "GET", a.Path(""), nil)
	return m
}

// ListScriptJobs returns the jobs of the planner and the maintainer for this automation.
func (a *Automation) ListScriptJobs() []reeve.ScriptJob {
	a.T.Helper()
	var l api.ScriptJobList
	a.Want(200, &l, "GET", a.Path("/script-jobs"), nil)
	return l.ScriptJobs
}

// ListNotifications returns all notifications of the workspace.
func (a *Automation) ListNotifications() []reeve.Notification {
	a.T.Helper()
	var l api.NotificationList
	a.Want(200, &l, "GET", "/api/notifications?limit=500", nil)
	return l.Notifications
}

// ScheduleSoon creates a schedule that fires in a moment. On a busy machine that moment may have passed when the server
// reads the request; then it tries a later one.
func (a *Automation) ScheduleSoon(notify string) {
	a.T.Helper()
	for wait := 50 * time.Millisecond; ; wait *= 4 {
		r := a.Do("POST", "/api/schedules", Call{"agent": a.Name, "name": "soon", "cadence_type": "once",
			"cadence_value": reeve.Now().Add(wait).Format(time.RFC3339Nano), "notification": notify})
		if r.Status == 201 {
			return
		}
		if r.Status != 400 || wait > time.Minute {
			a.T.Fatalf("a schedule was refused: %s", r.Body)
		}
	}
}

// ListRetries returns the wakes in a state that repeat a failed run.
func (a *Automation) ListRetries(state reeve.WakeState) (out []reeve.Wake) {
	a.T.Helper()
	for _, w := range ListWakes(a.Host, a.Get().AgentID) {
		if w.Reason == reeve.ReasonRetry && w.State == state {
			out = append(out, w)
		}
	}
	return out
}

// TalkToPlanner starts a conversation with the planner and returns a function that sends a message and returns the
// answer. The rehearsed planner makes the call that the message spells.
func (a *Automation) TalkToPlanner() func(said string) string {
	a.T.Helper()
	a.Plan("hello")
	c := a.StartConversation("planner")
	return func(said string) string {
		a.T.Helper()
		var turn reeve.Turn
		a.Want(201, &turn, "POST", "/api/conversations/"+c.ID+"/turns", Call{"content": said})
		a.RunUntilIdle(a.T.Context())
		a.Want(200, &turn, "GET", "/api/turns/"+turn.ID, nil)
		return turn.Output
	}
}

// SaveByPlanner has the planner save the next version, and tests that version. tell is what TalkToPlanner returned.
func (a *Automation) SaveByPlanner(tell func(string) string, version string) {
	a.T.Helper()
	if out := tell(`scripts_save {"automation": "letters", "source": "'` + version + `'", "comment": "says it"}`); !strings.Contains(out, `"version":"`+version+`"`) {
		a.T.Fatalf("saving: %s", out)
	}
	a.StartRun(Call{"type": "test", "version": version})
}

// Activate makes a version the active one.
func (a *Automation) Activate(version string) {
	a.T.Helper()
	a.Want(200, nil, "POST", a.Path("/activate"), Call{"version": version})
}

// DescribeSchedules returns cadence, state, whether a next time is set, and user of every schedule, as text.
func (a *Automation) DescribeSchedules() string {
	a.T.Helper()
	var l api.ScheduleList
	a.Want(200, &l, "GET", "/api/schedules", nil)
	list := make([]string, len(l.Schedules))
	for i, s := range l.Schedules {
		list[i] = JoinValues(s.Value, s.State, s.NextAt != nil, s.UserID)
	}
	return strings.Join(list, "; ")
}

// Plan asks the planner for a script, steps the host until it is done, and returns the job.
func (a *Automation) Plan(request string) reeve.ScriptJob {
	a.T.Helper()
	var k reeve.ScriptJob
	a.Want(201, &k, "POST", a.Path("/plan"), Call{"request": request})
	a.RunUntilIdle(a.T.Context())
	a.Want(200, &k, "GET", "/api/script-jobs/"+k.ID, nil)
	return k
}

// WatchKeys creates an agent that subscribes to keys. The returned function reports how often each key has woken it.
func (a *Automation) WatchKeys(keys ...string) func() string {
	a.T.Helper()
	a.Want(201, nil, "POST", "/api/agents", Call{"name": "aware", "config": RehearsalConfig("seen")})
	for _, k := range keys {
		a.Want(201, nil, "POST", "/api/agents/aware/subscriptions", Call{"class": "key", "name": k})
	}
	return func() string {
		a.T.Helper()
		var list api.WakeList
		a.Want(200, &list, "GET", "/api/agents/aware/wakes?limit=100", nil)
		var counts []any
		for _, k := range keys {
			n := 0
			for _, v := range list.Wakes {
				if v.Token.Name == k {
					n++
				}
			}
			counts = append(counts, n)
		}
		return JoinValues(counts...)
	}
}

// ListAutomationRuns returns the runs of an automation, newest first.
func ListAutomationRuns(a *Automation) []reeve.AutomationRun {
	var l api.AutomationRunList
	a.Want(200, &l, "GET", a.Path("/runs"), nil)
	return l.Runs
}
