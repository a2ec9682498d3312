package httpapi

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// journalRoutes is the contents page of the journal: what people read and change by hand, by the rules that hold for agents.
func (s *server) journalRoutes(api huma.API) {
	const (
		get, post, put, patch, del = "GET", "POST", "PUT", "PATCH", "DELETE"
		tag, viewer, member        = "journal", reeve.Viewer, reeve.Member
		made, gone                 = 201, 204
	)
	handle(api, route{get, "/api/journal/categories", "listCategories", "List categories", tag, viewer, 0}, s.listCategories)
	handle(api, route{post, "/api/journal/categories", "createCategory", "Make a category", tag, member, made}, s.createCategory)
	handle(api, route{get, "/api/journal/categories/{id}", "getCategory", "Get a category", tag, viewer, 0}, s.getCategory)
	handle(api, route{patch, "/api/journal/categories/{id}", "updateCategory", "Rename a category", tag, member, 0}, s.updateCategory)
	handle(api, route{del, "/api/journal/categories/{id}", "deleteCategory", "Remove a category without tasks", tag, member, gone}, s.deleteCategory)
	handle(api, route{get, "/api/journal/labels", "listLabels", "List labels", tag, viewer, 0}, s.listLabels)
	handle(api, route{post, "/api/journal/labels", "createLabel", "Make a label", tag, member, made}, s.createLabel)
	handle(api, route{patch, "/api/journal/labels/{id}", "updateLabel", "Change a label", tag, member, 0}, s.updateLabel)
	handle(api, route{del, "/api/journal/labels/{id}", "deleteLabel", "Remove a label", tag, member, gone}, s.deleteLabel)

	handle(api, route{get, "/api/journal/tasks", "listTasks", "List tasks, newest first", tag, viewer, 0}, s.listTasks)
	handle(api, route{post, "/api/journal/tasks", "createTask", "Make a task", tag, member, made}, s.createTask)
	handle(api, route{get, "/api/journal/tasks/{id}", "getTask", "Get a task with all it has", tag, viewer, 0}, s.getTask)
	handle(api, route{patch, "/api/journal/tasks/{id}", "updateTask", "Change a task", tag, member, 0}, s.updateTask)
	handle(api, route{del, "/api/journal/tasks/{id}", "deleteTask", "Remove a task", tag, member, gone}, s.deleteTask)
	handle(api, route{post, "/api/journal/tasks/{id}/labels", "assignLabels", "Put labels on a task and take others off", tag, member, 0}, s.assignLabels)
	handle(api, route{get, "/api/journal/task-candidates", "resolveTask", "Find the tasks that words may mean", tag, viewer, 0}, s.resolveTask)
	handle(api, route{post, "/api/journal/follow-ups", "createFollowUp", "Make a task that goes on where another ends", tag, member, made}, s.followUp)
	handle(api, route{post, "/api/journal/rollovers", "concludeTask", "Close a task and move its open items on", tag, member, 0}, s.rollover)
	handle(api, route{get, "/api/journal/effects/{id}", "listEffects", "List what an operation touched", tag, viewer, 0}, s.listEffects)

	handle(api, route{get, "/api/journal/tasks/{id}/checklists", "listChecklists", "List the checklists of a task", tag, viewer, 0}, s.listChecklists)
	handle(api, route{post, "/api/journal/checklists", "createChecklist", "Make a checklist", tag, member, made}, s.createChecklist)
	handle(api, route{get, "/api/journal/checklists/{id}", "getChecklist", "Get a checklist", tag, viewer, 0}, s.getChecklist)
	handle(api, route{patch, "/api/journal/checklists/{id}", "updateChecklist", "Rename a checklist", tag, member, 0}, s.updateChecklist)
	handle(api, route{del, "/api/journal/checklists/{id}", "deleteChecklist", "Remove a checklist", tag, member, gone}, s.deleteChecklist)
	handle(api, route{post, "/api/journal/checklists/{id}/items", "addItems", "Add items", tag, member, made}, s.addItems)
	handle(api, route{patch, "/api/journal/checklists/{id}/items", "updateItems", "Change items", tag, member, 0}, s.updateItems)
	handle(api, route{del, "/api/journal/checklists/{id}/items/{itemId}", "deleteItem", "Remove an item", tag, member, gone}, s.deleteItem)
	handle(api, route{post, "/api/journal/item-moves", "moveItems", "Move items to another checklist", tag, member, 0}, s.moveItems)
	handle(api, route{post, "/api/journal/item-splits", "splitItems", "Move items to a new task", tag, member, made}, s.splitItems)

	handle(api, route{get, "/api/journal/time-entries", "listTimeEntries", "List your time entries, the last begun first", tag, viewer, 0}, s.listTime)
	handle(api, route{post, "/api/journal/time-entries", "createTimeEntry", "Record time you spent", tag, member, made}, s.createTime)
	handle(api, route{get, "/api/journal/time-entries/{id}", "getTimeEntry", "Get a time entry of yours", tag, viewer, 0}, s.getTime)
	handle(api, route{patch, "/api/journal/time-entries/{id}", "updateTimeEntry", "Change a time entry of yours", tag, member, 0}, s.updateTime)
	handle(api, route{del, "/api/journal/time-entries/{id}", "deleteTimeEntry", "Remove a time entry of yours", tag, member, gone}, s.deleteTime)
	handle(api, route{post, "/api/journal/timers", "startTimer", "Start your timer", tag, member, made}, s.startTimer)
	handle(api, route{post, "/api/journal/timers/stop", "stopTimer", "Stop your timer", tag, member, 0}, s.stopTimer)

	handle(api, route{get, "/api/journal/plans/{day}", "getPlan", "Get your plan of a day", tag, viewer, 0}, s.getPlan)
	handle(api, route{post, "/api/journal/plans/{day}/blocks", "changeBlocks", "Change some blocks of your plan", tag, member, 0}, s.changeBlocks)
	handle(api, route{put, "/api/journal/plans/{day}/blocks", "replan", "Replace the blocks of your plan", tag, member, 0}, s.replan)
	handle(api, route{post, "/api/journal/plans/{day}/pins", "pinTasks", "Put tasks on your plan and take others off", tag, member, 0}, s.pinTasks)

	handle(api, route{get, "/api/journal/ratings", "listRatings", "List your ratings, newest first", tag, viewer, 0}, s.listRatings)
	handle(api, route{get, "/api/journal/rating-summary", "summarizeRatings", "Sum up your ratings", tag, viewer, 0}, s.summarizeRatings)
	handle(api, route{put, "/api/journal/ratings", "rate", "Rate something", tag, member, 0}, s.rate)
	handle(api, route{get, "/api/journal/ratings/{kind}/{targetId}", "getRating", "Get your rating of something", tag, viewer, 0}, s.getRating)
	handle(api, route{del, "/api/journal/ratings/{kind}/{targetId}", "deleteRating", "Remove your rating of something", tag, member, gone}, s.deleteRating)
}

