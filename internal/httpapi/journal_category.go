package httpapi

import (
	"context"

	"reeve"
	"reeve/internal/store"
)

func (s *server) listCategories(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.CategoryList], error) {
	return read(ctx, s, who, func(r *store.JournalReader) (l reeve.CategoryList, err error) {
		l.Categories, err = r.Categories(ctx)
		return l, err
	})
}

func (s *server) createCategory(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.CategoryRequest
}) (*body[reeve.Category], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.Category, error) { return w.CreateCategory(ctx, in.Body) })
}

func (s *server) getCategory(ctx context.Context, who reeve.Principal, in *IDPath) (*body[reeve.Category], error) {
	return read(ctx, s, who, func(r *store.JournalReader) (reeve.Category, error) { return r.Category(ctx, in.ID) })
}

func (s *server) updateCategory(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.CategoryRequest
}) (*body[reeve.Category], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.Category, error) { return w.UpdateCategory(ctx, in.ID, in.Body) })
}

func (s *server) deleteCategory(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, s.writeJournal(ctx, who, func(w *store.JournalWriter) error { return w.DeleteCategory(ctx, in.ID) })
}

func (s *server) listLabels(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[reeve.LabelList], error) {
	return read(ctx, s, who, func(r *store.JournalReader) (l reeve.LabelList, err error) {
		l.Labels, err = r.Labels(ctx)
		return l, err
	})
}

func (s *server) createLabel(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.LabelRequest
}) (*body[reeve.Label], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.Label, error) { return w.CreateLabel(ctx, in.Body) })
}

func (s *server) updateLabel(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.LabelChange
}) (*body[reeve.Label], error) {
	return wrote(ctx, s, who, func(w *store.JournalWriter) (reeve.Label, error) { return w.UpdateLabel(ctx, in.ID, in.Body) })
}

func (s *server) deleteLabel(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, s.writeJournal(ctx, who, func(w *store.JournalWriter) error { return w.DeleteLabel(ctx, in.ID) })
}
