package schedules

import (
	"context"
	"time"
	"unicode/utf8"

	"reeve"
	"reeve/internal/store"
)

// summaryChars is how much of a run's output its line in the history shows.
const summaryChars = 200

// line is a run in the history.
type line struct {
	RunID       string         `json:"run_id"`
	Reason      reeve.Reason   `json:"reason"`
	Status      reeve.RunState `json:"status"`
	ScheduledAt *time.Time     `json:"scheduled_at,omitempty"`
	StartedAt   time.Time      `json:"started_at"`
	FinishedAt  *time.Time     `json:"finished_at,omitempty"`
	Summary     string         `json:"summary,omitempty"`
	Error       string         `json:"error,omitempty"`
	Moves       int            `json:"moves" doc:"How often a model was asked"`
	Spent       reeve.Amount   `json:"spent"`
}

func (p *Pack) runs(ctx context.Context, in history) (map[string]any, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return nil, err
	}
	if in.Limit == 0 {
		in.Limit = 5
	}
	lines, missed := []line{}, []time.Time{}
	err = p.DB.View(ctx, func(s *store.Snap) error {
		t, err := p.mine(ctx, s.Queue(), inv.Workspace, who, in.ScheduleID)
		if err != nil {
			return err
		}
		runs, err := s.Runs().ListRuns(ctx, inv.Workspace, store.RunFilter{ReasonID: t.ID, Limit: in.Limit})
		if err != nil {
			return err
		}
		for _, r := range runs {
			_, _, summary := inv.RedactedSlice(r.Output, 0, chars(r.Output, summaryChars))
			lines = append(lines, line{r.ID, r.Reason, r.State, r.ScheduledAt, r.StartedAt, r.FinishedAt, summary,
				r.Message, r.Moves, r.Spent})
		}
		gone, err := s.Queue().ListMissed(ctx, t.ID, in.Limit)
		for _, at := range gone {
			missed = append(missed, reeve.FromMillis(at))
		}
		return err
	})
	return map[string]any{"runs": lines, "missed": missed}, err
}

func (p *Pack) output(ctx context.Context, in output) (map[string]any, error) {
	inv, who, err := user(ctx)
	if err != nil {
		return nil, err
	}
	if in.MaxChars == 0 {
		in.MaxChars = 4000
	}
	var run reeve.Run
	err = p.DB.View(ctx, func(s *store.Snap) error {
		gone := reeve.Errorf(reeve.ToolFailed, "run %q not found", in.RunID)
		if run, err = s.Runs().GetRun(ctx, inv.Workspace, in.RunID); err != nil {
			if reeve.CodeOf(err) == reeve.NotFound {
				return gone
			}
			return err
		}
		if run.UserID != who {
			return gone
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	text := run.Output
	if text == "" {
		text = run.Message
	}
	from, total, cut := chars(text, in.Offset), utf8.RuneCountInString(text), inv.RedactedSlices(text)
	return reeve.Page(inv, in.MaxChars, func(n int) (map[string]any, error) {
		begin, end, part := cut(from, from+chars(text[from:], n))
		next := utf8.RuneCountInString(text[:end])
		return map[string]any{"run_id": run.ID, "output": part, "offset": utf8.RuneCountInString(text[:begin]),
			"next_offset": next, "total": total, "remaining": total - next}, nil
	})
}

// chars is how many bytes the first n characters have: slices are cut by characters, so that they join to the original
// whatever those are.
func chars(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