// person is the hand of somebody who uses the journal directly: every category is open to them.
func person(who reeve.Principal) store.Hand {
	return store.Hand{Workspace: who.Workspace, User: who.User, All: true}
}

// readJournal reads as a person.
func (s *server) readJournal(ctx context.Context, who reeve.Principal, f func(*store.JournalReader) error) error {
	return s.DB.View(ctx, func(snap *store.Snap) error { return f(snap.Journal(person(who))) })
}

// writeJournal makes a person's change, and tells of it as the gate tells of an agent's.
func (s *server) writeJournal(ctx context.Context, who reeve.Principal, f func(*store.JournalWriter) error) error {
	return s.tell(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, person(who))
		if err != nil {
			return nil, err
		}
		err = f(w)
		return w.Tokens(), err
	})
}

// tell makes a person's change of something shared, and wakes who watches it.
func (s *server) tell(ctx context.Context, who reeve.Principal, change func(*store.Tx) ([]reeve.Token, error)) error {
	told := false
	err := s.DB.Update(ctx, func(tx *store.Tx) error {
		tokens, err := change(tx)
		if told = len(tokens) > 0; err != nil || !told {
			return err
		}
		return tx.Tell(ctx, who.Workspace, tokens, s.Gate.Window)
	})
	if err == nil && told && s.Gate.OnChange != nil {
		s.Gate.OnChange()
	}
	return err
}

// read and wrote answer with what the journal gave.
func read[T any](ctx context.Context, s *server, who reeve.Principal, f func(*store.JournalReader) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, s.readJournal(ctx, who, func(r *store.JournalReader) (err error) {
		out.Body, err = f(r)
		return err
	})
}

func wrote[T any](ctx context.Context, s *server, who reeve.Principal, f func(*store.JournalWriter) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, s.tell(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, person(who))
		if err != nil {
			return nil, err
		}
		if out.Body, err = f(w); err != nil {
			return nil, err
		}
		return w.Tokens(), tx.Answer(ctx, out.Body)
	})
}

// pageEnd is the cursor behind a row.
func pageEnd(ms int64, id string) string { return strconv.FormatInt(ms, 10) + "." + id }
