package agent

import (
	"maps"
	"slices"

	"reeve"
)

// partShare limits what notes, the agent's state, a summary and the outcomes of earlier runs each take of the window
// (context_tokens): one part in partShare. Earlier turns take what is left.
const partShare = 4

// minShortNote is the number of bytes below which a note is left out instead of shortened.
const minShortNote = 200

// noteOverhead is the number of bytes that a note takes besides its text.
const noteOverhead = 4

// shareTokens returns the most tokens that one part of the request may take.
func (v *assembly) shareTokens() int { return v.set.ContextTokens / partShare }

// take records that a text takes a part of the window.
func (v *assembly) take(bytes int) { v.left -= bytes/bytesPerToken + tokensPerPart }

// fitNotes returns the notes that fit into their share of the window. It shortens the first note that does not fit, and
// leaves out those after it.
func (v *assembly) fitNotes(list []reeve.Note) []reeve.Note {
	left := v.shareTokens() * bytesPerToken
	for i, n := range list {
		size := len(renderNote(n)) + noteOverhead
		if size <= left {
			left -= size
			v.take(size)
			continue
		}
		if left >= minShortNote {
			v.leaveOut("notes", n.ID, "its end: it takes %d tokens, and notes take at most a quarter of context_tokens",
				size/bytesPerToken)
			list = slices.Clone(list)
			list[i].Content = reeve.Truncate(n.Content, len(n.Content)*(left-2*noteOverhead)/size)
			v.take(left)
			i++
		}
		if i < len(list) {
			v.leaveOut("notes", list[i].ID, "this note and those after it do not fit: notes take at most a quarter of "+
				"context_tokens")
		}
		return list[:i]
	}
	return list
}

// fitMemory returns the agent's state without what does not fit into its share of the window.
func (v *assembly) fitMemory(m *AgentMemory) *AgentMemory {
	if m == nil {
		return nil
	}
	limit := v.shareTokens() * bytesPerToken
	isWhole := len(m.render()) <= limit
	for len(m.render()) > limit {
		if !m.dropLast() {
			break
		}
	}
	if !isWhole {
		v.leaveOut("state", "", "what does not fit: the state takes at most a quarter of context_tokens")
	}
	v.take(len(m.render()))
	return m
}

// dropLast removes or shortens the least important part of the state. It returns false if nothing is left to remove.
func (m *AgentMemory) dropLast() bool {
	last := func(values map[string]string) string { return slices.Max(slices.Collect(maps.Keys(values))) }
	switch {
	case len(m.Extension) > 0:
		delete(m.Extension, last(m.Extension))
	case len(m.Preferences) > 0:
		delete(m.Preferences, last(m.Preferences))
	case len(m.OpenLoops) > 0:
		m.OpenLoops = m.OpenLoops[:len(m.OpenLoops)-1]
		m.MoreOpenLoops++
	case len(m.PrimaryGoal) > maxShownValue:
		m.PrimaryGoal = reeve.Truncate(m.PrimaryGoal, len(m.PrimaryGoal)/2)
	default:
		return false
	}
	return true
}

// fitSummary returns a summary, shortened to its share of the window.
func (v *assembly) fitSummary(text string) string {
	if limit := v.shareTokens() * bytesPerToken; len(text) > limit {
		v.leaveOut("summary", "", "its end: it takes %d tokens, and a summary takes at most a quarter of "+
			"context_tokens", len(text)/bytesPerToken)
		text = reeve.Truncate(text, limit)
	}
	if text != "" {
		v.take(len(text))
	}
	return text
}
