package journal_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"reeve"
)

// wantStaleUndo checks that the undo of an operation is refused as stale, because the entity has changed since.
func (fx *fixture) wantStaleUndo(a toolResult) {
	fx.T.Helper()
	var res reeve.Result
	fx.Want(http.StatusOK, &res, "POST", "/api/operations/"+a.Result.OperationID+"/undo", nil)
	if !res.IsError || res.Code != reeve.Stale || res.Hint == "" {
		fx.T.Errorf("undo after a later change: %+v", res)
	}
}

// TestL17_UndoKeepsLaterChanges checks that an undo does not overwrite a user's later change to the same field, and
// that a later change to another field does not prevent the undo.
func TestL17_UndoKeepsLaterChanges(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a, task := fx.createAgent("clerk", fx.home, fx.gym), fx.createTask(fx.home, "Paint")
		path := "/api/journal/tasks/" + task.ID
		person := func(change map[string]any) { t.Helper(); fx.Want(http.StatusOK, nil, "PATCH", path, change) }
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
			{"update_task_fields", map[string]any{"category_id": fx.gym},
				map[string]any{"category_id": fx.createCategory("garden")},
				func(v reeve.Task) bool { return v.CategoryID != fx.home }},
		} {
			c.args["task_id"] = task.ID
			done := fx.mustCall(a, c.tool, c.args)
			person(c.person)
			if c.args["category_id"] == nil { // the agent may not access the new category
				fx.wantStaleUndo(done)
			}
			if v := fx.getTask(task.ID).Task; !c.is(v) {
				t.Errorf("%s: the user's change is lost: %+v", c.tool, v)
			}
		}
		person(map[string]any{"category_id": fx.home, "title": "Paint", "priority": "low", "estimate_minutes": 10})
		// A refused undo changes nothing and succeeds once the value is again the one that the operation set.
		slow := fx.mustCall(a, "update_task_estimate", map[string]any{"task_id": task.ID, "estimate_minutes": 480})
		person(map[string]any{"estimate_minutes": 5})
		fx.wantStaleUndo(slow)
		person(map[string]any{"estimate_minutes": 480})
		fx.undo(slow)
		if v := fx.getTask(task.ID).Task; v.EstimateMinutes != 10 {
			t.Errorf("undo after a refused undo: %+v", v)
		}
		first := fx.mustCall(a, "update_task_priority", map[string]any{"task_id": task.ID, "priority": "urgent"})
		second := fx.mustCall(a, "update_task_estimate", map[string]any{"task_id": task.ID, "estimate_minutes": 20})
		person(map[string]any{"title": "Paint the shed"})
		fx.undo(first)
		fx.undo(second)
		if v := fx.getTask(task.ID).Task; v.Priority != reeve.LowPriority || v.EstimateMinutes != 10 ||
			v.Title != "Paint the shed" {
			t.Errorf("undo after a change of another field: %+v", v)
		}

		list := fx.createChecklist(task.ID, "Boxes", "a", "b")
		item := func(i int, change map[string]any) map[string]any { change["id"] = list.Items[i].ID; return change }
		items := fx.mustCall(a, "update_checklist_items", map[string]any{"checklist_id": list.ID,
			"items": []any{item(0, map[string]any{"checked": true}), item(1, map[string]any{"title": "B"})}})
		fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/checklists/"+list.ID+"/items",
			map[string]any{"items": []any{item(1, map[string]any{"title": "Bee"})}})
		fx.wantStaleUndo(items)
		if l := fx.getTask(task.ID).Checklists[0].Items; joinTitles(l) != "a Bee" || !l[0].Checked {
			t.Errorf("half of the change was undone: %+v", l)
		}

		rate := func(focus int) toolResult {
			return fx.mustCall(a, "create_or_update_rating", map[string]any{"target_kind": "task", "target_id": task.ID,
				"scores": map[string]any{"focus": focus}})
		}
		rate(10)
		rated := rate(20)
		fx.Want(http.StatusOK, nil, "PUT", "/api/journal/ratings", map[string]any{"target_kind": "task",
			"target_id": task.ID, "scores": map[string]any{"focus": 30}})
		fx.wantStaleUndo(rated)
		rated = rate(40)
		fx.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/ratings/task/"+task.ID, nil)
		fx.wantStaleUndo(rated)
		fx.Want(http.StatusNotFound, nil, "GET", "/api/journal/ratings/task/"+task.ID, nil) // it stays deleted

		var entry reeve.TimeEntry
		fx.Want(http.StatusCreated, &entry, "POST", "/api/journal/time-entries",
			map[string]any{"task_id": task.ID, "started_at": "2026-02-17T09:00:00Z",
				"ended_at": "2026-02-17T10:00:00Z"})
		note := fx.mustCall(a, "annotate_time_entry", map[string]any{"time_entry_id": entry.ID,
			"description": "the agent's"})
		fx.Want(http.StatusOK, nil, "PATCH", "/api/journal/time-entries/"+entry.ID,
			map[string]any{"description": "mine"})
		fx.wantStaleUndo(note)
		fx.Want(http.StatusOK, &entry, "GET", "/api/journal/time-entries/"+entry.ID, nil)
		if entry.Note != "mine" {
			t.Errorf("note %q", entry.Note)
		}
	})
}

