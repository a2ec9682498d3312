package agent

import (
	"context"

	"reeve/internal/store"
)

// readSummary returns the summary of turns that are too old to be shown, and the last turn for which a summary was
// requested.
func (v *assembly) readSummary(ctx context.Context, s *store.Snap) (text, asked string, err error) {
	if !v.makesSummaries() || *v.set.RecentTurns == 0 {
		return "", "", nil
	}
	last, text, asked, err := s.Chat().LastSummary(ctx, v.run.ThreadID)
	v.showsUntrusted = v.showsUntrusted || last.Untrusted
	return v.fitSummary(text), asked, err
}

// planSummary sets summarizeUpTo to the middle of the shown turns if more turns should be summarized, so that not every
// turn needs a new summary. It reads one row, whatever the length of the conversation.
func (v *assembly) planSummary(ctx context.Context, s *store.Snap, shown []TurnSnapshot, asked string) error {
	if !v.makesSummaries() || *v.set.RecentTurns == 0 {
		return nil
	}
	var turns []string
	for _, t := range shown {
		if t.State.IsFinal() { // skip notices and callers
			turns = append(turns, t.ID)
		}
	}
	oldest, upTo := v.run.ID, ""
	if len(turns) > 0 {
		oldest, upTo = turns[0], turns[len(turns)/2]
	}
	older, err := s.Chat().EndedTurns(ctx, v.run.SessionID, oldest, 1)
	if err != nil || len(older) == 0 || older[0].ID <= asked {
		return err
	}
	v.summarizeUpTo = max(upTo, older[0].ID)
	return nil
}
