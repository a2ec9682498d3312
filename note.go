package reeve

import "time"

// PrefixNote begins the ids of notes.
const PrefixNote = "note"

// MaxNote is how many bytes a note may have.
const MaxNote = 2000

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