// TestL17_UndoRestoresSideEffects checks that an undo also restores what the operation changed indirectly: labels that
// the task lost with its category, closing times, and the order of pins.
func TestL17_UndoRestoresSideEffects(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("clerk", fx.home, fx.gym)
		label := func(name, category string) string {
			var l reeve.Label
			fx.Want(http.StatusCreated, &l, "POST", "/api/journal/labels",
				reeve.LabelRequest{Name: name, CategoryID: category})
			return l.ID
		}
		own, free, other := label("own", fx.home), label("free", ""), label("other", "")
		labelled := func() reeve.Task {
			var v reeve.Task
			fx.Want(http.StatusCreated, &v, "POST", "/api/journal/tasks",
				reeve.TaskDraft{CategoryID: fx.home, Title: "Paint", LabelIDs: []string{own, free}})
			return v
		}
		is := func(task reeve.Task, category string, labels ...string) {
			t.Helper()
			slices.Sort(labels)
			if v := fx.getTask(task.ID).Task; v.CategoryID != category ||
				!slices.Equal(slices.Sorted(slices.Values(v.LabelIDs)), labels) {
				t.Errorf("the task is in %s with %v; want %s with %v", v.CategoryID, v.LabelIDs, category, labels)
			}
		}
		move := func(task reeve.Task) toolResult {
			return fx.mustCall(a, "update_task_fields", map[string]any{"task_id": task.ID, "category_id": fx.gym})
		}
		task := labelled()
		moved := move(task)
		is(task, fx.gym, free)
		back := fx.undo(moved)
		is(task, fx.home, own, free)
		fx.undo(back) // undo of the undo
		is(task, fx.gym, free)

		task = labelled() // the labels change after the move
		moved = move(task)
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels",
			reeve.LabelAssignment{Add: []string{other}})
		fx.wantStaleUndo(moved)
		is(task, fx.gym, free, other)
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels",
			reeve.LabelAssignment{Remove: []string{free, other}})
		fx.wantStaleUndo(moved)
		is(task, fx.gym)

		bare, gym := fx.createTask(fx.home, "Bare"), label("gym", fx.gym) // the undo would remove this label
		moved = move(bare)
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+bare.ID+"/labels",
			reeve.LabelAssignment{Add: []string{gym}})
		fx.wantStaleUndo(moved)
		is(bare, fx.gym, gym)

		task = labelled() // the label is deleted after the move
		moved = move(task)
		fx.Want(http.StatusNoContent, nil, "DELETE", "/api/journal/labels/"+own, nil)
		fx.wantStaleUndo(moved)
		is(task, fx.gym, free)

		closed := fx.mustCall(a, "update_task_fields", map[string]any{"task_id": bare.ID, "status": "done"})
		at := fx.getTask(bare.ID).ClosedAt
		reopened := fx.mustCall(a, "update_task_fields", map[string]any{"task_id": bare.ID, "status": "open"})
		fx.undo(reopened)
		if v := fx.getTask(bare.ID); v.Status != reeve.TaskDone || at == nil || v.ClosedAt == nil ||
			!v.ClosedAt.Equal(*at) {
			t.Errorf("closed at %v, and after the undo at %v", at, v.ClosedAt)
		}
		fx.undo(closed)
		if v := fx.getTask(bare.ID); v.Status != reeve.TaskOpen || v.ClosedAt != nil {
			t.Errorf("closed at %v by an undo that opens it", v.ClosedAt)
		}

		const day = "/api/journal/plans/2026-03-02"
		var tasks []string
		for range 3 {
			tasks = append(tasks, fx.createTask(fx.home, "Pinned").ID)
		}
		fx.Want(http.StatusOK, nil, "POST", day+"/pins", reeve.PinChange{Pin: tasks})
		fx.undo(fx.mustCall(a, "pin_day_plan_tasks", map[string]any{"plan_date": "2026-03-02",
			"unpin_task_ids": []string{tasks[1], tasks[0]}}))
		var plan reeve.DayPlan
		if fx.Want(http.StatusOK, &plan, "GET", day, nil); !slices.Equal(plan.Pinned, tasks) {
			t.Errorf("pinned %v, and after the undo %v", tasks, plan.Pinned)
		}
		for _, wrong := range [][]int{{1}, make([]int, len(tasks))} {
			fx.wantField(fx.wantError(reeve.Validation, a, "pin_day_plan_tasks",
				map[string]any{"plan_date": "2026-03-02",
					"task_ids": tasks, "positions": wrong}), "/positions")
		}
	})
}

