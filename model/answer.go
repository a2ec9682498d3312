package model

import (
	"slices"
	"strings"

	"reeve"
)

// TextSeparator separates two texts of an answer that have a tool call between them.
const TextSeparator = "\n\n"

// Text returns the texts of an answer, joined by TextSeparator where a tool call is between two of them. Text does not
// copy an answer with a single text.
func (a Answer) Text() string {
	var texts []string
	called := false
	for _, p := range a.Parts {
		switch {
		case p.Type == ToolCall:
			called = true
		case p.Type == Text && p.Text != "":
			if called && len(texts) > 0 {
				texts = append(texts, TextSeparator)
			}
			texts, called = append(texts, p.Text), false
		}
	}
	return strings.Join(texts, "")
}

// CutReason says why an answer is incomplete. It is empty for a complete answer.
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

// Calls returns the tool calls of an answer, in order.
func (a Answer) Calls() []Part {
	var calls []Part
	for _, p := range a.Parts {
		if p.Type == ToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// KeepOneCall removes all calls but the first.
func (a *Answer) KeepOneCall() {
	seen := false
	a.Parts = slices.DeleteFunc(a.Parts, func(p Part) bool {
		again := seen && p.Type == ToolCall
		seen = seen || p.Type == ToolCall
		return again
	})
}

// NewTextMessage returns a message with one text part.
func NewTextMessage(role Role, text string) Message {
	return Message{Role: role, Parts: []Part{{Type: Text, Text: text}}}
}
