package httpapi

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"reeve"
	"reeve/internal/store"
)

// registerJournalRoutes is the contents page of the journal: what people read and change by hand, by the rules that hold for
// agents.
func registerJournalRoutes(router huma.API, s *services) {
	const (
		get, post, put, patch, del = "GET", "POST", "PUT", "PATCH", "DELETE"
		tag, viewer, member        = "journal", reeve.Viewer, reeve.Member
		made, gone                 = 201, 204
	)
	j := journal{db: s.DB, announcer: s.announcer}
	categories, labels := &categoryHandlers{j}, &labelHandlers{j}
	handle(router, route{get, "/api/journal/categories", "listCategories", "List categories", tag, viewer, 0},
		categories.list)
	handle(router, route{post, "/api/journal/categories", "createCategory", "Make a category", tag, member, made},
		categories.create)
	handle(router, route{get, "/api/journal/categories/{id}", "getCategory", "Get a category", tag, viewer, 0},
		categories.get)
	handle(router, route{patch, "/api/journal/categories/{id}", "updateCategory", "Rename a category", tag, member, 0},
		categories.update)
	handle(router, route{del, "/api/journal/categories/{id}", "deleteCategory", "Remove a category without tasks", tag,
		member, gone}, categories.remove)
	handle(router, route{get, "/api/journal/labels", "listLabels", "List labels", tag, viewer, 0}, labels.list)
	handle(router, route{post, "/api/journal/labels", "createLabel", "Make a label", tag, member, made}, labels.create)
	handle(router, route{patch, "/api/journal/labels/{id}", "updateLabel", "Change a label", tag, member, 0},
		labels.update)
	handle(router, route{del, "/api/journal/labels/{id}", "deleteLabel", "Remove a label", tag, member, gone},
		labels.remove)

	tasks := &taskHandlers{j}
	handle(router, route{get, "/api/journal/tasks", "listTasks", "List tasks, newest first", tag, viewer, 0},
		tasks.list)
	handle(router, route{post, "/api/journal/tasks", "createTask", "Make a task", tag, member, made}, tasks.create)
	handle(router, route{get, "/api/journal/tasks/{id}", "getTask", "Get a task with all it has", tag, viewer, 0},
		tasks.get)
	handle(router, route{patch, "/api/journal/tasks/{id}", "updateTask", "Change a task", tag, member, 0}, tasks.update)
	handle(router, route{del, "/api/journal/tasks/{id}", "deleteTask", "Remove a task", tag, member, gone},
		tasks.remove)
	handle(router, route{post, "/api/journal/tasks/{id}/labels", "assignLabels",
		"Put labels on a task and take others off", tag, member, 0}, tasks.assignLabels)
	handle(router, route{get, "/api/journal/task-candidates", "resolveTask", "Find the tasks that words may mean", tag,
		viewer, 0}, tasks.resolve)
	handle(router, route{post, "/api/journal/follow-ups", "createFollowUp",
		"Make a task that goes on where another ends", tag, member, made}, tasks.followUp)
	handle(router, route{post, "/api/journal/rollovers", "concludeTask", "Close a task and move its open items on", tag,
		member, 0}, tasks.rollover)
	handle(router, route{get, "/api/journal/effects/{id}", "listEffects", "List what an operation touched", tag, viewer,
		0}, tasks.listEffects)

	checklists := &checklistHandlers{j}
	handle(router, route{get, "/api/journal/tasks/{id}/checklists", "listChecklists", "List the checklists of a task",
		tag, viewer, 0}, checklists.list)
	handle(router, route{post, "/api/journal/checklists", "createChecklist", "Make a checklist", tag, member, made},
		checklists.create)
	handle(router, route{get, "/api/journal/checklists/{id}", "getChecklist", "Get a checklist", tag, viewer, 0},
		checklists.get)
	handle(router, route{patch, "/api/journal/checklists/{id}", "updateChecklist", "Rename a checklist", tag, member,
		0}, checklists.update)
	handle(router, route{del, "/api/journal/checklists/{id}", "deleteChecklist", "Remove a checklist", tag, member,
		gone}, checklists.remove)
	handle(router, route{post, "/api/journal/checklists/{id}/items", "addItems", "Add items", tag, member, made},
		checklists.addItems)
	handle(router, route{patch, "/api/journal/checklists/{id}/items", "updateItems", "Change items", tag, member, 0},
		checklists.updateItems)
	handle(router, route{del, "/api/journal/checklists/{id}/items/{itemId}", "deleteItem", "Remove an item", tag,
		member, gone}, checklists.removeItem)
	handle(router, route{post, "/api/journal/item-moves", "moveItems", "Move items to another checklist", tag, member,
		0}, checklists.moveItems)
	handle(router, route{post, "/api/journal/item-splits", "splitItems", "Move items to a new task", tag, member, made},
		checklists.splitItems)

	timeEntries := &timeEntryHandlers{j}
	handle(router, route{get, "/api/journal/time-entries", "listTimeEntries",
		"List your time entries, the last begun first", tag, viewer, 0}, timeEntries.list)
	handle(router, route{post, "/api/journal/time-entries", "createTimeEntry", "Record time you spent", tag, member,
		made}, timeEntries.create)
	handle(router, route{get, "/api/journal/time-entries/{id}", "getTimeEntry", "Get a time entry of yours", tag,
		viewer, 0}, timeEntries.get)
	handle(router, route{patch, "/api/journal/time-entries/{id}", "updateTimeEntry", "Change a time entry of yours",
		tag, member, 0}, timeEntries.update)
	handle(router, route{del, "/api/journal/time-entries/{id}", "deleteTimeEntry", "Remove a time entry of yours", tag,
		member, gone}, timeEntries.remove)
	handle(router, route{post, "/api/journal/timers", "startTimer", "Start your timer", tag, member, made},
		timeEntries.startTimer)
	handle(router, route{post, "/api/journal/timers/stop", "stopTimer", "Stop your timer", tag, member, 0},
		timeEntries.stopTimer)

	dayPlans := &dayPlanHandlers{j}
	handle(router, route{get, "/api/journal/plans/{day}", "getPlan", "Get your plan of a day", tag, viewer, 0},
		dayPlans.get)
	handle(router, route{post, "/api/journal/plans/{day}/blocks", "changeBlocks", "Change some blocks of your plan",
		tag, member, 0}, dayPlans.changeBlocks)
	handle(router, route{put, "/api/journal/plans/{day}/blocks", "replan", "Replace the blocks of your plan", tag,
		member, 0}, dayPlans.replan)
	handle(router, route{post, "/api/journal/plans/{day}/pins", "pinTasks",
		"Put tasks on your plan and take others off", tag, member, 0}, dayPlans.pinTasks)

	ratings := &ratingHandlers{j}
	handle(router, route{get, "/api/journal/ratings", "listRatings", "List your ratings, newest first", tag, viewer, 0},
		ratings.list)
	handle(router, route{get, "/api/journal/rating-summary", "summarizeRatings", "Sum up your ratings", tag, viewer, 0},
		ratings.summarize)
	handle(router, route{put, "/api/journal/ratings", "rate", "Rate something", tag, member, 0}, ratings.rate)
	handle(router, route{get, "/api/journal/ratings/{kind}/{targetId}", "getRating", "Get your rating of something",
		tag, viewer, 0}, ratings.get)
	handle(router, route{del, "/api/journal/ratings/{kind}/{targetId}", "deleteRating",
		"Remove your rating of something", tag, member, gone}, ratings.remove)
}

