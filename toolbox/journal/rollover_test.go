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

// TestL18_FollowUp checks that a follow-up task gets the open items in order, that checked items stay, that both tasks
// are linked, and that a repeated call creates no second task.
func TestL18_FollowUp(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("planner", fx.home)
		var red reeve.Label
		fx.Want(http.StatusCreated, &red, "POST", "/api/journal/labels", reeve.LabelRequest{Name: "red"})
		source := fx.createTask(fx.home, "Release")
		fx.Want(http.StatusOK, nil, "POST", "/api/journal/tasks/"+source.ID+"/labels",
			reeve.LabelAssignment{Add: []string{red.ID}})
		first, second := fx.createChecklist(source.ID, "Code", "a", "b", "c", "d"),
			fx.createChecklist(source.ID, "Docs", "e", "f")
		fx.checkItems(first, 1, 3)
		fx.checkItems(second, 0, 1)
		args := map[string]any{"source_task_id": source.ID, "new_task_title": "Next release",
			"close_source_task_as": "done"}
		made := fx.mustCall(a, "create_follow_up_task", args, "Idempotency-Key", "once")
		again := fx.mustCall(a, "create_follow_up_task", args, "Idempotency-Key", "once")
		if !again.Result.Replayed || again.Other.ID != made.Other.ID ||
			again.Result.OperationID != made.Result.OperationID {
			t.Errorf("made again: %+v", again.Result)
		}
		if l := fx.mustCall(a, "list_tasks_in_scope", map[string]any{}); len(l.Tasks) != 2 {
			t.Errorf("%d tasks", len(l.Tasks))
		}
		old, next := fx.getTask(source.ID), fx.getTask(made.Other.ID)
		if old.Status != reeve.TaskDone || joinTitles(old.Checklists[0].Items) != "b d" ||
			joinTitles(old.Checklists[1].Items) != "e f" {
			t.Errorf("source %+v", old)
		}
		if next.Status != reeve.TaskOpen || next.CategoryID != fx.home ||
			!slices.Equal(next.LabelIDs, []string{red.ID}) ||
			len(next.Checklists) != 1 || next.Checklists[0].Title != "Code" ||
			joinTitles(next.Checklists[0].Items) != "a c" || made.Moved != 2 {
			t.Errorf("next %+v", next)
		}
		checkLinked(t, next.Links, source.ID, next.ID, reeve.FollowedBy, reeve.Follows)
		checkLinked(t, old.Links, source.ID, next.ID, reeve.FollowedBy, reeve.Follows)
		if next.Checklists[0].Items[0].ID != first.Items[0].ID {
			t.Error("the items were copied, not moved")
		}
		bare := fx.mustCall(a, "create_follow_up_task", map[string]any{"source_task_id": source.ID,
			"new_task_title":                  "Bare",
			"carry_over_open_checklist_items": false})
		if v := fx.getTask(bare.Other.ID); len(v.Checklists) != 0 || bare.Moved != 0 {
			t.Errorf("bare %+v", v)
		}
	})
}

// TestL18_Rollover checks the same for a conclusion with a preview. A call with an outdated base is refused.
func TestL18_Rollover(t *testing.T) {
	forEachEngine(t, func(t *testing.T, fx *fixture) {
		a := fx.createAgent("planner", fx.home)
		source := fx.createTask(fx.home, "Week 7")
		list := fx.createChecklist(source.ID, "Do", "a", "b", "c")
		fx.checkItems(list, 0)
		args := map[string]any{"task_id": source.ID, "new_task_title": "Week 8"}
		var seen reeve.Result
		fx.Want(http.StatusOK, &seen, "POST", "/api/agents/"+a+"/calls",
			map[string]any{"tool": "conclude_task_with_rollover", "args": args, "preview_only": true})
		if !seen.Preview || seen.Base == "" || !strings.Contains(seen.Content, `"Week 8"`) ||
			!strings.Contains(seen.Content, list.Items[1].ID) || strings.Contains(seen.Content, list.Items[0].ID) {
			t.Fatalf("preview %+v", seen)
		}
		if v := fx.getTask(source.ID); v.Status != reeve.TaskOpen || len(v.Checklists[0].Items) != 3 {
			t.Fatalf("the preview changed something: %+v", v)
		}
		// A user checks an item, so the preview is outdated.
		fx.checkItems(list, 1)
		r := fx.Do("POST", "/api/agents/"+a+"/calls", map[string]any{"tool": "conclude_task_with_rollover",
			"args": args,
			"base": seen.Base})
		if !strings.Contains(string(r.Body), string(reeve.Stale)) {
			t.Fatalf("got %s", r.Body)
		}
		fx.Want(http.StatusOK, &seen, "POST", "/api/agents/"+a+"/calls",
			map[string]any{"tool": "conclude_task_with_rollover", "args": args, "preview_only": true})
		apply := map[string]any{"tool": "conclude_task_with_rollover", "args": args, "base": seen.Base}
		var done, again reeve.Result
		fx.Want(http.StatusOK, &done, "POST", "/api/agents/"+a+"/calls", apply, "Idempotency-Key", "k")
		fx.Want(http.StatusOK, &again, "POST", "/api/agents/"+a+"/calls", apply, "Idempotency-Key", "k")
		if done.IsError || !again.Replayed || again.Content != done.Content {
			t.Fatalf("got %+v, then %+v", done, again)
		}
		old := fx.getTask(source.ID)
		if old.Status != reeve.TaskDone || joinTitles(old.Checklists[0].Items) != "a b" {
			t.Errorf("got %+v", old)
		}
		var next string
		for _, l := range old.Links {
			if l.Relation == reeve.RolledOverTo {
				next = l.ToID
			}
		}
		v := fx.getTask(next)
		if v.Title != "Week 8" || joinTitles(v.Checklists[0].Items) != "c" {
			t.Errorf("got %+v", v)
		}
		checkLinked(t, v.Links, source.ID, next, reeve.RolledOverTo, reeve.RolledOverFrom)
		// A closed task cannot be concluded again.
		fx.wantError(reeve.Conflict, a, "conclude_task_with_rollover", args)
		// The target can be an existing task. Without open items no task is created.
		into := fx.mustCall(a, "conclude_task_with_rollover",
			map[string]any{"task_id": next, "target_task_id": fx.createTask(fx.home, "Backlog").ID, "close_as": "rejected"})
		if into.Moved != 1 || into.Other.Title != "Backlog" || fx.getTask(next).Status != reeve.TaskRejected {
			t.Errorf("got %+v", into)
		}
		if none := fx.mustCall(a, "conclude_task_with_rollover",
			map[string]any{"task_id": fx.createTask(fx.home, "Nothing left").ID}); none.Other != nil || none.Moved != 0 {
			t.Errorf("got %+v", none)
		}
		self := fx.createTask(fx.home, "Self")
		fx.wantField(fx.wantError(reeve.Validation, a, "conclude_task_with_rollover",
			map[string]any{"task_id": self.ID, "target_task_id": self.ID}), "/target_task_id")
		fx.wantField(fx.wantError(reeve.Validation, a, "conclude_task_with_rollover",
			map[string]any{"task_id": self.ID, "target_task_id": next}), "/target_task_id")
	})
}

