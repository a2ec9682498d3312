package reeve

import "time"

// PrefixNote begins the ids of notes.
const PrefixNote = "note"

// MostNote is how many bytes a note may have.
const MostNote = 2000

// Note is something that an agent remembers of a user, from one conversation to the next. It is that user's own.
type Note struct {
	ID             string    `json:"id"`
	UserID         string    `json:"user_id,omitempty" doc:"Whose it is"`
	AgentID        string    `json:"agent_id" doc:"Who remembers it"`
	ConversationID string    `json:"conversation_id,omitempty" doc:"Where it was taken"`
	TurnID         string    `json:"turn_id,omitempty" doc:"The turn it was taken of"`
	Content        string    `json:"content"`
	CreatedAt      time.Time `json:"created_at"`
}

// NoteRequest is a note that a person gives an agent.
type NoteRequest struct {
	Agent   string `json:"agent" minLength:"1" maxLength:"128" doc:"Name or id of the agent that is to remember it"`
	Content string `json:"content" minLength:"1" maxLength:"2000"`
}

// NoteList is a page of notes, newest first.
type NoteList struct {
	Notes []Note `json:"notes"`
	Next  string `json:"next_cursor,omitempty"`
}