// personScope is the hand of somebody who uses the journal directly: every category is open to them.
func personScope(who reeve.Principal) store.JournalScope {
	return store.JournalScope{Workspace: who.Workspace, User: who.User, All: true}
}

// journal reads and writes the journal for a person.
type journal struct {
	db        *store.DB
	announcer changeAnnouncer
}

// read reads the journal as a person.
func (j journal) read(ctx context.Context, who reeve.Principal, f func(*store.JournalReader) error) error {
	return j.db.View(ctx, func(snap *store.Snap) error { return f(snap.Journal(personScope(who))) })
}

// write makes a person's change, and announces it as the gate announces an agent's.
func (j journal) write(ctx context.Context, who reeve.Principal, f func(*store.JournalWriter) error) error {
	return j.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, personScope(who))
		if err != nil {
			return nil, err
		}
		err = f(w)
		return w.Tokens(), err
	})
}

// readJournal answers with what f reads from the journal.
func readJournal[T any](ctx context.Context, j journal, who reeve.Principal,
	f func(*store.JournalReader) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, j.read(ctx, who, func(r *store.JournalReader) (err error) {
		out.Body, err = f(r)
		return err
	})
}

// writeJournal answers with what f writes to the journal.
func writeJournal[T any](ctx context.Context, j journal, who reeve.Principal,
	f func(*store.JournalWriter) (T, error)) (*body[T], error) {
	out := &body[T]{}
	return out, j.announcer.update(ctx, who, func(tx *store.Tx) ([]reeve.Token, error) {
		w, err := tx.JournalWriter(ctx, personScope(who))
		if err != nil {
			return nil, err
		}
		if out.Body, err = f(w); err != nil {
			return nil, err
		}
		return w.Tokens(), tx.Ledger().SaveResponse(ctx, out.Body)
	})
}
