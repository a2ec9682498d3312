package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// labelHandlers serves the labels of the journal.
type labelHandlers struct {
	journal journal
}

func (h *labelHandlers) list(ctx context.Context, who reeve.Principal, _ *Scoped) (*body[api.LabelList], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.LabelList, err error) {
		l.Labels, err = r.Labels(ctx)
		return l, err
	})
}

func (h *labelHandlers) create(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.LabelRequest
}) (*body[reeve.Label], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Label, error) {
		return w.CreateLabel(ctx, in.Body)
	})
}

func (h *labelHandlers) update(ctx context.Context, who reeve.Principal, in *struct {
	IDPath
	Body reeve.LabelChange
}) (*body[reeve.Label], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Label, error) {
		return w.UpdateLabel(ctx, in.ID, in.Body)
	})
}

func (h *labelHandlers) remove(ctx context.Context, who reeve.Principal, in *IDPath) (*none, error) {
	return nil, h.journal.write(ctx, who, func(w *store.JournalWriter) error { return w.DeleteLabel(ctx, in.ID) })
}
