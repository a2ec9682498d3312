package journal

import (
	"context"
	"maps"

	"reeve"
	"reeve/internal/store"
)

type summaryArgs struct {
	CategoryID string             `json:"category_id,omitempty" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$" doc:"Of one category; of all you may touch if left out"`
	Target     reeve.RatingTarget `json:"target_kind,omitempty" enum:"task,time_entry,plan_block"`
	From       string             `json:"from,omitempty" maxLength:"40" doc:"RFC 3339: rated then or later"`
	To         string             `json:"to,omitempty" maxLength:"40" doc:"RFC 3339: rated before"`
}

type targetArgs struct {
	Target   reeve.RatingTarget `json:"target_kind" enum:"task,time_entry,plan_block"`
	TargetID string             `json:"target_id" maxLength:"64" pattern:"^[a-z]+_[0-9a-z]+$"`
}

type rateArgs struct {
	reeve.RatingDraft
	reeve.UndoGuard
}

type ratingAnswer struct {
	Rating *reeve.Rating `json:"rating" doc:"Null when the user has not rated it"`
}

func (p *Pack) ratingTools() []reeve.Tool {
	return []reeve.Tool{
		read(p, reeve.Tool{ID: "get_ratings_summary", Name: "Get Ratings Summary", Capability: RatingRead,
			Description: "Sum up how the user rated tasks, time entries and plan blocks: for each score its count, " +
				"mean, lowest and highest."},
			func(ctx context.Context, r *store.JournalReader, in summaryArgs) error {
				return r.TouchCategory(ctx, in.CategoryID)
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
		read(p, reeve.Tool{ID: "get_rating_for_target", Name: "Get Rating", Capability: RatingRead,
			Description: "Get how the user rated a task, a time entry or a plan block."},
			func(ctx context.Context, r *store.JournalReader, in targetArgs) error {
				return r.TouchTarget(ctx, in.Target, in.TargetID)
			},
			func(ctx context.Context, r *store.JournalReader, in targetArgs) (out ratingAnswer, err error) {
				v, ok, err := r.Rating(ctx, in.Target, in.TargetID)
				if ok {
					out.Rating = &v
				}
				return out, err
			}),
		write(p, reeve.Tool{ID: "create_or_update_rating", Name: "Rate", Capability: RatingWrite,
			Identity: []string{"target_kind", "target_id"}, Risk: reeve.LowRisk,
			Description: "Record how the user found a task, a time entry or a plan block, in place of what they said " +
				"before."},
			func(ctx context.Context, r *store.JournalReader, in rateArgs) error {
				return r.TouchTarget(ctx, in.Target, in.TargetID)
			},
			func(ctx context.Context, w *store.JournalWriter, in rateArgs, inv *reeve.Invocation) (answer, error) {
				v, before, err := w.Rate(ctx, in.RatingDraft)
				switch {
				case err != nil:
				case before == nil:
					err = in.Check(nil) // somebody has taken back what was rated
				default:
					err = in.Check(said(*before))
				}
				if err == nil && before != nil && (before.Note != v.Note || !maps.Equal(before.Scores, v.Scores)) {
					inv.UndoWith("create_or_update_rating", rateArgs{said(*before), reeve.NewUndoGuard(said(v))})
				}
				return answer{Rating: &v}, err
			}),
	}
}

// said is what a person said, as a rating has it.
func said(v reeve.Rating) reeve.RatingDraft {
	return reeve.RatingDraft{Target: v.Target, TargetID: v.TargetID, Scores: v.Scores, Note: v.Note}
}
