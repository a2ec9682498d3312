package journal_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"reeve"
)

// tooLate undoes an operation after somebody has changed the same since: that is refused, and what they said stays.
func (w *world) tooLate(a answer) {
	w.T.Helper()
	var res reeve.Result
	w.Want(http.StatusOK, &res, "POST", "/api/operations/"+a.Result.OperationID+"/undo", nil)
	if !res.IsError || res.Code != reeve.Stale || res.Hint == "" {
		w.T.Errorf("undo of what was changed since: %+v", res)
	}
}

// TestL17_UndoTakesBackOnlyWhatWasDone: what a person has said since stays, and stands in the way of no other undo.
func TestL17_UndoTakesBackOnlyWhatWasDone(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		a, task := w.agent("clerk", w.home, w.gym), w.task(w.home, "Paint")
		path := "/api/journal/tasks/" + task.ID
		person := func(change map[string]any) { t.Helper(); w.Want(http.StatusOK, nil, "PATCH", path, change) }
		for _, c := range []struct {
			tool   string
			args   map[string]any
			person map[string]any
			is     func(reeve.Task) bool
		}{
			{"set_task_language", map[string]any{"language": "pt-BR"}, map[string]any{"language": "de"},
				func(v reeve.Task) bool { return v.Language == "de" }},
			{"update_task_estimate", map[string]any{"estimate_minutes": 90}, map[string]any{"estimate_minutes": 30},
				func(v reeve.Task) bool { return v.EstimateMinutes == 30 }},
			{"update_task_due_date", map[string]any{"due_date": "2027-01-02"}, map[string]any{"due_date": ""},
				func(v reeve.Task) bool { return v.DueDate == "" }},
			{"update_task_priority", map[string]any{"priority": "urgent"}, map[string]any{"priority": "low"},
				func(v reeve.Task) bool { return v.Priority == reeve.LowPriority }},
			{"update_task_fields", map[string]any{"title": "Paint it", "description": "twice"},
				map[string]any{"title": "Paint the fence"},
				func(v reeve.Task) bool { return v.Title == "Paint the fence" && v.Description == "twice" }},
			{"update_task_fields", map[string]any{"category_id": w.gym},
				map[string]any{"category_id": w.category("garden")},
				func(v reeve.Task) bool { return v.CategoryID != w.home }},
		} {
			c.args["task_id"] = task.ID
			done := w.does(a, c.tool, c.args)
			person(c.person)
			if c.args["category_id"] == nil { // else the agent may not even touch it
				w.tooLate(done)
			}
			if v := w.view(task.ID).Task; !c.is(v) {
				t.Errorf("%s: what the person said is gone: %+v", c.tool, v)
			}
		}
		person(map[string]any{"category_id": w.home, "title": "Paint", "priority": "low", "estimate_minutes": 10})
		// What could not be taken back did nothing: once it is as it was left, it can.
		slow := w.does(a, "update_task_estimate", map[string]any{"task_id": task.ID, "estimate_minutes": 480})
		person(map[string]any{"estimate_minutes": 5})
		w.tooLate(slow)
		person(map[string]any{"estimate_minutes": 480})
		w.undo(slow)
		if v := w.view(task.ID).Task; v.EstimateMinutes != 10 {
			t.Errorf("an undo that failed before: %+v", v)
		}
		first := w.does(a, "update_task_priority", map[string]any{"task_id": task.ID, "priority": "urgent"})
		second := w.does(a, "update_task_estimate", map[string]any{"task_id": task.ID, "estimate_minutes": 20})
		person(map[string]any{"title": "Paint the shed"})
		w.undo(first)
		w.undo(second)
		if v := w.view(task.ID).Task; v.Priority != reeve.LowPriority || v.EstimateMinutes != 10 ||
			v.Title != "Paint the shed" {
			t.Errorf("something else was changed since: %+v", v)
		}

		list := w.checklist(task.ID, "Boxes", "a", "b")
		item := func(i int, change map[string]any) map[string]any { change["id"] = list.Items[i].ID; return change }
		items := w.does(a, "update_checklist_items", map[string]any{"checklist_id": list.ID,
			"items": []any{item(0, map[string]any{"checked": true}), item(1, map[string]any{"title": "B"})}})
		w.Want(http.StatusOK, nil, "PATCH", "/api/journal/checklists/"+list.ID+"/items",
			map[string]any{"items": []any{item(1, map[string]any{"title": "Bee"})}})
		w.tooLate(items)
		if l := w.view(task.ID).Checklists[0].Items; titles(l) != "a Bee" || !l[0].Checked {
			t.Errorf("half was taken back: %+v", l)
		}

		rate := func(focus int) answer {
			return w.does(a, "create_or_update_rating", map[string]any{"target_kind": "task", "target_id": task.ID,
				"scores": map[string]any{"focus": focus}})
		}
		rate(10)
		rated := rate(20)
		w.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", map[string]any{"target_kind": "task",
			"target_id": task.ID, "scores": map[string]any{"focus": 30}})
		w.tooLate(rated)
		rated = rate(40)
		w.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/ratings/task/"+task.ID, nil)
		w.tooLate(rated)
		w.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil) // which somebody took back

		var entry reeve.TimeEntry
		w.Want(http.StatusCreated, &entry, "POST", "/api/journal/time-entries",
			map[string]any{"task_id": task.ID, "started_at": "2026-02-17T09:00:00Z",
				"ended_at": "2026-02-17T10:00:00Z"})
		note := w.does(a, "annotate_time_entry", map[string]any{"time_entry_id": entry.ID,
			"description": "the agent's"})
		w.Want(http.StatusOK, nil, "PATCH", "/api/journal/time-entries/"+entry.ID,
			map[string]any{"description": "mine"})
		w.tooLate(note)
		w.Want(http.StatusOK, &entry, "GET", "/api/journal/time-entries/"+entry.ID, nil)
		if entry.Note != "mine" {
			t.Errorf("note %q", entry.Note)
		}
	})
}

