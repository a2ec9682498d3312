package api

import "reeve"

// NoteRequest adds a note to an agent's memory.
type NoteRequest struct {
	Agent   string `json:"agent" minLength:"1" maxLength:"128" doc:"Name or id of the agent"`
	Content string `json:"content" minLength:"1" maxLength:"2000"`
}

// NoteList is a page of notes, newest first.
type NoteList struct {
	Notes []reeve.Note `json:"notes"`
	Next  string       `json:"next_cursor,omitempty"`
}