// TestL17_UndoOfRevertedChange checks that the undo of a change that was already reverted, in whole or in part, is
// refused. The refused undo changes nothing and can be repeated.
func TestL17_UndoOfRevertedChange(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a, task, other := fx.createAgent("clerk", fx.home), fx.createTask(fx.home, "Paint"),
			fx.createTask(fx.home, "Sand")
		const day = "2026-03-02"
		pins := func(ids ...string) {
			t.Helper()
			var plan reeve.DayPlan
			if fx.Want(http.StatusOK, &plan, "GET", "/api/journal/plans/"+day, nil); !slices.Equal(plan.Pinned, ids) {
				t.Errorf("pinned are %v, want %v", plan.Pinned, ids)
			}
		}
		pin := fx.mustCall(a, "pin_day_plan_tasks",
			map[string]any{"plan_date": day, "task_ids": []string{task.ID, other.ID}})
		unpin := fx.mustCall(a, "pin_day_plan_tasks",
			map[string]any{"plan_date": day, "unpin_task_ids": []string{task.ID}})
		fx.wantStaleUndo(pin) // half of it is reverted
		pins(other.ID)
		rest := fx.mustCall(a, "pin_day_plan_tasks",
			map[string]any{"plan_date": day, "unpin_task_ids": []string{other.ID}})
		fx.wantStaleUndo(pin) // all of it is reverted
		fx.undo(unpin)
		fx.undo(rest)
		pins(task.ID, other.ID)
		fx.undo(pin) // the pins are as the operation set them
		pins()

		var labels []string
		for _, name := range []string{"one", "two"} {
			var l reeve.Label
			fx.Want(http.StatusCreated, &l, "POST", "/api/journal/labels", reeve.LabelRequest{Name: name})
			labels = append(labels, l.ID)
		}
		by := func(in reeve.LabelAssignment) {
			t.Helper()
			fx.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+task.ID+"/labels", in)
		}
		has := func(want ...string) {
			t.Helper()
			if got := slices.Sorted(slices.Values(fx.getTask(task.ID).LabelIDs)); !slices.Equal(got,
				slices.Sorted(slices.Values(want))) {
				t.Errorf("labels are %v, want %v", got, want)
			}
		}
		put := fx.mustCall(a, "assign_task_labels", map[string]any{"task_id": task.ID, "add_label_ids": labels})
		by(reeve.LabelAssignment{Remove: labels[:1]})
		fx.wantStaleUndo(put)
		has(labels[1])
		by(reeve.LabelAssignment{Add: labels[:1]})
		took := fx.mustCall(a, "assign_task_labels", map[string]any{"task_id": task.ID, "remove_label_ids": labels})
		fx.wantStaleUndo(put)
		by(reeve.LabelAssignment{Add: labels[1:]})
		fx.wantStaleUndo(took)
		has(labels[1])
		by(reeve.LabelAssignment{Remove: labels[1:]})
		fx.undo(took)
		has(labels...)
		fx.undo(put)
		has()

		list := fx.createChecklist(task.ID, "Boxes", "a")
		var entry reeve.TimeEntry
		fx.Want(http.StatusCreated, &entry, "POST", "/api/journal/time-entries",
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
				fx.Want(http.StatusOK, nil, c.method, "/api/journal/"+c.path, c.args(after))
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
			done := fx.mustCall(a, c.tool, args)
			person(false) // the user reverts the change
			fx.wantStaleUndo(done)
			person(true)
			if back := fx.undo(done); back.Result.Replayed || strings.Contains(back.Result.Content,
				`"changed_ids":[]`) {
				t.Errorf("%s: not undone: %+v", c.tool, back.Result)
			}
		}
	})
}