// TestL18_AllOrNothing checks that a call that fails at its second item does not move the first one.
func TestL18_AllOrNothing(t *testing.T) {
	fx := newFixture(t, host.Config{})
	a := fx.createAgent("planner", fx.home)
	source := fx.createTask(fx.home, "Source")
	list := fx.createChecklist(source.ID, "Do", "a", "b")
	to := fx.createChecklist(source.ID, "To")
	// The second item does not exist.
	fx.wantError(reeve.NotFound, a, "move_checklist_items",
		map[string]any{"item_ids": []string{list.Items[0].ID, "item_none"}, "from_checklist_id": list.ID,
			"to_checklist_id": to.ID})
	fx.wantError(reeve.NotFound, a, "move_checklist_items_to_new_task",
		map[string]any{"item_ids": []string{list.Items[0].ID, "item_none"}, "from_checklist_id": list.ID,
			"new_task_title": "x"})
	if v := fx.getTask(source.ID); joinTitles(v.Checklists[0].Items) != "a b" || len(v.Checklists[1].Items) != 0 ||
		len(v.Links) != 0 {
		t.Errorf("got %+v", v)
	}
	if l := fx.mustCall(a, "list_tasks_in_scope", map[string]any{}); len(l.Tasks) != 1 {
		t.Errorf("%d tasks", len(l.Tasks))
	}
}

// TestL18_OrderIsKept moves random items and rolls the task over. No item is lost or duplicated, and items keep their
// order.
func TestL18_OrderIsKept(t *testing.T) {
	fx := newFixture(t, host.Config{})
	a := fx.createAgent("planner", fx.home)
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		task := fx.createTask(fx.home, fmt.Sprintf("Task %d", seed))
		var all []string
		var lists []reeve.Checklist
		for l := range 1 + rng.IntN(3) {
			var items []string
			for i := range rng.IntN(6) {
				items = append(items, fmt.Sprintf("%d.%02d", l, i))
			}
			all = append(all, items...)
			lists = append(lists, fx.createChecklist(task.ID, fmt.Sprintf("List %d", l), items...))
		}
		spare := fx.createChecklist(task.ID, "Spare")
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
				fx.checkItems(l, checked...)
			}
			var ids []string
			for _, i := range pick {
				ids, moved = append(ids, l.Items[i].ID), append(moved, l.Items[i].Title)
			}
			rng.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			if len(ids) > 0 {
				fx.mustCall(a, "move_checklist_items", map[string]any{"item_ids": ids, "from_checklist_id": l.ID,
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
		made := fx.mustCall(a, "conclude_task_with_rollover", map[string]any{"task_id": task.ID})
		left, got := listItemTitles(fx.getTask(task.ID)), []string(nil)
		if made.Other != nil {
			got = listItemTitles(fx.getTask(made.Other.ID))
		}
		if !slices.Equal(got, open) || !slices.Equal(left, done) || len(got)+len(left) != len(all) ||
			made.Moved != len(open) {
			t.Errorf("seed %d: carried %v, want %v; left %v, want %v", seed, got, open, left, done)
		}
	}
}

// listItemTitles returns the titles of all items of a task, checklist by checklist.
func listItemTitles(v reeve.TaskView) (out []string) {
	for _, c := range v.Checklists {
		for _, i := range c.Items {
			out = append(out, i.Title)
		}
	}
	return out
}
