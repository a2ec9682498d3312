package model

import (
	"strings"

	"reeve"
)

// Text is all that an answer says in words. Most say it in one part, which is not copied: it may be long, and is asked for often.
func (a Answer) Text() string {
	var texts []string
	for _, p := range a.Parts {
		if p.Type == Text {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "")
}

// Cut is why an answer is not whole; empty means that it is.
func (a Answer) Cut() reeve.Cut {
	switch a.Stop {
	case StopLength:
		return reeve.CutLength
	case StopRefused:
		return reeve.CutRefused
	case StopEnd, StopTools:
	}
	return ""
}

// Calls are the tool calls of an answer, in order.
func (a Answer) Calls() []Part {
	var calls []Part
	for _, p := range a.Parts {
		if p.Type == ToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// Said makes a message of one text.
func Said(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Type: Text, Text: text}}}
}