// TestL17_UndoBringsBackAllThatWasThere: also what a change took along that it did not name, and where things stood.
func TestL17_UndoBringsBackAllThatWasThere(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		a := w.agent("clerk", w.home, w.gym)
		label := func(name, category string) string {
			var l reeve.Label
			w.Want(http.StatusCreated, &l, "POST", "/api/journal/labels",
				reeve.LabelRequest{Name: name, CategoryID: category})
			return l.ID
		}
		own, free, other := label("own", w.home), label("free", ""), label("other", "")
		labelled := func() reeve.Task {
			var v reeve.Task
			w.Want(http.StatusCreated, &v, "POST", "/api/journal/tasks",
				reeve.TaskDraft{CategoryID: w.home, Title: "Paint", LabelIDs: []string{own, free}})
			return v
		}
		is := func(task reeve.Task, category string, labels ...string) {
			t.Helper()
			slices.Sort(labels)
			if v := w.view(task.ID).Task; v.CategoryID != category ||
				!slices.Equal(slices.Sorted(slices.Values(v.LabelIDs)), labels) {
				t.Errorf("the task is in %s with %v; want %s with %v", v.CategoryID, v.LabelIDs, category, labels)
			}
		}
		move := func(task reeve.Task) answer {
			return w.does(a, "update_task_fields", map[string]any{"task_id": task.ID, "category_id": w.gym})
		}
		task := labelled()
		moved := move(task)
		is(task, w.gym, free)
		back := w.undo(moved)
		is(task, w.home, own, free)
		w.undo(back) // the undo is undone
		is(task, w.gym, free)

		task = labelled() // somebody has changed the labels since
		moved = move(task)
		w.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels",
			reeve.LabelAssignment{Add: []string{other}})
		w.tooLate(moved)
		is(task, w.gym, free, other)
		w.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels",
			reeve.LabelAssignment{Remove: []string{free, other}})
		w.tooLate(moved)
		is(task, w.gym)

		bare, gym := w.task(w.home, "Bare"), label("gym", w.gym) // which the undo would take off
		moved = move(bare)
		w.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+bare.ID+"/labels",
			reeve.LabelAssignment{Add: []string{gym}})
		w.tooLate(moved)
		is(bare, w.gym, gym)

		task = labelled() // the label is gone
		moved = move(task)
		w.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/labels/"+own, nil)
		w.tooLate(moved)
		is(task, w.gym, free)

		closed := w.does(a, "update_task_fields", map[string]any{"task_id": bare.ID, "status": "done"})
		at := w.view(bare.ID).ClosedAt
		reopened := w.does(a, "update_task_fields", map[string]any{"task_id": bare.ID, "status": "open"})
		w.undo(reopened)
		if v := w.view(bare.ID); v.Status != reeve.TaskDone || at == nil || v.ClosedAt == nil ||
			!v.ClosedAt.Equal(*at) {
			t.Errorf("closed at %v, and after the undo at %v", at, v.ClosedAt)
		}
		w.undo(closed)
		if v := w.view(bare.ID); v.Status != reeve.TaskOpen || v.ClosedAt != nil {
			t.Errorf("closed at %v by an undo that opens it", v.ClosedAt)
		}

		const day = "/api/journal/plans/2026-03-02"
		var tasks []string
		for range 3 {
			tasks = append(tasks, w.task(w.home, "Pinned").ID)
		}
		w.Want(http.StatusOK, nil, "POST", day+"/pins", reeve.PinChange{Pin: tasks})
		w.undo(w.does(a, "pin_day_plan_tasks", map[string]any{"plan_date": "2026-03-02",
			"unpin_task_ids": []string{tasks[1], tasks[0]}}))
		var plan reeve.DayPlan
		if w.Want(http.StatusOK, &plan, "GET", day, nil); !slices.Equal(plan.Pinned, tasks) {
			t.Errorf("pinned %v, and after the undo %v", tasks, plan.Pinned)
		}
		for _, wrong := range [][]int{{1}, make([]int, len(tasks))} {
			w.wrong(w.refused(reeve.Validation, a, "pin_day_plan_tasks", map[string]any{"plan_date": "2026-03-02",
				"task_ids": tasks, "positions": wrong}), "/positions")
		}
	})
}

