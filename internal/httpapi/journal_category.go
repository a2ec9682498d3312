package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// categoryHandlers serves the categories of the journal.
type categoryHandlers struct {
	journal journal
}

func (h *categoryHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.CategoryList], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.CategoryList, err error) {
		l.Categories, err = r.Categories(ctx)
		return l, err
	})
}

func (h *categoryHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.CategoryRequest
}) (*body[reeve.Category], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Category, error) {
		return w.CreateCategory(ctx, in.Body)
	})
}

func (h *categoryHandlers) get(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Category], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.Category, error) {
		return r.Category(ctx, in.ID)
	})
}

func (h *categoryHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.CategoryRequest
}) (*body[reeve.Category], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Category, error) {
		return w.UpdateCategory(ctx, in.ID, in.Body)
	})
}

func (h *categoryHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.journal.write(ctx, who, func(w *store.JournalWriter) error { return w.DeleteCategory(ctx, in.ID) })
}
