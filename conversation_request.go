package reeve

// ConversationRequest starts a conversation.
type ConversationRequest struct {
	Agent        string   `json:"agent" minLength:"1" maxLength:"128" doc:"Id or name of the agent"`
	Title        string   `json:"title,omitempty" maxLength:"200"`
	Participants []string `json:"participants,omitempty" maxItems:"100" doc:"Other users to add"`
}

// ConversationChange changes a conversation. Absent fields stay unchanged.
type ConversationChange struct {
	Title *string `json:"title,omitempty" maxLength:"200"`
	State string  `json:"state,omitempty" enum:"active,completed"`
}

// TurnRequest is a user's message, which starts a turn.
type TurnRequest struct {
	Content     string            `json:"content,omitempty" maxLength:"1000000" doc:"Text; optional with attachments"`
	Attachments []Attachment      `json:"attachments,omitempty" maxItems:"20"`
	Variables   map[string]string `json:"variables,omitempty" doc:"Values for {{name}} in the agent's instructions"`
	Tools       []string          `json:"tools,omitempty" maxItems:"200" doc:"Tools of this turn, instead of the agent's"`
	Model       string            `json:"model,omitempty" maxLength:"200" doc:"Model of this turn, instead of the agent's"`
	Agent       string            `json:"agent,omitempty" maxLength:"128" doc:"Participating agent that answers. Default: the conversation's"`
}
