package store

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"reeve"
)

const (
	ratingColumns = `user_id, target_kind, target_id, scores, note`
	maxCounted    = 10_000 // ratings in one summary
)

func scanRating(r scanner) (v reeve.Rating, err error) {
	defer wrapCorrupt("ratings", &v.ID, &err)
	h, scores := recordScanner{record: &v.Record}, ""
	if err := h.scan(r, &v.UserID, &v.Target, &v.TargetID, &scores, &v.Note); err != nil {
		return v, err
	}
	return v, decodeJSON("scores", scores, &v.Scores)
}

// findRatedCategory returns the category of a rating's target. It fails if the target is not visible.
func (r *JournalReader) findRatedCategory(ctx context.Context, kind reeve.RatingTarget, id string) (string, error) {
	switch kind {
	case reeve.RatedTask:
		t, err := r.Task(ctx, id)
		return t.CategoryID, err
	case reeve.RatedTimeEntry:
		_, t, err := r.TimeEntry(ctx, id)
		return t.CategoryID, err
	case reeve.RatedPlanBlock:
		b, err := r.getOwnBlock(ctx, id)
		return b.CategoryID, err
	}
	return "", reeve.InvalidField("/target_kind", "cannot be rated", "task, time_entry or plan_block")
}

func (r *JournalReader) ratingID(kind reeve.RatingTarget, id string) string {
	return derivedID(reeve.PrefixRating, r.scope.Workspace, r.scope.User, string(kind), id)
}

// Rating returns the user's rating of a target. It returns false if there is none.
func (r *JournalReader) Rating(ctx context.Context, kind reeve.RatingTarget, id string) (reeve.Rating, bool, error) {
	if _, err := r.findRatedCategory(ctx, kind, id); err != nil {
		return reeve.Rating{}, false, err
	}
	return findRecord(ctx, r, scanRating, "ratings", ratingColumns, r.ratingID(kind, id), false)
}

// Rate stores the user's rating of a target. It also returns the rating that it replaces, or nil.
func (w *JournalWriter) Rate(ctx context.Context,
	in reeve.RatingDraft) (v reeve.Rating, before *reeve.Rating, err error) {
	category, err := w.findRatedCategory(ctx, in.Target, in.TargetID)
	if err != nil {
		return v, nil, err
	}
	id := w.ratingID(in.Target, in.TargetID)
	old, ok, err := findRecord(ctx, w.JournalReader, scanRating, "ratings", ratingColumns, id, true)
	if err != nil {
		return v, nil, err
	}
	v = reeve.Rating{Record: old.Record, UserID: w.scope.User, Target: in.Target, TargetID: in.TargetID,
		Scores: in.Scores, Note: in.Note}
	if err := v.Validate(); err != nil {
		return v, nil, err
	}
	if ok && old.DeletedAt == nil {
		if before = &old; maps.Equal(old.Scores, v.Scores) && old.Note == v.Note {
			return old, before, nil
		}
	}
	v.ID, v.DeletedAt = id, nil
	return v, before, w.putRating(ctx, &v, category)
}

func (w *JournalWriter) putRating(ctx context.Context, v *reeve.Rating, category string) error {
	w.emitChange(reeve.KeyRating, category)
	w.emit(reeve.Subtype, "rating."+string(v.Target))
	w.emit(reeve.EntityID, v.TargetID)
	return w.putRecord(ctx, "ratings", ratingColumns, &v.Record, v.UserID, string(v.Target), v.TargetID,
		encodeJSON(v.Scores),
		v.Note)
}

// DeleteRating deletes the user's rating of a target.
func (w *JournalWriter) DeleteRating(ctx context.Context, kind reeve.RatingTarget, id string) error {
	v, ok, err := w.Rating(ctx, kind, id)
	if err != nil || !ok {
		return orNotFound(err, "rating of", id)
	}
	category, err := w.findRatedCategory(ctx, kind, id)
	if err != nil {
		return err
	}
	w.markDeleted(&v.Record)
	return w.putRating(ctx, &v, category)
}

// RatingFilter selects ratings.
type RatingFilter struct {
	Category string
	Target   reeve.RatingTarget
	From     time.Time // created at or after
	To       time.Time // created before
	Before   Cursor
	Limit    int
}

// Ratings returns a page of the user's ratings whose targets are in the scope, newest first. A rating has the current
// category of its target.
func (r *JournalReader) Ratings(ctx context.Context, f RatingFilter) ([]reeve.Rating, error) {
	if f.Category != "" {
		if _, err := r.Category(ctx, f.Category); err != nil {
			return nil, err
		}
	}
	const category = `COALESCE(t.category_id, b.category_id)`
	var c whereClause
	c.add("r.workspace_id = ? AND r.user_id = ? AND r.deleted_at = 0", r.scope.Workspace, r.scope.User)
	r.addScope(&c, category)
	if f.Category != "" {
		c.add(category+" = ?", f.Category)
	}
	if f.Target != "" {
		c.add("r.target_kind = ?", string(f.Target))
	}
	if !f.From.IsZero() {
		c.add("r.created_at >= ?", f.From.UnixMilli())
	}
	if !f.To.IsZero() {
		c.add("r.created_at < ?", f.To.UnixMilli())
	}
	if f.Before.ID != "" {
		c.add("(r.created_at < ? OR (r.created_at = ? AND r.id < ?))", f.Before.At, f.Before.At, f.Before.ID)
	}
	c.args = append(c.args, f.Limit)
	return queryAll(ctx, r.snap, scanRating, `SELECT r.id, r.workspace_id, r.created_at, r.updated_at, r.deleted_at,
		r.node, r.counter, r.clock,
			r.user_id, r.target_kind, r.target_id, r.scores, r.note FROM ratings r
		LEFT JOIN time_entries e ON r.target_kind = 'time_entry' AND e.id = r.target_id
		LEFT JOIN tasks t ON t.id = CASE WHEN r.target_kind = 'task' THEN r.target_id ELSE e.task_id END
		LEFT JOIN plan_blocks b ON r.target_kind = 'plan_block' AND b.id = r.target_id
		WHERE `+c.String()+` ORDER BY r.created_at DESC, r.id DESC LIMIT $`+strconv.Itoa(len(c.args)), c.args...)
}

// SummarizeRatings summarizes the user's ratings whose targets are in the scope.
func (r *JournalReader) SummarizeRatings(ctx context.Context, f RatingFilter) (reeve.RatingSummary, error) {
	f.Limit = maxCounted + 1
	list, err := r.Ratings(ctx, f)
	if err != nil {
		return reeve.RatingSummary{}, err
	}
	out := reeve.RatingSummary{Count: min(len(list), maxCounted), Truncated: len(list) > maxCounted,
		Scores: []reeve.ScoreSummary{}}
	sums := map[string]*reeve.ScoreSummary{}
	for _, v := range list[:out.Count] {
		for name, n := range v.Scores {
			s := sums[name]
			if s == nil {
				s = &reeve.ScoreSummary{Name: name, Min: n, Max: n}
				sums[name] = s
			}
			s.Count, s.Mean, s.Min, s.Max = s.Count+1, s.Mean+float64(n), min(s.Min, n), max(s.Max, n)
		}
	}
	for _, s := range sums {
		s.Mean = math.Round(s.Mean/float64(s.Count)*100) / 100
		out.Scores = append(out.Scores, *s)
	}
	slices.SortFunc(out.Scores, func(a, b reeve.ScoreSummary) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
