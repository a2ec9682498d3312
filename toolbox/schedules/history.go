package schedules

import (
	"context"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// summaryChars is how many characters of a run's output schedule_runs shows.
const summaryChars = 200

// runSummary is one run in the answer of schedule_runs.
type runSummary struct {
	RunID         string         `json:"run_id"`
	Reason        reeve.Reason   `json:"reason"`
	Status        reeve.RunState `json:"status"`
	ScheduledAt   *time.Time     `json:"scheduled_at,omitempty"`
	StartedAt     time.Time      `json:"started_at"`
	FinishedAt    *time.Time     `json:"finished_at,omitempty"`
	Summary       string         `json:"summary,omitempty"`
	Error         string         `json:"error,omitempty"`
	ModelRequests int            `json:"model_requests" doc:"Number of model calls"`
	Spent         reeve.Amount   `json:"spent"`
}

// runs lists the recent runs of a schedule and the firings that it missed.
func (p *Pack) runs(ctx context.Context, in runsArgs) (map[string]any, error) {
	inv, user, err := requireUser(ctx)
	if err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = 5
	}
	summaries, missed := []runSummary{}, []time.Time{}
	err = p.DB.View(ctx, func(s *store.Snap) error {
		t, err := p.getOwn(ctx, s.Queue(), inv.Workspace, user, in.ScheduleID)
		if err != nil {
			return err
		}
		runs, err := s.Runs().ListRuns(ctx, inv.Workspace, store.RunFilter{ReasonID: t.ID, Limit: in.Limit})
		if err != nil {
			return err
		}
		for _, r := range runs {
			if err := markOutsideText(ctx, s, inv, r.ID); err != nil {
				return err
			}
			_, _, summary := inv.RedactedSlice(r.Output, 0, prefixLen(r.Output, summaryChars))
			summaries = append(summaries, runSummary{r.ID, r.Reason, r.State, r.ScheduledAt, r.StartedAt, r.FinishedAt,
				summary,
				r.Message, r.ModelRequests, r.Spent})
		}
		firings, err := s.Queue().ListMissed(ctx, t.ID, in.Limit)
		for _, at := range firings {
			missed = append(missed, reeve.FromMillis(at))
		}
		return err
	})
	return map[string]any{"runs": summaries, "missed": missed}, err
}

// output returns a page of a run's output.
func (p *Pack) output(ctx context.Context, in outputArgs) (map[string]any, error) {
	inv, user, err := requireUser(ctx)
	if err != nil {
		return nil, err
	}
	if in.MaxChars == 0 {
		in.MaxChars = 4000
	}
	var run reeve.Run
	err = p.DB.View(ctx, func(s *store.Snap) error {
		notFound := reeve.Errorf(reeve.ToolFailed, "run %q not found", in.RunID)
		if run, err = s.Runs().GetRun(ctx, inv.Workspace, in.RunID); err != nil {
			if reeve.CodeOf(err) == reeve.NotFound {
				return notFound
			}
			return err
		}
		if run.UserID != user {
			return notFound
		}
		return markOutsideText(ctx, s, inv, run.ID)
	})
	if err != nil {
		return nil, err
	}
	text := run.Output
	if text == "" {
		text = run.Message
	}
	from, total, slice := prefixLen(text, in.Offset), utf8.RuneCountInString(text), inv.RedactedSlices(text)
	return reeve.LongestPage(inv, in.MaxChars, func(n int) (map[string]any, error) {
		begin, end, part := slice(from, from+prefixLen(text[from:], n))
		next := utf8.RuneCountInString(text[:end])
		return map[string]any{"run_id": run.ID, "output": part, "offset": utf8.RuneCountInString(text[:begin]),
			"next_offset": next, "total": total, "remaining": total - next}, nil
	})
}

// markOutsideText reports that a result quotes a run, which may have read text from outside.
func markOutsideText(ctx context.Context, s *store.Snap, inv *reeve.Invocation, run string) error {
	outside, err := s.Ledger().HasOutsideText(ctx, inv.Workspace, run)
	if outside {
		inv.MarkUntrusted()
	}
	return err
}

// prefixLen returns the length in bytes of the first n characters of s.
func prefixLen(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
