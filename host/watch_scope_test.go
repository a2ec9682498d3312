package host_test

import (
	"strings"
	"testing"

	"reeve"
	"reeve/reevetest"
	"reeve/test/kit"
)

// A predicate is no way to what its agent, or the user who made the subscription, may not see: neither by what it holds
// for, nor by what is said where it cannot be asked.
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
			"/api/journal/ratings": {"target_kind": "task", "target_id": task,
				"scores": kit.Object{"focus": 50}},
			"/api/journal/plans/" + day +
				"/blocks": {"blocks": []kit.Object{{"category_id": gym, "start_time": day + "T10:00:00Z",
				"end_time": day +
					"T11:00:00Z", "note": "private"}}},
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
