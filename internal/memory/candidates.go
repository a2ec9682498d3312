package memory

import (
	"context"
	"math"
	"slices"

	"reeve"
	"reeve/internal/embed"
	"reeve/internal/store"
)

// similarNotes is the number of notes with common words that each note is compared with.
const similarNotes = 20

// findRelated returns the pairs of a note with the user's other current notes that may be about the same subject.
// vector is the vector of the note, or nil.
func (r *Notes) findRelated(ctx context.Context, s *store.Snap, workspace string, n reeve.Note,
	vector []float32) ([]notePair, error) {
	search := store.NoteSearch{Workspace: workspace, User: n.UserID, Text: n.Content, Limit: similarNotes}
	found := map[string]candidate{}
	matches, err := s.Notes().MatchNotes(ctx, search)
	if err != nil {
		return nil, err
	}
	for _, m := range matches {
		found[m.ID] = candidate{words: m.Score, meaning: math.NaN()}
	}
	if vector != nil {
		if err := r.addSimilar(ctx, s, search, vector, found); err != nil {
			return nil, err
		}
	}
	delete(found, n.ID)
	var ids []string
	for id, c := range found {
		if c.words > 0 || c.meaning >= relatedMeaning {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	others, err := s.Notes().GetNotes(ctx, workspace, n.UserID, ids)
	if err != nil {
		return nil, err
	}
	var pairs []notePair
	for _, other := range others {
		if p := comparePair(n, other, found[other.ID].meaning); p.isRelated() {
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// addMeaning sets the cosine of a pair, if it is not known yet and both notes have vectors.
func (p *notePair) addMeaning(vectors map[string][]float32) {
	a, b := vectors[p.a.ID], vectors[p.b.ID]
	if math.IsNaN(p.meaning) && a != nil && b != nil {
		p.meaning = float64(embed.Dot(a, embed.Quantize(b)))
	}
}

// noteGroup is a set of notes that are about the same subject.
type noteGroup struct {
	notes []reeve.Note
	pairs []notePair
}

// maxGroup is the largest number of notes in a group.
const maxGroup = 8

// groupNotes joins pairs that have a note in common into groups. A full group accepts no more notes, and the pairs that
// would add one are dropped.
func groupNotes(pairs []notePair) []*noteGroup {
	byNote := map[string]*noteGroup{}
	var groups []*noteGroup
	for _, p := range pairs {
		a, b := byNote[p.a.ID], byNote[p.b.ID]
		switch {
		case a == nil && b == nil:
			a = &noteGroup{notes: []reeve.Note{p.a, p.b}}
			groups = append(groups, a)
			byNote[p.a.ID], byNote[p.b.ID] = a, a
		case a == b:
		case a == nil || b == nil:
			if a == nil {
				a, p.a, p.b = b, p.b, p.a
			}
			if len(a.notes) == maxGroup {
				continue
			}
			a.notes = append(a.notes, p.b)
			byNote[p.b.ID] = a
		case len(a.notes)+len(b.notes) <= maxGroup:
			for _, n := range b.notes {
				byNote[n.ID] = a
			}
			a.notes, a.pairs, b.notes = append(a.notes, b.notes...), append(a.pairs, b.pairs...), nil
		default:
			continue
		}
		a.pairs = append(a.pairs, p)
	}
	return slices.DeleteFunc(groups, func(g *noteGroup) bool { return len(g.notes) == 0 })
}
