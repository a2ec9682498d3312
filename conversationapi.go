package reeve

// The bodies of the API for conversations.

// ConversationRequest begins a conversation.
type ConversationRequest struct {
	Agent        string   `json:"agent" minLength:"1" maxLength:"128" doc:"Id or name of the agent to talk to"`
	Title        string   `json:"title,omitempty" maxLength:"200"`
	Participants []string `json:"participants,omitempty" maxItems:"100" doc:"Other users who take part"`
}

// ConversationChange changes a conversation. What is left out stays.
type ConversationChange struct {
	Title *string `json:"title,omitempty" maxLength:"200"`
	State string  `json:"state,omitempty" enum:"active,completed"`
}

// ConversationList is a page of conversations.
type ConversationList struct {
	Conversations []Conversation `json:"conversations"`
	Next          string         `json:"next_cursor,omitempty"`
}

// TurnRequest is what a person says.
type TurnRequest struct {
	Content     string            `json:"content" maxLength:"1000000" doc:"What is said"`
	Attachments []Attachment      `json:"attachments,omitempty" maxItems:"20"`
	Variables   map[string]string `json:"variables,omitempty" doc:"Put into the agent's instructions where they say {{name}}, literally"`
	Tools       []string          `json:"tools,omitempty" maxItems:"200" doc:"The tools of this turn, instead of the agent's own"`
	Model       string            `json:"model,omitempty" maxLength:"200" doc:"The model of this turn, instead of the agent's own"`
}

// TurnList is a page of turns.
type TurnList struct {
	Turns []Turn `json:"turns"`
	Next  string `json:"next_cursor,omitempty"`
}

// TurnDetail is a turn with everything that was said and done in it.
type TurnDetail struct {
	Turn
	Messages []Message  `json:"messages"`
	Feedback []Feedback `json:"feedback,omitempty"`
}

// ParticipantRequest brings somebody into a conversation.
type ParticipantRequest struct {
	Kind string `json:"kind" enum:"user,agent"`
	ID   string `json:"id" minLength:"1" maxLength:"128" doc:"A user, or an agent's id or name"`
}

// FeedbackRequest says what one thinks of a turn.
type FeedbackRequest struct {
	Score   int    `json:"score" minimum:"-1" maximum:"1"`
	Comment string `json:"comment,omitempty" maxLength:"8000"`
}
