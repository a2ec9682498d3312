package journal

import (
	"context"
	"maps"

	"reeve"
	"reeve/internal/store"
)

type summaryArgs struct {
	CategoryID string             `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"One category only. Default: all that you may access"`
	Target     reeve.RatingTarget `json:"target_kind,omitempty" enum:"task,time_entry,plan_block"`
	From       string             `json:"from,omitempty" maxLength:"40" doc:"Rated at this time or later, RFC 3339 with an offset"`
	To         string             `json:"to,omitempty" maxLength:"40" doc:"Rated before this time, RFC 3339 with an offset"`
}

type targetArgs struct {
	Target   reeve.RatingTarget `json:"target_kind" enum:"task,time_entry,plan_block"`
	TargetID string             `json:"target_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
}

type rateArgs struct {
	reeve.RatingDraft
	reeve.UndoGuard
}

type ratingResult struct {
	Rating *reeve.Rating `json:"rating" doc:"Null if the user has not rated it"`
}

func (p *Pack) ratingTools() []reeve.Tool {
	return []reeve.Tool{
		newReadTool(p, reeve.Tool{ID: "get_ratings_summary", Name: "Get Ratings Summary", Capability: RatingRead,
			Description: "Summarize the user's ratings of tasks, time entries and plan blocks. Returns count, mean, " +
				"lowest " +
				"and highest for each score."},
			func(ctx context.Context, r *store.JournalReader, in summaryArgs) error {
				return r.RecordCategories(ctx, in.CategoryID)
			},
			func(ctx context.Context, r *store.JournalReader, in summaryArgs) (out reeve.RatingSummary, err error) {
				f := store.RatingFilter{Category: in.CategoryID, Target: in.Target}
				if in.From != "" {
					if f.From, err = reeve.ParseTimeWithOffset("/from", in.From); err != nil {
						return out, err
					}
				}
				if in.To != "" {
					if f.To, err = reeve.ParseTimeWithOffset("/to", in.To); err != nil {
						return out, err
					}
				}
				return r.SummarizeRatings(ctx, f)
			}),
		newReadTool(p, reeve.Tool{ID: "get_rating_for_target", Name: "Get Rating", Capability: RatingRead,
			Description: "Get the user's rating of a task, a time entry or a plan block."},
			func(ctx context.Context, r *store.JournalReader, in targetArgs) error {
				return r.RecordTargetCategory(ctx, in.Target, in.TargetID)
			},
			func(ctx context.Context, r *store.JournalReader, in targetArgs) (out ratingResult, err error) {
				v, ok, err := r.Rating(ctx, in.Target, in.TargetID)
				if ok {
					out.Rating = &v
				}
				return out, err
			}),
		newWriteTool(p, reeve.Tool{ID: "create_or_update_rating", Name: "Rate", Capability: RatingWrite,
			Undoable: true, Identity: []string{"target_kind", "target_id"}, Risk: reeve.LowRisk,
			Description: "Record the user's rating of a task, a time entry or a plan block. Replaces an earlier " +
				"rating."},
			func(ctx context.Context, r *store.JournalReader, in rateArgs) error {
				return r.RecordTargetCategory(ctx, in.Target, in.TargetID)
			},
			func(ctx context.Context, w *store.JournalWriter, in rateArgs, inv *reeve.Invocation) (writeResult, error) {
				v, before, err := w.Rate(ctx, in.RatingDraft)
				switch {
				case err != nil:
				case before == nil:
					err = in.Check(nil) // the rating was deleted meanwhile
				default:
					err = in.Check(draftOf(*before))
				}
				if err == nil && before != nil && (before.Note != v.Note || !maps.Equal(before.Scores, v.Scores)) {
					inv.UndoWith("create_or_update_rating", rateArgs{draftOf(*before), reeve.NewUndoGuard(draftOf(v))})
				}
				return writeResult{Rating: &v}, err
			}),
	}
}

// draftOf returns the draft that would create the rating.
func draftOf(v reeve.Rating) reeve.RatingDraft {
	return reeve.RatingDraft{Target: v.Target, TargetID: v.TargetID, Scores: v.Scores, Note: v.Note}
}
