package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// registerJournalRoutes registers the routes through which people read and change the journal. The same rules hold for
// people and for agents.
func registerJournalRoutes(router huma.API, s *services) {
	const (
		get, post, put, patch, del = "GET", "POST", "PUT", "PATCH", "DELETE"
		tag, viewer, member        = "journal", reeve.Viewer, reeve.Member
		created, noContent         = http.StatusCreated, http.StatusNoContent
	)
	j := journal{db: s.DB, announcer: s.announcer}
	categories, labels := &categoryHandlers{j}, &labelHandlers{j}
	handle(router, route{get, "/api/journal/categories", "listCategories", "List categories", tag, viewer, 0},
		categories.list)
	handle(router, route{post, "/api/journal/categories", "createCategory", "Create a category", tag, member, created},
		categories.create)
	handle(router, route{get, "/api/journal/categories/{id}", "getCategory", "Get a category", tag, viewer, 0},
		categories.get)
	handle(router, route{patch, "/api/journal/categories/{id}", "updateCategory", "Rename a category", tag, member, 0},
		categories.update)
	handle(router, route{del, "/api/journal/categories/{id}", "deleteCategory", "Delete a category that has no tasks",
		tag,
		member, noContent}, categories.remove)
	handle(router, route{get, "/api/journal/labels", "listLabels", "List labels", tag, viewer, 0}, labels.list)
	handle(router, route{post, "/api/journal/labels", "createLabel", "Create a label", tag, member, created},
		labels.create)
	handle(router, route{patch, "/api/journal/labels/{id}", "updateLabel", "Update a label", tag, member, 0},
		labels.update)
	handle(router, route{del, "/api/journal/labels/{id}", "deleteLabel", "Delete a label", tag, member, noContent},
		labels.remove)

	tasks := &taskHandlers{j}
	handle(router, route{get, "/api/journal/tasks", "listTasks", "List tasks, newest first", tag, viewer, 0},
		tasks.list)
	handle(router, route{post, "/api/journal/tasks", "createTask", "Create a task", tag, member, created}, tasks.create)
	handle(router, route{get, "/api/journal/tasks/{id}", "getTask", "Get a task with its checklists and links", tag,
		viewer, 0},
		tasks.get)
	handle(router, route{patch, "/api/journal/tasks/{id}", "updateTask", "Update a task", tag, member, 0}, tasks.update)
	handle(router, route{del, "/api/journal/tasks/{id}", "deleteTask", "Delete a task", tag, member, noContent},
		tasks.remove)
	handle(router, route{post, "/api/journal/tasks/{id}/labels", "updateTaskLabels",
		"Add and remove labels of a task", tag, member, 0}, tasks.assignLabels)
	handle(router, route{get, "/api/journal/task-candidates", "findTaskCandidates",
		"Find tasks by words of their title", tag,
		viewer, 0}, tasks.resolve)
	handle(router, route{post, "/api/journal/follow-ups", "createFollowUp",
		"Create a follow-up of a task", tag, member, created}, tasks.followUp)
	handle(router, route{post, "/api/journal/rollovers", "concludeTask", "Close a task and move its open items", tag,
		member, 0}, tasks.rollover)
	handle(router, route{get, "/api/journal/effects/{id}", "listJournalEffects",
		"List the journal entries that an operation changed", tag, viewer,
		0}, tasks.listEffects)

	checklists := &checklistHandlers{j}
	handle(router, route{get, "/api/journal/tasks/{id}/checklists", "listChecklists", "List the checklists of a task",
		tag, viewer, 0}, checklists.list)
	handle(router, route{post, "/api/journal/checklists", "createChecklist", "Create a checklist", tag, member,
		created},
		checklists.create)
	handle(router, route{get, "/api/journal/checklists/{id}", "getChecklist", "Get a checklist", tag, viewer, 0},
		checklists.get)
	handle(router, route{patch, "/api/journal/checklists/{id}", "updateChecklist", "Rename a checklist", tag, member,
		0}, checklists.update)
	handle(router, route{del, "/api/journal/checklists/{id}", "deleteChecklist", "Delete a checklist", tag, member,
		noContent}, checklists.remove)
	handle(router, route{post, "/api/journal/checklists/{id}/items", "addChecklistItems", "Add items to a checklist",
		tag,
		member, created},
		checklists.addItems)
	handle(router, route{patch, "/api/journal/checklists/{id}/items", "updateChecklistItems",
		"Update items of a checklist", tag,
		member, 0},
		checklists.updateItems)
	handle(router, route{del, "/api/journal/checklists/{id}/items/{itemId}", "deleteChecklistItem",
		"Delete an item of a checklist", tag,
		member, noContent}, checklists.removeItem)
	handle(router, route{post, "/api/journal/item-moves", "moveChecklistItems", "Move items to another checklist", tag,
		member,
		0}, checklists.moveItems)
	handle(router, route{post, "/api/journal/item-splits", "splitChecklistItems", "Move items to a new task", tag,
		member,
		created},
		checklists.splitItems)

	timeEntries := &timeEntryHandlers{j}
	handle(router, route{get, "/api/journal/time-entries", "listTimeEntries",
		"List your time entries, latest start first", tag, viewer, 0}, timeEntries.list)
	handle(router, route{post, "/api/journal/time-entries", "createTimeEntry", "Create a time entry", tag, member,
		created}, timeEntries.create)
	handle(router, route{get, "/api/journal/time-entries/{id}", "getTimeEntry", "Get one of your time entries", tag,
		viewer, 0}, timeEntries.get)
	handle(router, route{patch, "/api/journal/time-entries/{id}", "updateTimeEntry", "Update one of your time entries",
		tag, member, 0}, timeEntries.update)
	handle(router, route{del, "/api/journal/time-entries/{id}", "deleteTimeEntry", "Delete one of your time entries",
		tag,
		member, noContent}, timeEntries.remove)
	handle(router, route{post, "/api/journal/timers", "startTimer", "Start your timer", tag, member, created},
		timeEntries.startTimer)
	handle(router, route{post, "/api/journal/timers/stop", "stopTimer", "Stop your timer", tag, member, 0},
		timeEntries.stopTimer)

	dayPlans := &dayPlanHandlers{j}
	handle(router, route{get, "/api/journal/plans/{day}", "getDayPlan", "Get your plan for a day", tag, viewer, 0},
		dayPlans.get)
	handle(router, route{post, "/api/journal/plans/{day}/blocks", "updatePlanBlocks",
		"Add, update and delete blocks of your plan",
		tag, member, 0}, dayPlans.changeBlocks)
	handle(router, route{put, "/api/journal/plans/{day}/blocks", "replacePlanBlocks", "Replace the blocks of your plan",
		tag,
		member, 0}, dayPlans.replan)
	handle(router, route{post, "/api/journal/plans/{day}/pins", "updatePlanPins",
		"Pin and unpin tasks on your plan", tag, member, 0}, dayPlans.pinTasks)

	ratings := &ratingHandlers{j}
	handle(router, route{get, "/api/journal/ratings", "listRatings", "List your ratings, newest first", tag, viewer, 0},
		ratings.list)
	handle(router, route{get, "/api/journal/rating-summary", "summarizeRatings", "Summarize your ratings", tag, viewer,
		0},
		ratings.summarize)
	handle(router, route{put, "/api/journal/ratings", "putRating", "Create or replace a rating", tag, member, 0},
		ratings.rate)
	handle(router, route{get, "/api/journal/ratings/{kind}/{targetId}", "getRating", "Get your rating of a target",
		tag, viewer, 0}, ratings.get)
	handle(router, route{del, "/api/journal/ratings/{kind}/{targetId}", "deleteRating",
		"Delete your rating of a target", tag, member, noContent}, ratings.remove)
}

