package wake_test

import (
	"fmt"
	"net/http"
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

// A predicate does not reveal what its agent, or the user who made the subscription, may not see: neither by its result
// nor by its errors.
func TestL16_PredicatesSeeWhatTheirAgentMay(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	mia, ned := kit.NewTokenFor(h, "mia", "member"), kit.NewTokenFor(h, "ned", "member")
	made := func(who []string, path string, body kit.Object) (id string) {
		var v struct{ ID string }
		r := h.Do("POST", path, body, who...)
		if r.Decode(t, &v); r.Status != 201 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
		return v.ID
	}
	gym, home := made(mia, "/api/journal/categories", kit.Object{"name": "Gym"}), made(mia, "/api/journal/categories",
		kit.Object{"name": "Home"})
	task := made(mia, "/api/journal/tasks", kit.Object{"category_id": gym, "title": "Squat"})
	agent := func(name string, categories ...string) reeve.Agent {
		a := h.Agent(name)
		kit.UpdateAgent(h, a, kit.Object{"categories": append([]string{}, categories...)})
		kit.SetRehearsal(h, a.ID, "ok")
		return a
	}
	watcher := func(name, class, key, predicate string, categories ...string) reeve.Agent {
		a := agent(name, categories...)
		made(mia, "/api/agents/"+a.ID+"/subscriptions", kit.Object{"class": class, "name": key, "predicate": predicate})
		return a
	}
	blind := watcher("blind", "key", "TIME_ENTRY", `entity.note != ""`)
	entries := watcher("entries", "key", "TIME_ENTRY", `entity.note != ""`, gym)
	nosy := watcher("nosy", "key", "TIME_ENTRY", `{"a": true}[entity.note]`, gym)
	ratings := watcher("ratings", "key", "RATING", `entity.scores.focus > 10`, gym)
	elsewhere := watcher("elsewhere", "key", "RATING", `entity.scores.focus > 10`, home)
	plans := watcher("plans", "key", "DAY_PLAN", `entity.kind == "plan_block" && entity.note != ""`, gym)
	tasks := watcher("tasks", "key", "TASK", `entity.title != ""`, home)
	all := []reeve.Agent{blind, entries, nosy, ratings, elsewhere, plans, tasks}
	write := func(who []string, day string) {
		made(who, "/api/journal/time-entries", kit.Object{"task_id": task, "started_at": day + "T08:00:00Z",
			"ended_at": day + "T09:00:00Z", "description": "the password is hunter2"})
		for path, body := range map[string]kit.Object{
			"/api/journal/ratings": {"target_kind": "task", "target_id": task, "scores": kit.Object{"focus": 50}},
			"/api/journal/plans/" + day +
				"/blocks": {"blocks": []kit.Object{{"category_id": gym, "start_time": day + "T10:00:00Z",
				"end_time": day + "T11:00:00Z", "note": "private"}}},
		} {
			if r := h.Do("PUT", path, body, who...); r.Status >= 300 {
				t.Fatalf("%s: %d %s", path, r.Status, r.Body)
			}
		}
		kit.WaitUntilIdle(h)
	}
	ran := func() (names []string) {
		for _, a := range all {
			if len(kit.ListRuns(h, "agent="+a.ID)) > 0 {
				names = append(names, a.Name)
			}
		}
		return names
	}
	write(ned, "2026-03-02")
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+task, kit.Object{"title": "Deep squat"})
	kit.WaitUntilIdle(h)
	if got := ran(); len(got) > 0 {
		t.Errorf("another's things, and other categories, woke %v", got)
	}
	write(mia, "2026-03-03")
	if got := strings.Join(ran(), " "); got != "entries ratings plans" {
		t.Errorf("mia's own woke %s", got)
	}
	for _, a := range all {
		for _, w := range kit.ListWakes(h, a.ID) {
			if strings.Contains(w.Why, "hunter2") || w.State == reeve.WakeQueued {
				t.Errorf("%s: %+v", a.Name, w)
			}
		}
	}
}