// TestL17_UndoOfWhatIsNotThereAnyMore: what an operation did and somebody has taken back since, wholly or in part, is
// no more to be taken back. That took nothing back, so it can be asked for again.
func TestL17_UndoOfWhatIsNotThereAnyMore(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		a, task, other := w.agent("clerk", w.home), w.task(w.home, "Paint"), w.task(w.home, "Sand")
		const day = "2026-03-02"
		pins := func(ids ...string) {
			t.Helper()
			var plan reeve.DayPlan
			if w.Want(http.StatusOK, &plan, "GET", "/api/journal/plans/"+day, nil); !slices.Equal(plan.Pinned, ids) {
				t.Errorf("pinned are %v, want %v", plan.Pinned, ids)
			}
		}
		pin := w.does(a, "pin_day_plan_tasks",
			map[string]any{"plan_date": day, "task_ids": []string{task.ID, other.ID}})
		unpin := w.does(a, "pin_day_plan_tasks", map[string]any{"plan_date": day, "unpin_task_ids": []string{task.ID}})
		w.tooLate(pin) // half of it
		pins(other.ID)
		rest := w.does(a, "pin_day_plan_tasks", map[string]any{"plan_date": day, "unpin_task_ids": []string{other.ID}})
		w.tooLate(pin) // all of it
		w.undo(unpin)
		w.undo(rest)
		pins(task.ID, other.ID)
		w.undo(pin) // as it was left
		pins()

		var labels []string
		for _, name := range []string{"one", "two"} {
			var l reeve.Label
			w.Want(http.StatusCreated, &l, "POST", "/api/journal/labels", reeve.LabelRequest{Name: name})
			labels = append(labels, l.ID)
		}
		by := func(in reeve.LabelAssignment) {
			t.Helper()
			w.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels", in)
		}
		has := func(want ...string) {
			t.Helper()
			if got := slices.Sorted(slices.Values(w.view(task.ID).LabelIDs)); !slices.Equal(got,
				slices.Sorted(slices.Values(want))) {
				t.Errorf("labels are %v, want %v", got, want)
			}
		}
		put := w.does(a, "assign_task_labels", map[string]any{"task_id": task.ID, "add_label_ids": labels})
		by(reeve.LabelAssignment{Remove: labels[:1]})
		w.tooLate(put)
		has(labels[1])
		by(reeve.LabelAssignment{Add: labels[:1]})
		took := w.does(a, "assign_task_labels", map[string]any{"task_id": task.ID, "remove_label_ids": labels})
		w.tooLate(put)
		by(reeve.LabelAssignment{Add: labels[1:]})
		w.tooLate(took)
		has(labels[1])
		by(reeve.LabelAssignment{Remove: labels[1:]})
		w.undo(took)
		has(labels...)
		w.undo(put)
		has()

		list := w.checklist(task.ID, "Boxes", "a")
		var entry reeve.TimeEntry
		w.Want(http.StatusCreated, &entry, "POST", "/api/journal/time-entries",
			map[string]any{"task_id": task.ID, "started_at": "2026-02-17T09:00:00Z",
				"ended_at": "2026-02-17T10:00:00Z"})
		for _, c := range []struct {
			tool, method, path string
			args               func(after bool) map[string]any
		}{
			{"update_task_estimate", "PATCH", "tasks/" + task.ID, func(after bool) map[string]any {
				return map[string]any{"estimate_minutes": map[bool]int{true: 90, false: 30}[after]}
			}},
			{"update_checklist_items", "PATCH", "checklists/" + list.ID + "/items", func(after bool) map[string]any {
				return map[string]any{"items": []any{map[string]any{"id": list.Items[0].ID, "checked": after}}}
			}},
			{"create_or_update_rating", "PUT", "ratings", func(after bool) map[string]any {
				return map[string]any{"target_kind": "task", "target_id": task.ID,
					"scores": map[string]any{"focus": map[bool]int{true: 20, false: 10}[after]}}
			}},
			{"annotate_time_entry", "PATCH", "time-entries/" + entry.ID, func(after bool) map[string]any {
				return map[string]any{"description": map[bool]string{true: "the agent's", false: "mine"}[after]}
			}},
		} {
			person := func(after bool) {
				t.Helper()
				w.Want(http.StatusOK, nil, c.method, "/api/journal/"+c.path, c.args(after))
			}
			person(false)
			args := c.args(true)
			switch c.tool {
			case "update_task_estimate":
				args["task_id"] = task.ID
			case "update_checklist_items":
				args["checklist_id"] = list.ID
			case "annotate_time_entry":
				args["time_entry_id"] = entry.ID
			}
			done := w.does(a, c.tool, args)
			person(false) // who takes it back by hand
			w.tooLate(done)
			person(true)
			if back := w.undo(done); back.Result.Replayed || strings.Contains(back.Result.Content, `"changed_ids":[]`) {
				t.Errorf("%s: as it was left, and not taken back: %+v", c.tool, back.Result)
			}
		}
	})
}
