package model

import (
	"slices"
	"strings"

	"reeve"
)

// Gap stands between texts of an answer that a tool call separates.
const Gap = "\n\n"

// Text is all that an answer says in words, with a Gap where a tool call stands between two texts. Most say it in one
// part, which
// is not copied: it may be long, and is asked for often.
func (a Answer) Text() string {
	var texts []string
	called := false
	for _, p := range a.Parts {
		switch {
		case p.Type == ToolCall:
			called = true
		case p.Type == Text && p.Text != "":
			if called && len(texts) > 0 {
				texts = append(texts, Gap)
			}
			texts, called = append(texts, p.Text), false
		}
	}
	return strings.Join(texts, "")
}

// CutReason is why an answer is not whole; empty means that it is.
func (a Answer) CutReason() reeve.CutReason {
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

// KeepOneCall leaves out all calls but the first.
func (a *Answer) KeepOneCall() {
	seen := false
	a.Parts = slices.DeleteFunc(a.Parts, func(p Part) bool {
		again := seen && p.Type == ToolCall
		seen = seen || p.Type == ToolCall
		return again
	})
}

// NewTextMessage makes a message of one text.
func NewTextMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Type: Text, Text: text}}}
}