// Token classes do not mix: an id that looks like a key is an id.
func TestL03_TokenClassesDoNotCrossOver(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t, newEmitter())
	source := h.Agent("source", "emit")
	for _, class := range []string{"key", "subtype", "id"} {
		a := h.Agent(class)
		kit.SetRehearsal(h, a.ID, "ok")
		kit.Subscribe(h, a.ID, class, "TASK", "")
	}
	for _, class := range []string{"key", "subtype", "id"} {
		h.Call(source.ID, "emit", kit.Object{"class": class, "name": "TASK"})
		h.Call(source.ID, "emit", kit.Object{"class": class, "name": "task"})
	}
	kit.WaitUntilIdle(h)
	for _, class := range []string{"key", "subtype", "id"} {
		list := kit.ListWakes(h, class)
		if len(list) != 1 || string(list[0].Token.Class) != class || list[0].Token.Name != "TASK" {
			t.Errorf("%s: %+v", class, list)
		}
	}
	if r := h.Do("POST", "/api/agents/key/subscriptions", kit.Object{"class": "colour", "name": "X"}); r.Status != 400 ||
		!strings.Contains(string(r.Body), "class") {
		t.Errorf("a token of no class: %d %s", r.Status, r.Body)
	}
	if res := h.Call(source.ID, "emit", kit.Object{"class": "colour", "name": "X"}); !res.IsError ||
		!strings.Contains(res.Message, "class") {
		t.Errorf("a token of no class was told: %+v", res)
	}
}

// Fifty edits within the window of 100 ms are one run that names all of them, and each of their keys is terminal. The
// server looks for work after every edit, so that without a window each would be a run. The next edit after the window
// is another run.
func TestL04_FiftyEditsOneRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := kit.NewBubbleHost(t, host.Config{})
		var gym reeve.Category
		b.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
		var task reeve.Task
		b.Want(201, &task, "POST", "/api/journal/tasks", kit.Object{"category_id": gym.ID, "title": "Squat"})
		b.NewAgent("coach", kit.Object{"categories": []string{gym.ID}})
		b.Want(201, nil, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "TASK"})
		b.AdvanceBy(time.Second, 100*time.Millisecond)
		if runs := b.ListRuns("agent=coach"); len(runs) != 0 {
			t.Fatalf("%d runs before any edit", len(runs))
		}
		edit := func(i int) {
			b.Want(200, nil, "PATCH", "/api/journal/tasks/"+task.ID, kit.Object{"title": fmt.Sprint("Squat ", i)})
		}
		for i := range 50 {
			edit(i)
			b.AdvanceBy(time.Millisecond, time.Millisecond)
		}
		b.AdvanceBy(time.Second, 5*time.Millisecond)
		runs := b.ListRuns("agent=coach")
		if len(runs) != 1 || runs[0].Wakes != 50 || !runs[0].State.IsFinal() ||
			runs[0].Reason != reeve.ReasonSubscription {
			t.Fatalf("50 edits are %d runs: %+v", len(runs), runs)
		}
		var list api.WakeList
		b.Want(200, &list, "GET", "/api/runs/"+runs[0].ID+"/wakes?limit=100", nil)
		keys, changes := map[string]bool{}, map[string]bool{}
		for _, w := range list.Wakes {
			keys[w.RunKey], changes[w.OperationID] = true, true
			if w.State != reeve.WakeTaken || w.OperationID == "" {
				t.Errorf("%+v", w)
			}
		}
		if len(keys) != 50 || len(changes) != 50 {
			t.Errorf("the run serves %d keys of %d edits", len(keys), len(changes))
		}
		edit(50)
		b.AdvanceBy(time.Second, 5*time.Millisecond)
		if runs := b.ListRuns("agent=coach"); len(runs) != 2 || runs[0].Wakes != 1 {
			t.Errorf("after one more edit: %+v", runs)
		}
	})
}

