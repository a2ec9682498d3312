package api

import "reeve"

// NoteRequest is a note that a person gives an agent.
type NoteRequest struct {
	Agent   string `json:"agent" minLength:"1" maxLength:"128" doc:"Name or id of the agent that is to remember it"`
	Content string `json:"content" minLength:"1" maxLength:"2000"`
}

// NoteList is a page of notes, newest first.
type NoteList struct {
	Notes []reeve.Note `json:"notes"`
	Next  string       `json:"next_cursor,omitempty"`
}