// personScope returns the journal scope of a person, who may use every category.
func personScope(who reeve.Principal) store.JournalScope {
	return store.JournalScope{Workspace: who.Workspace, User: who.User, All: true}
}

// journal reads and writes the journal on behalf of a person.
type journal struct {
	db        *store.DB
	announcer changeAnnouncer
}

// read calls f with a reader of the journal.
func (j journal) read(ctx context.Context, who reeve.Principal, f func(*store.JournalReader) error) error {
	return j.db.View(ctx, func(snap *store.Snap) error { return f(snap.Journal(personScope(who))) })
}

// write calls f with a writer of the journal, commits, and wakes the agents that subscribe to the changes.
func (j journal) write(ctx context.Context, who reeve.Principal, f func(*store.JournalWriter) error) error {
	return j.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, personScope(who))
		if err != nil {
			return nil, err
		}
		if err = f(w); err == nil {
			err = w.Finish(ctx)
		}
		return w.Tokens(), err
	})
}

// readJournal returns the result of f as a response body.
func readJournal[T any](ctx context.Context, j journal, who reeve.Principal,
	f func(*store.JournalReader) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, j.read(ctx, who, func(r *store.JournalReader) (err error) {
		out.Body, err = f(r)
		return err
	})
}

// writeJournal is like journal.write, and returns the result of f as a response body. The result is also stored for a
// repeated Idempotency-Key.
func writeJournal[T any](ctx context.Context, j journal, who reeve.Principal,
	f func(*store.JournalWriter) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, j.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, personScope(who))
		if err != nil {
			return nil, err
		}
		if out.Body, err = f(w); err == nil {
			err = w.Finish(ctx)
		}
		if err != nil {
			return nil, err
		}
		return w.Tokens(), tx.Ledger().SaveResponse(ctx, out.Body)
	})
}