// A change during a run causes one more run. The agent's own writes cause none.
func TestL05_AChangeDuringARunAndItsOwn(t *testing.T) {
	t.Parallel()
	g := kit.NewBlockingTool()
	h := reevetest.Start(t, g.Tool(), newEmitter())
	source, a := h.Agent("source", "emit"), h.Agent("coach", "emit", "hold")
	kit.SetRehearsal(h, a.ID, "ok", kit.Object{"tool": "emit", "args": kit.Object{"class": "key", "name": "TASK"}},
		kit.Object{"tool": "hold"})
	kit.Subscribe(h, a.ID, "key", "TASK", "")
	kit.StepInBackground(t, h)
	h.Want(201, nil, "POST", "/api/agents/coach/wake", kit.Object{})
	<-g.Reached
	for range 5 {
		h.Call(source.ID, "emit", kit.Object{"class": "key", "name": "TASK"})
	}
	close(g.Release)
	kit.Eventually(t, "the follow-up to end",
		func() bool { return len(kit.ListRuns(h, "agent=coach&state=completed")) == 2 })
	kit.WaitUntilIdle(h)
	runs := kit.ListRuns(h, "agent=coach")
	if len(runs) != 2 || runs[0].Wakes != 5 || runs[0].Reason != reeve.ReasonSubscription {
		t.Errorf("runs: %+v", runs)
	}
}

// Predicates see the entity as it is at the end of the window.
func TestL06_PredicatesSeeTheEntityAfterTheBatch(t *testing.T) {
	t.Parallel()
	h := reevetest.Start(t)
	var gym, home reeve.Category
	h.Want(201, &gym, "POST", "/api/journal/categories", kit.Object{"name": "Gym"})
	h.Want(201, &home, "POST", "/api/journal/categories", kit.Object{"name": "Home"})
	a := h.Agent("coach")
	kit.UpdateAgent(h, a, kit.Object{"categories": []string{gym.ID, home.ID}})
	kit.SetRehearsal(h, a.ID, "ok")
	kit.Subscribe(h, a.ID, "key", "TASK", `entity.category_id == "`+gym.ID+`"`)
	task := func(category, title string) (k reeve.Task) {
		h.Want(201, &k, "POST", "/api/journal/tasks", kit.Object{"category_id": category, "title": title})
		return k
	}
	ran := func(what string, want int) {
		t.Helper()
		kit.WaitUntilIdle(h)
		if n := len(kit.ListRuns(h, "agent=coach")); n != want {
			t.Errorf("%s: %d runs, want %d", what, n, want)
		}
	}
	squat := task(gym.ID, "Squat")
	ran("a task in the category", 1)
	task(home.ID, "Dishes")
	ran("a task elsewhere", 1)
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"title": "Deep squat"})
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"category_id": home.ID})
	ran("changed and moved out within the window", 1)
	press := task(gym.ID, "Press")
	h.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/tasks/"+press.ID, nil)
	ran("made and gone within the window", 1)
	for _, w := range kit.ListWakes(h, "coach") {
		if w.State == reeve.WakeSkipped && !strings.HasPrefix(w.Why, "the predicate is false") {
			t.Errorf("%+v", w)
		}
	}
	h.Want(200, nil, "PATCH", "/api/journal/tasks/"+squat.ID, kit.Object{"category_id": gym.ID})
	ran("moved in", 2)
	for _, bad := range []string{"entity.", "1 + 1", "nobody.knows == 1", `"text"`, strings.Repeat("(", 300)} {
		var p api.Problem
		h.Want(400, &p, "POST", "/api/agents/coach/subscriptions", kit.Object{"class": "key", "name": "TASK",
			"predicate": bad})
		if len(p.Errors) == 0 || p.Errors[0].Path != "/predicate" {
			t.Errorf("%q: %+v", bad, p)
		}
	}
	// One that would take for ever is cut short, and is false.
	long := "[1,2,3,4,5,6,7,8,9]"
	loop := "true"
	for i := range 8 {
		loop = fmt.Sprintf("%s.all(x%d, %s)", long, i, loop)
	}
	b := h.Agent("looper")
	kit.UpdateAgent(h, b, kit.Object{"categories": []string{gym.ID}})
	kit.SetRehearsal(h, b.ID, "ok")
	kit.Subscribe(h, b.ID, "key", "TASK", loop)
	start := time.Now()
	task(gym.ID, "Row")
	ran("a task beside a loop", 3)
	if n := len(kit.ListRuns(h, "agent=looper")); n != 0 || time.Since(start) > 10*time.Second {
		t.Errorf("a predicate without end held: %d runs in %s", n, time.Since(start))
	}
}
