package journal_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"reeve"
	"reeve/host"
)

// TestL18_FollowUp: open items move, done ones stay, order is kept, the tasks are linked both ways; the same call again
// makes no second task.
func TestL18_FollowUp(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		a := w.agent("planner", w.home)
		var red reeve.Label
		w.Want(http.StatusCreated, &red, "POST", "/api/journal/labels", reeve.LabelRequest{Name: "red"})
		source := w.task(w.home, "Release")
		w.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+source.ID+"/labels",
			reeve.LabelAssignment{Add: []string{red.ID}})
		first, second := w.checklist(source.ID, "Code", "a", "b", "c", "d"), w.checklist(source.ID, "Docs", "e", "f")
		w.check(first, 1, 3)
		w.check(second, 0, 1)
		args := map[string]any{"source_task_id": source.ID, "new_task_title": "Next release",
			"close_source_task_as": "done"}
		made := w.does(a, "create_follow_up_task", args, "Idempotency-Key", "once")
		again := w.does(a, "create_follow_up_task", args, "Idempotency-Key", "once")
		if !again.Result.Replayed || again.Other.ID != made.Other.ID ||
			again.Result.OperationID != made.Result.OperationID {
			t.Errorf("made again: %+v", again.Result)
		}
		if l := w.does(a, "list_tasks_in_scope", map[string]any{}); len(l.Tasks) != 2 {
			t.Errorf("%d tasks", len(l.Tasks))
		}
		old, next := w.view(source.ID), w.view(made.Other.ID)
		if old.Status != reeve.TaskDone || titles(old.Checklists[0].Items) != "b d" ||
			titles(old.Checklists[1].Items) != "e f" {
			t.Errorf("source %+v", old)
		}
		if next.Status != reeve.TaskOpen || next.CategoryID != w.home ||
			!slices.Equal(next.LabelIDs, []string{red.ID}) ||
			len(next.Checklists) != 1 || next.Checklists[0].Title != "Code" ||
			titles(next.Checklists[0].Items) != "a c" || made.Moved != 2 {
			t.Errorf("next %+v", next)
		}
		linked(t, next.Links, source.ID, next.ID, reeve.FollowedBy, reeve.Follows)
		linked(t, old.Links, source.ID, next.ID, reeve.FollowedBy, reeve.Follows)
		if next.Checklists[0].Items[0].ID != first.Items[0].ID {
			t.Error("the items were copied, not moved")
		}
		bare := w.does(a, "create_follow_up_task", map[string]any{"source_task_id": source.ID, "new_task_title": "Bare",
			"carry_over_open_checklist_items": false})
		if v := w.view(bare.Other.ID); len(v.Checklists) != 0 || bare.Moved != 0 {
			t.Errorf("bare %+v", v)
		}
	})
}

// TestL18_Rollover: the same for a conclusion; previewed first, and refused when what it was based on has changed.
func TestL18_Rollover(t *testing.T) {
	engines(t, func(t *testing.T, w *world) {
		a := w.agent("planner", w.home)
		source := w.task(w.home, "Week 7")
		list := w.checklist(source.ID, "Do", "a", "b", "c")
		w.check(list, 0)
		args := map[string]any{"task_id": source.ID, "new_task_title": "Week 8"}
		var seen reeve.Result
		w.Want(http.StatusOK, &seen, "POST", "/api/agents/"+a+"/calls",
			map[string]any{"tool": "conclude_task_with_rollover", "args": args, "preview_only": true})
		if !seen.Preview || seen.Base == "" || !strings.Contains(seen.Content, `"Week 8"`) ||
			!strings.Contains(seen.Content, list.Items[1].ID) || strings.Contains(seen.Content, list.Items[0].ID) {
			t.Fatalf("preview %+v", seen)
		}
		if v := w.view(source.ID); v.Status != reeve.TaskOpen || len(v.Checklists[0].Items) != 3 {
			t.Fatalf("the preview changed something: %+v", v)
		}
		// Somebody checks an item: the change is no longer the one that was shown.
		w.check(list, 1)
		r := w.Do("POST", "/api/agents/"+a+"/calls", map[string]any{"tool": "conclude_task_with_rollover", "args": args,
			"base": seen.Base})
		if !strings.Contains(string(r.Body), string(reeve.Stale)) {
			t.Fatalf("got %s", r.Body)
		}
		w.Want(http.StatusOK, &seen, "POST", "/api/agents/"+a+"/calls",
			map[string]any{"tool": "conclude_task_with_rollover", "args": args, "preview_only": true})
		apply := map[string]any{"tool": "conclude_task_with_rollover", "args": args, "base": seen.Base}
		var done, again reeve.Result
		w.Want(http.StatusOK, &done, "POST", "/api/agents/"+a+"/calls", apply, "Idempotency-Key", "k")
		w.Want(http.StatusOK, &again, "POST", "/api/agents/"+a+"/calls", apply, "Idempotency-Key", "k")
		if done.IsError || !again.Replayed || again.Content != done.Content {
			t.Fatalf("got %+v, then %+v", done, again)
		}
		old := w.view(source.ID)
		if old.Status != reeve.TaskDone || titles(old.Checklists[0].Items) != "a b" {
			t.Errorf("got %+v", old)
		}
		var next string
		for _, l := range old.Links {
			if l.Relation == reeve.RolledOverTo {
				next = l.ToID
			}
		}
		v := w.view(next)
		if v.Title != "Week 8" || titles(v.Checklists[0].Items) != "c" {
			t.Errorf("got %+v", v)
		}
		linked(t, v.Links, source.ID, next, reeve.RolledOverTo, reeve.RolledOverFrom)
		// A closed task is not concluded again, by another operation either.
		w.refused(reeve.Conflict, a, "conclude_task_with_rollover", args)
		// Into a task that is there; and without open items nothing is made.
		into := w.does(a, "conclude_task_with_rollover",
			map[string]any{"task_id": next, "target_task_id": w.task(w.home, "Backlog").ID, "close_as": "rejected"})
		if into.Moved != 1 || into.Other.Title != "Backlog" || w.view(next).Status != reeve.TaskRejected {
			t.Errorf("got %+v", into)
		}
		if none := w.does(a, "conclude_task_with_rollover", map[string]any{"task_id": w.task(w.home, "Nothing left").
			ID}); none.Other != nil || none.Moved != 0 {
			t.Errorf("got %+v", none)
		}
		self := w.task(w.home, "Self")
		w.wrong(w.refused(reeve.Validation, a, "conclude_task_with_rollover",
			map[string]any{"task_id": self.ID, "target_task_id": self.ID}), "/target_task_id")
		w.wrong(w.refused(reeve.Validation, a, "conclude_task_with_rollover",
			map[string]any{"task_id": self.ID, "target_task_id": next}), "/target_task_id")
	})
}

