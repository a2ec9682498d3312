package agent

import (
	"context"

	"reeve/internal/store"
)

// readSummary gives what the model is told of turns that are too old to be shown, and notes up to where they should be put
// into words: half of what it is shown goes along, so that this is not to be done for every turn. Three rows are read,
// whatever the conversation's length.
func (v *turn) readSummary(ctx context.Context, s *store.Snap, shown []TurnSnapshot) (string, error) {
	if !v.set.Summaries || *v.set.RecentTurns == 0 {
		return "", nil
	}
	_, words, asked, err := s.Chat().LastSummary(ctx, v.run.ThreadID)
	if err != nil {
		return "", err
	}
	var turns []string
	for _, t := range shown {
		if t.State.Final() { // neither a notice nor a caller
			turns = append(turns, t.ID)
		}
	}
	oldest, upTo := v.run.ID, ""
	if len(turns) > 0 {
		oldest, upTo = turns[0], turns[len(turns)/2]
	}
	older, err := s.Chat().EndedTurns(ctx, v.run.SessionID, oldest, 1)
	if err != nil || len(older) == 0 || older[0].ID <= asked {
		return words, err
	}
	v.summarizeUpTo = max(upTo, older[0].ID)
	return words, nil
}
