package storetest

import (
	"context"
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

func by(user string) store.JournalScope {
	return store.JournalScope{Workspace: ws, User: user, All: true}
}

// write makes a change of the journal.
func write[T any](ctx context.Context, db *store.DB, who store.JournalScope,
	f func(*store.JournalWriter) (T, error)) (v T, err error) {
	err = db.Update(ctx, func(tx *store.Tx) error {
		w, err := tx.JournalWriter(ctx, who)
		if err != nil {
			return err
		}
		if v, err = f(w); err != nil {
			return err
		}
		return w.Finish(ctx)
	})
	return v, err
}

func newCategory(t *testing.T, db *store.DB, name string) reeve.Category {
	t.Helper()
	return get(write(t.Context(), db, by("ann"), func(w *store.JournalWriter) (reeve.Category, error) {
		return w.CreateCategory(t.Context(), reeve.CategoryRequest{Name: name})
	}))(t)
}

func newTask(t *testing.T, db *store.DB, who store.JournalScope, category, title string) reeve.Task {
	t.Helper()
	return get(write(t.Context(), db, who, func(w *store.JournalWriter) (reeve.Task, error) {
		return w.CreateTask(t.Context(), reeve.TaskDraft{CategoryID: category, Title: title})
	}))(t)
}

// journal tests what every row of the journal has, and the rules that span rows.
var journal = map[string]func(*testing.T, *store.DB){
	"stamp": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		stamp := func(fail error) (s reeve.Stamp) {
			_ = db.Update(ctx, func(tx *store.Tx) (err error) {
				if s, err = tx.Stamp(ctx); err != nil {
					t.Error(err)
				}
				again, err := tx.Stamp(ctx)
				if err != nil || again.Counter != s.Counter {
					t.Errorf("a second number in one transaction: %v, then %v, %v", s, again, err)
				}
				return fail
			})
			return s
		}
		first, second := stamp(nil), stamp(nil)
		if !reeve.IsID(first.Node) || first.Node != second.Node || first.Counter != 1 || second.Counter != 2 ||
			second.Clock[second.Node] != 2 {
			t.Fatalf("got %+v, then %+v", first, second)
		}
		stamp(context.Canceled) // what is rolled back takes no number
		equal(t, stamp(nil).Counter, 3, "after a rollback")
		// A change that changes nothing takes none either.
		c := newCategory(t, db, "Home")
		for range 2 {
			get(write(ctx, db, by("ann"), func(w *store.JournalWriter) (reeve.Category, error) {
				return w.UpdateCategory(ctx, c.ID, reeve.CategoryRequest{Name: "Home"})
			}))(t)
		}
		equal(t, stamp(nil).Counter, 5, "after a category and two changes of nothing")
		numbers := make([]int64, 20)
		must(t, firstOf(race(len(numbers), func(i int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				s, err := tx.Stamp(ctx)
				numbers[i] = s.Counter
				return err
			})
		})))
		seen := map[int64]bool{}
		for _, n := range numbers {
			if seen[n] || n < 6 || n > 25 {
				t.Fatalf("numbers %v", numbers)
			}
			seen[n] = true
		}
	},
	"clock": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		task := newTask(t, db, by("ann"), newCategory(t, db, "Home").ID, "Paint")
		title := "Paint twice"
		edit := get(write(ctx, db, by("ann"), func(w *store.JournalWriter) (store.TaskEdit, error) {
			return w.UpdateTask(ctx, task.ID, reeve.TaskChange{Title: &title}, "")
		}))(t)
		was, is := edit.Before.Stamp, edit.After.Stamp
		if is.Counter != was.Counter+1 || is.Node != was.Node || is.Clock[is.Node] != is.Counter ||
			was.Clock[was.Node] != was.Counter {
			t.Fatalf("from %+v to %+v", was, is)
		}
		read := view(t, db, func(s *store.Snap) (reeve.Task, error) { return s.Journal(by("bob")).Task(ctx, task.ID) })
		if read.Title != title || read.Stamp.Counter != is.Counter || read.Stamp.Clock[is.Node] != is.Counter {
			t.Fatalf("got %+v", read)
		}
	},
	"operation": func(t *testing.T, db *store.DB) { // the same operation makes the same things, wherever it is made
		category := newCategory(t, db, "Home").ID
		agent := store.JournalScope{Workspace: ws, User: "ann", Agent: "agt_one", Operation: "op_1",
			Categories: []string{category}}
		one := newTask(t, db, agent, category, "Paint")
		two := newTask(t, db, agent, category, "Paint")
		equal(t, one.ID, two.ID, "the task of an operation")
		agent.Operation = "op_2"
		if three := newTask(t, db, agent, category, "Paint"); three.ID == one.ID || !reeve.IsID(three.ID) {
			t.Fatalf("another operation made %s", three.ID)
		}
		links := view(t, db, func(s *store.Snap) ([]reeve.Link, error) {
			return s.Journal(by("ann")).
				Links(t.Context(), "op_1")
		})
		if len(links) != 1 || links[0].ToID != one.ID || links[0].Relation != reeve.ToolEffect {
			t.Fatalf("got %+v", links)
		}
	},
	"names": func(t *testing.T, db *store.DB) {
		errs := race(8, func(i int) error {
			_, err := write(t.Context(), db, by("ann"), func(w *store.JournalWriter) (reeve.Category, error) {
				return w.CreateCategory(t.Context(), reeve.CategoryRequest{Name: []string{"Gym", " gym "}[i%2]})
			})
			return err
		})
		exactlyOne(t, errs, reeve.AlreadyExists)
	},
	"one timer": func(t *testing.T, db *store.DB) {
		task := newTask(t, db, by("ann"), newCategory(t, db, "Home").ID, "Paint")
		errs := race(8, func(int) error {
			_, err := write(t.Context(), db, by("ann"), func(w *store.JournalWriter) (reeve.TimeEntry, error) {
				return w.StartTimer(t.Context(), reeve.TimerStart{TaskID: task.ID})
			})
			return err
		})
		exactlyOne(t, errs, reeve.Conflict)
	},
	"overlap": func(t *testing.T, db *store.DB) {
		task := newTask(t, db, by("ann"), newCategory(t, db, "Home").ID, "Paint")
		errs := race(8, func(i int) error {
			_, err := write(t.Context(), db, by("ann"), func(w *store.JournalWriter) (reeve.TimeEntry, error) {
				return w.CreateTimeEntry(t.Context(),
					reeve.TimeDraft{TaskID: task.ID, StartedAt: fmt.Sprintf("2026-02-17T10:%02d:00Z", i),
						EndedAt: "2026-02-17T11:00:00Z"})
			})
			return err
		})
		exactlyOne(t, errs, reeve.Conflict)
	},
	"many": func(t *testing.T, db *store.DB) { // pages are whole and in order, whatever is made in one millisecond
		ctx := t.Context()
		category := newCategory(t, db, "Home").ID
		get(write(ctx, db, by("ann"), func(w *store.JournalWriter) (bool, error) {
			for i := range 25 {
				if _, err := w.CreateTask(ctx, reeve.TaskDraft{CategoryID: category,
					Title: fmt.Sprintf("Task %02d of 100%%", i)}); err != nil {
					return false, err
				}
			}
			return true, nil
		}))(t)
		seen := map[string]bool{}
		var cursor store.Cursor
		for {
			page := view(t, db, func(s *store.Snap) ([]reeve.Task, error) {
				return s.Journal(by("ann")).
					Tasks(ctx, store.TaskFilter{Category: category, Text: "OF 100%", Before: cursor, Limit: 7})
			})
			for _, v := range page {
				seen[v.ID] = true
				cursor = store.Cursor{At: reeve.Millis(v.CreatedAt), ID: v.ID}
			}
			if len(page) < 7 {
				break
			}
		}
		equal(t, len(seen), 25, "tasks on pages")
		none := view(t, db, func(s *store.Snap) ([]reeve.Task, error) {
			return s.Journal(store.JournalScope{Workspace: ws, Categories: nil}).Tasks(ctx, store.TaskFilter{Limit: 10})
		})
		equal(t, len(none), 0, "tasks for a hand without categories")
	},
	"entity": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		category := newCategory(t, db, "Home").ID
		task := newTask(t, db, by("ann"), category, "Paint")
		list := get(write(ctx, db, by("ann"), func(w *store.JournalWriter) (reeve.Checklist, error) {
			return w.CreateChecklist(ctx, reeve.ChecklistDraft{TaskID: task.ID, Title: "Steps", Items: []string{"one"}})
		}))(t)
		for id, kind := range map[string]string{category: "category", task.ID: "task", list.ID: "checklist",
			list.Items[0].ID: "checklist_item"} {
			got := view(t, db, func(s *store.Snap) (map[string]any, error) {
				m, ok, err := s.Journal(store.JournalScope{Workspace: ws, All: true}).Entity(ctx, id)
				if err == nil && !ok {
					t.Errorf("%s is not there", id)
				}
				return m, err
			})
			if got["kind"] != kind || got["category_id"] != category || got["id"] != id {
				t.Errorf("got %v", got)
			}
		}
		must(t, db.View(ctx, func(s *store.Snap) error {
			_, ok, err := s.Journal(store.JournalScope{Workspace: "ws_two", All: true}).Entity(ctx, task.ID)
			if ok {
				t.Error("another workspace's task is there")
			}
			return err
		}))
	},
}
