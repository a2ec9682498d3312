package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reeve"
	"reeve/internal/store"
)

const (
	maxReason        = 1900 // bytes of the reason of a proposal
	maxQuoteInReason = 160  // bytes of a note in a reason
)

// mergeArgs are the arguments of memory_merge.
type mergeArgs struct {
	NoteIDs  []string `json:"note_ids"`
	Content  string   `json:"content"`
	Tags     []string `json:"tags,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
}

// newSuggestion returns a suggestion about notes. Its id derives from the notes and their versions, so that the same
// change is proposed once.
func (v *consolidation) newSuggestion(tool string, notes []reeve.Note, args any, reason string) store.NoteSuggestion {
	parts := []string{"consolidate", v.workspace, v.user, tool}
	for _, n := range notes {
		parts = append(parts, fmt.Sprint(n.ID, "@", n.Version))
	}
	slices.Sort(parts[4:])
	b, _ := json.Marshal(args)
	return store.NoteSuggestion{ID: reeve.DeriveID(reeve.PrefixOperation, parts...), WorkspaceID: v.workspace,
		UserID: v.user, Tool: tool, Args: string(b), Reason: reeve.Truncate(reason, maxReason)}
}

// suggestDelete suggests to delete a note from an untrusted source that repeats a trusted one. It does not merge them,
// because a merge would make the trusted text untrusted.
func (v *consolidation) suggestDelete(p notePair) store.NoteSuggestion {
	outside, own := p.a, p.b
	if own.Origin == reeve.NoteUntrusted {
		outside, own = own, outside
	}
	reason := fmt.Sprintf("A note from an untrusted source repeats note %s (%s).\n%s\n%s", own.ID, p.scores(),
		quoteNote(own), quoteNote(outside))
	return v.newSuggestion("memory_delete", []reeve.Note{outside, own}, map[string]string{"note_id": outside.ID},
		reason)
}

// suggestMerge suggests to replace notes that say nearly the same with the text of the most complete one. It suggests
// nothing if the merged note would have too many tags.
func (v *consolidation) suggestMerge(g *noteGroup) []store.NoteSuggestion {
	notes := slices.Clone(g.notes)
	slices.SortFunc(notes, newer)
	best := slices.MaxFunc(notes, func(a, b reeve.Note) int {
		return len(readWords(a.Content).words) - len(readWords(b.Content).words)
	})
	tags, ok := joinTags(notes)
	if !ok {
		return nil
	}
	var b strings.Builder
	b.WriteString("These notes say nearly the same.")
	for _, p := range g.pairs {
		fmt.Fprintf(&b, "\n%s and %s: %s", p.a.ID, p.b.ID, p.scores())
	}
	for _, n := range notes {
		b.WriteString("\n" + quoteNote(n))
	}
	args := mergeArgs{NoteIDs: idsOf(notes), Content: best.Content, Tags: tags, Evidence: reeve.Truncate(b.String(),
		maxReason)}
	return []store.NoteSuggestion{v.newSuggestion("memory_merge", notes, args, b.String())}
}

// joinTags returns the tags of all notes. It returns false if they are too many for one note.
func joinTags(notes []reeve.Note) ([]string, bool) {
	var all []string
	for _, n := range notes {
		all = append(all, n.Tags...)
	}
	tags, err := reeve.CheckTags(all)
	return tags, err == nil
}

// idsOf returns the ids of notes, sorted.
func idsOf(notes []reeve.Note) []string {
	ids := make([]string, len(notes))
	for i, n := range notes {
		ids[i] = n.ID
	}
	slices.Sort(ids)
	return ids
}

// scores describes how similar the notes of a pair are.
func (p notePair) scores() string {
	text := fmt.Sprintf("common words %.2f", roundScore(p.common))
	if m := roundScore(p.meaning); m != 0 {
		text += fmt.Sprintf(", meaning %.2f", m)
	}
	return text
}

// quoteNote returns a line that shows a note as evidence.
func quoteNote(n reeve.Note) string {
	return fmt.Sprintf("%s (%s, since %s): %q", n.ID, n.Origin, n.ValidFrom.Format("2006-01-02"),
		reeve.Truncate(n.Content, maxQuoteInReason))
}
