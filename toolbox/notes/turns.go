package notes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"reeve"
	"reeve/internal/store"
)

const (
	searchedRuns = 2000 // newest runs of the agent that are searched
	maxTurnText  = 1000 // bytes of a turn in a result
)

// searchTurns returns the user's recent turns with the agent that have words of the query, best first.
func (p *Pack) searchTurns(ctx context.Context, inv *reeve.Invocation, query string, limit int) ([]found, error) {
	words := splitWords(query)
	var turns []reeve.Run
	err := p.DB.View(ctx, func(s *store.Snap) (err error) {
		turns, err = s.Notes().RecentTurns(ctx, inv.Agent, inv.User, searchedRuns)
		return err
	})
	if err != nil || len(words) == 0 {
		return nil, err
	}
	var out []found
	for _, t := range turns {
		text := "User: " + t.Input + "\nAgent: " + t.Output
		lower, n := strings.ToLower(text), 0
		for _, w := range words {
			if strings.Contains(lower, w) {
				n++
			}
		}
		if n == 0 {
			continue
		}
		_, _, shown := inv.RedactedSlice(text, 0, min(len(text), maxTurnText))
		out = append(out, found{run: t.ID, Text: shown, Source: "conversation",
			Score: float64(n) / float64(len(words)), Matched: []string{"words"}, CreatedAt: *t.FinishedAt,
			UpdatedAt: *t.FinishedAt})
	}
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(b.Score, a.Score) })
	out = out[:min(len(out), limit)]
	return out, p.markOutsideTurns(ctx, inv, out)
}

// markOutsideTurns gives turns that had text from outside the origin untrusted.
func (p *Pack) markOutsideTurns(ctx context.Context, inv *reeve.Invocation, turns []found) error {
	return p.DB.View(ctx, func(s *store.Snap) error {
		for i := range turns {
			outside, err := s.Ledger().HasOutsideText(ctx, inv.Workspace, turns[i].run)
			if err != nil {
				return err
			}
			if outside {
				turns[i].Origin = reeve.NoteUntrusted
				inv.MarkUntrusted()
			}
		}
		return nil
	})
}

// splitWords returns the distinct words of a query that have at least three bytes, in lower case.
func splitWords(query string) []string {
	isSeparator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := slices.DeleteFunc(strings.FieldsFunc(strings.ToLower(query), isSeparator),
		func(w string) bool { return len(w) < 3 })
	slices.Sort(words)
	return slices.Compact(words)
}
