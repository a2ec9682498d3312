package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// checklistHandlers serves checklists and their items.
type checklistHandlers struct {
	journal journal
}

func (h *checklistHandlers) list(ctx context.Context, who reeve.Principal,
	in *IDPath) (*body[api.ChecklistList], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.ChecklistList, err error) {
		l.Checklists, err = r.Checklists(ctx, in.ID)
		return l, err
	})
}

func (h *checklistHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ChecklistDraft
}) (*body[reeve.Checklist], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Checklist, error) {
		return w.CreateChecklist(ctx, in.Body)
	})
}

func (h *checklistHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Checklist], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.Checklist, error) {
		c, _, err := r.Checklist(ctx, in.ID)
		return c, err
	})
}

func (h *checklistHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ChecklistChange
}) (*body[reeve.Checklist], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Checklist, error) {
		return w.UpdateChecklist(ctx, in.ID, in.Body)
	})
}

func (h *checklistHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.journal.write(ctx, who, func(w *store.JournalWriter) error { return w.DeleteChecklist(ctx, in.ID) })
}

func (h *checklistHandlers) addItems(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ChecklistItemsDraft
}) (*body[reeve.Checklist], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Checklist, error) {
		return w.AddItems(ctx, in.ID, in.Body)
	})
}

func (h *checklistHandlers) updateItems(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.ChecklistItemsChange
}) (*body[reeve.Checklist], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Checklist, error) {
		c, _, err := w.UpdateItems(ctx, in.ID, in.Body)
		return c, err
	})
}

func (h *checklistHandlers) removeItem(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Item string `path:"itemId" maxLength:"128"`
}) (*none, error) {
	return nil, h.journal.write(ctx, who,
		func(w *store.JournalWriter) error { return w.DeleteItem(ctx, in.ID, in.Item) })
}

func (h *checklistHandlers) moveItems(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ChecklistItemMove
}) (*body[api.ChecklistList], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (l api.ChecklistList, err error) {
		l.Checklists, err = w.ApplyMove(ctx, in.Body, "")
		return l, err
	})
}

func (h *checklistHandlers) splitItems(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.ChecklistItemSplit
}) (*body[reeve.TasksChanged], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.TasksChanged, error) {
		return w.ApplySplit(ctx, in.Body, "")
	})
}