// TestL18_AllOrNothing: a change that fails at its end leaves nothing of its beginning.
func TestL18_AllOrNothing(t *testing.T) {
	w := start(t, host.Config{})
	a := w.agent("planner", w.home)
	source := w.task(w.home, "Source")
	list := w.checklist(source.ID, "Do", "a", "b")
	to := w.checklist(source.ID, "To")
	// The second item is not there; the first must not have been moved.
	w.refused(reeve.NotFound, a, "move_checklist_items",
		map[string]any{"item_ids": []string{list.Items[0].ID, "item_none"}, "from_checklist_id": list.ID,
			"to_checklist_id": to.ID})
	w.refused(reeve.NotFound, a, "move_checklist_items_to_new_task",
		map[string]any{"item_ids": []string{list.Items[0].ID, "item_none"}, "from_checklist_id": list.ID,
			"new_task_title": "x"})
	if v := w.view(source.ID); titles(v.Checklists[0].Items) != "a b" || len(v.Checklists[1].Items) != 0 ||
		len(v.Links) != 0 {
		t.Errorf("got %+v", v)
	}
	if l := w.does(a, "list_tasks_in_scope", map[string]any{}); len(l.Tasks) != 1 {
		t.Errorf("%d tasks", len(l.Tasks))
	}
}

// TestL18_OrderIsKept moves and rolls over at random: no item is lost or doubled, and items that were together keep
// their order.
func TestL18_OrderIsKept(t *testing.T) {
	w := start(t, host.Config{})
	a := w.agent("planner", w.home)
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		task := w.task(w.home, fmt.Sprintf("Task %d", seed))
		var all []string
		var lists []reeve.Checklist
		for l := range 1 + rng.IntN(3) {
			var items []string
			for i := range rng.IntN(6) {
				items = append(items, fmt.Sprintf("%d.%02d", l, i))
			}
			all = append(all, items...)
			lists = append(lists, w.checklist(task.ID, fmt.Sprintf("List %d", l), items...))
		}
		spare := w.checklist(task.ID, "Spare")
		var moved []string
		var open, done []string
		for _, l := range lists {
			var pick, checked []int
			for i := range l.Items {
				switch rng.IntN(3) {
				case 0:
					pick = append(pick, i)
				case 1:
					checked = append(checked, i)
				}
			}
			if len(checked) > 0 {
				w.check(l, checked...)
			}
			var ids []string
			for _, i := range pick {
				ids, moved = append(ids, l.Items[i].ID), append(moved, l.Items[i].Title)
			}
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			if len(ids) > 0 {
				w.does(a, "move_checklist_items", map[string]any{"item_ids": ids, "from_checklist_id": l.ID,
					"to_checklist_id": spare.ID})
			}
			for i, item := range l.Items {
				if slices.Contains(checked, i) {
					done = append(done, item.Title)
				} else if !slices.Contains(pick, i) {
					open = append(open, item.Title)
				}
			}
		}
		open = append(open, moved...) // the spare list is the last, and its items are open
		made := w.does(a, "conclude_task_with_rollover", map[string]any{"task_id": task.ID})
		left, got := flat(w.view(task.ID)), []string(nil)
		if made.Other != nil {
			got = flat(w.view(made.Other.ID))
		}
		if !slices.Equal(got, open) || !slices.Equal(left, done) || len(got)+len(left) != len(all) ||
			made.Moved != len(open) {
			t.Errorf("seed %d: carried %v, want %v; left %v, want %v", seed, got, open, left, done)
		}
	}
}

// flat is the titles of all items of a task, checklist by checklist.
func flat(v reeve.TaskView) (out []string) {
	for _, c := range v.Checklists {
		for _, i := range c.Items {
			out = append(out, i.Title)
		}
	}
	return out
}
