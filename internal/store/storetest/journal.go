package storetest

import (
	"context"
	"fmt"
	"testing"

	"reeve"
	"reeve/internal/store"
)

// scopeOf returns the scope of a user who may access all categories.
func scopeOf(user string) store.JournalScope {
	return store.JournalScope{Workspace: ws, User: user, All: true}
}

// ann is the scope of user ann.
var ann = scopeOf("ann")

// updateJournal runs f with a journal writer in a transaction and returns the result of f.
func updateJournal[T any](ctx context.Context, db *store.DB, who store.JournalScope,
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

func createCategory(t *testing.T, db *store.DB, name string) reeve.Category {
	t.Helper()
	return mustGet(updateJournal(t.Context(), db, ann, func(w *store.JournalWriter) (reeve.Category, error) {
		return w.CreateCategory(t.Context(), reeve.CategoryRequest{Name: name})
	}))(t)
}

func createTask(t *testing.T, db *store.DB, who store.JournalScope, category, title string) reeve.Task {
	t.Helper()
	return mustGet(updateJournal(t.Context(), db, who, func(w *store.JournalWriter) (reeve.Task, error) {
		return w.CreateTask(t.Context(), reeve.TaskDraft{CategoryID: category, Title: title})
	}))(t)
}

// journal tests the stamps and links of journal rows, and the rules that involve several rows.
var journal = map[string]func(*testing.T, *store.DB){
	"stamps of transactions": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		stamp := func(fail error) (s reeve.Stamp) {
			_ = db.Update(ctx, func(tx *store.Tx) (err error) {
				if s, err = tx.Stamp(ctx); err != nil {
					t.Error(err)
				}
				again, err := tx.Stamp(ctx)
				if err != nil || again.Counter != s.Counter {
					t.Errorf("a transaction has two counters: %v, then %v, %v", s, again, err)
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
		stamp(context.Canceled) // a rollback does not use up a counter
		equal(t, stamp(nil).Counter, 3, "after a rollback")
		// An update without changes does not use up a counter either.
		c := createCategory(t, db, "Home")
		for range 2 {
			mustGet(updateJournal(ctx, db, ann, func(w *store.JournalWriter) (reeve.Category, error) {
				return w.UpdateCategory(ctx, c.ID, reeve.CategoryRequest{Name: "Home"})
			}))(t)
		}
		equal(t, stamp(nil).Counter, 5, "after a category and two updates without changes")
		counters := make([]int64, 20)
		must(t, firstError(runConcurrently(len(counters), func(i int) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				s, err := tx.Stamp(ctx)
				counters[i] = s.Counter
				return err
			})
		})))
		seen := map[int64]bool{}
		for _, n := range counters {
			if seen[n] || n < 6 || n > 25 {
				t.Fatalf("counters %v", counters)
			}
			seen[n] = true
		}
	},
	"clock of a task": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		task := createTask(t, db, ann, createCategory(t, db, "Home").ID, "Paint")
		title := "Paint twice"
		edit := mustGet(updateJournal(ctx, db, ann, func(w *store.JournalWriter) (store.TaskEdit, error) {
			return w.UpdateTask(ctx, task.ID, reeve.TaskChange{Title: &title}, "")
		}))(t)
		was, is := edit.Before.Stamp, edit.After.Stamp
		if is.Counter != was.Counter+1 || is.Node != was.Node || is.Clock[is.Node] != is.Counter ||
			was.Clock[was.Node] != was.Counter {
			t.Fatalf("from %+v to %+v", was, is)
		}
		read := view(t, db, func(s *store.Snap) (reeve.Task, error) {
			return s.Journal(scopeOf("bob")).Task(ctx, task.ID)
		})
		if read.Title != title || read.Stamp.Counter != is.Counter || read.Stamp.Clock[is.Node] != is.Counter {
			t.Fatalf("got %+v", read)
		}
	},
	// Ids are derived from the operation, so that a repeated operation changes nothing.
	"ids derived from an operation": func(t *testing.T, db *store.DB) {
		category := createCategory(t, db, "Home").ID
		agent := store.JournalScope{Workspace: ws, User: "ann", Agent: "agt_one", Operation: "op_1",
			Categories: []string{category}}
		one := createTask(t, db, agent, category, "Paint")
		two := createTask(t, db, agent, category, "Paint")
		equal(t, one.ID, two.ID, "task of a repeated operation")
		agent.Operation = "op_2"
		if three := createTask(t, db, agent, category, "Paint"); three.ID == one.ID || !reeve.IsID(three.ID) {
			t.Fatalf("another operation created %s", three.ID)
		}
		links := view(t, db, func(s *store.Snap) ([]reeve.Link, error) {
			return s.Journal(ann).Links(t.Context(), "op_1")
		})
		if len(links) != 1 || links[0].ToID != one.ID || links[0].Relation != reeve.ToolEffect {
			t.Fatalf("got %+v", links)
		}
	},
	"concurrent categories with one name": func(t *testing.T, db *store.DB) {
		errs := runConcurrently(8, func(i int) error {
			_, err := updateJournal(t.Context(), db, ann, func(w *store.JournalWriter) (reeve.Category, error) {
				return w.CreateCategory(t.Context(), reeve.CategoryRequest{Name: []string{"Gym", " gym "}[i%2]})
			})
			return err
		})
		wantOneSuccess(t, errs, reeve.AlreadyExists)
	},
	"concurrent timer starts": func(t *testing.T, db *store.DB) {
		task := createTask(t, db, ann, createCategory(t, db, "Home").ID, "Paint")
		errs := runConcurrently(8, func(int) error {
			_, err := updateJournal(t.Context(), db, ann, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
				return w.StartTimer(t.Context(), reeve.TimerStart{TaskID: task.ID})
			})
			return err
		})
		wantOneSuccess(t, errs, reeve.Conflict)
	},
	"overlapping time entries": func(t *testing.T, db *store.DB) {
		task := createTask(t, db, ann, createCategory(t, db, "Home").ID, "Paint")
		errs := runConcurrently(8, func(i int) error {
			_, err := updateJournal(t.Context(), db, ann, func(w *store.JournalWriter) (reeve.TimeEntry, error) {
				return w.CreateTimeEntry(t.Context(),
					reeve.TimeDraft{TaskID: task.ID, StartedAt: fmt.Sprintf("2026-02-17T10:%02d:00Z", i),
						EndedAt: "2026-02-17T11:00:00Z"})
			})
			return err
		})
		wantOneSuccess(t, errs, reeve.Conflict)
	},
	// Tasks created in the same millisecond are on exactly one page.
	"pages of tasks": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		category := createCategory(t, db, "Home").ID
		mustGet(updateJournal(ctx, db, ann, func(w *store.JournalWriter) (bool, error) {
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
				return s.Journal(ann).
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
		equal(t, len(seen), 25, "tasks on all pages")
		none := view(t, db, func(s *store.Snap) ([]reeve.Task, error) {
			return s.Journal(store.JournalScope{Workspace: ws, Categories: nil}).Tasks(ctx, store.TaskFilter{Limit: 10})
		})
		equal(t, len(none), 0, "tasks in a scope without categories")
	},
	"entities": func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		category := createCategory(t, db, "Home").ID
		task := createTask(t, db, ann, category, "Paint")
		list := mustGet(updateJournal(ctx, db, ann, func(w *store.JournalWriter) (reeve.Checklist, error) {
			return w.CreateChecklist(ctx, reeve.ChecklistDraft{TaskID: task.ID, Title: "Steps", Items: []string{"one"}})
		}))(t)
		for id, kind := range map[string]string{category: "category", task.ID: "task", list.ID: "checklist",
			list.Items[0].ID: "checklist_item"} {
			got := view(t, db, func(s *store.Snap) (map[string]any, error) {
				m, ok, err := s.Journal(store.JournalScope{Workspace: ws, All: true}).Entity(ctx, id)
				if err == nil && !ok {
					t.Errorf("%s was not found", id)
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
				t.Error("found a task of another workspace")
			}
			return err
		}))
	},
}
