package httpapi

import (
	"context"

	"reeve"
	"reeve/api"
	"reeve/internal/store"
)

// TargetPath is the input of routes with the target of a rating in the path.
type TargetPath struct {
	Scoped
	Kind   reeve.RatingTarget `path:"kind" enum:"task,time_entry,plan_block"`
	Target string             `path:"targetId" maxLength:"128"`
}

// RatingQuery selects ratings.
type RatingQuery struct {
	Span
	Category string             `query:"category" maxLength:"64" doc:"Only ratings of targets in this category"`
	Target   reeve.RatingTarget `query:"target_kind" enum:"task,time_entry,plan_block"`
}

func (q RatingQuery) filter() (f store.RatingFilter, err error) {
	f.Category, f.Target = q.Category, q.Target
	f.From, f.To, err = q.times()
	return f, err
}

// ratingHandlers serves the ratings of a user.
type ratingHandlers struct {
	journal journal
}

func (h *ratingHandlers) list(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Page
	RatingQuery
}) (*body[api.RatingList], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if f.Before, err = parseTimeCursor(in.Cursor); err != nil {
		return nil, err
	}
	f.Limit = in.Limit
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (l api.RatingList, err error) {
		l.Ratings, err = r.Ratings(ctx, f)
		if n := len(l.Ratings); n == in.Limit {
			l.Next = formatTimeCursor(reeve.Millis(l.Ratings[n-1].CreatedAt), l.Ratings[n-1].ID)
		}
		return l, err
	})
}

func (h *ratingHandlers) summarize(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	RatingQuery
}) (*body[reeve.RatingSummary], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.RatingSummary, error) {
		return r.SummarizeRatings(ctx, f)
	})
}

func (h *ratingHandlers) rate(ctx context.Context, who reeve.Principal, in *struct {
	Scoped
	Body reeve.RatingDraft
}) (*body[reeve.Rating], error) {
	return writeJournal(ctx, h.journal, who, func(w *store.JournalWriter) (reeve.Rating, error) {
		v, _, err := w.Rate(ctx, in.Body)
		return v, err
	})
}

func (h *ratingHandlers) get(ctx context.Context, who reeve.Principal, in *TargetPath) (*body[reeve.Rating], error) {
	return readJournal(ctx, h.journal, who, func(r *store.JournalReader) (reeve.Rating, error) {
		v, ok, err := r.Rating(ctx, in.Kind, in.Target)
		if err == nil && !ok {
			err = reeve.Errorf(reeve.NotFound, "you have not rated %s", in.Target)
		}
		return v, err
	})
}

func (h *ratingHandlers) remove(ctx context.Context, who reeve.Principal, in *TargetPath) (*none, error) {
	return nil, h.journal.write(ctx, who,
		func(w *store.JournalWriter) error { return w.DeleteRating(ctx, in.Kind, in.Target) })
}
