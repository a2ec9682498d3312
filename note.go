package reeve

import "time"

// PrefixNote is the prefix of the ids of notes.
const PrefixNote = "note"

// MaxNote is the maximum size of a note in bytes.
const MaxNote = 2000

// Note is a fact that an agent remembers about a user across conversations. It belongs to the user.
type Note struct {
	ID             string    `json:"id"`
	UserID         string    `json:"user_id,omitempty" doc:"User whom the note is about"`
	AgentID        string    `json:"agent_id" doc:"Agent that remembers it"`
	ConversationID string    `json:"conversation_id,omitempty" doc:"Conversation that it comes from"`
	TurnID         string    `json:"turn_id,omitempty" doc:"Turn that it comes from"`
	Content        string    `json:"content"`
	CreatedAt      time.Time `json:"created_at"`
}
