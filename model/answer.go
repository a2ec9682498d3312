package model

import "strings"

// Text is all that an answer says in words.
func (a Answer) Text() string {
	var b strings.Builder
	for _, p := range a.Parts {
		if p.Type == Text {
			b.WriteString(p.Text)
		}
	}
	return b.String()
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
