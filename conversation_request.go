package reeve

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

// TurnRequest is what a person says.
type TurnRequest struct {
	Content     string            `json:"content,omitempty" maxLength:"1000000" doc:"What is said; may be left out when something is attached"`
	Attachments []Attachment      `json:"attachments,omitempty" maxItems:"20"`
	Variables   map[string]string `json:"variables,omitempty" doc:"Put into the agent's instructions where they say {{name}}, literally"`
	Tools       []string          `json:"tools,omitempty" maxItems:"200" doc:"The tools of this turn, instead of the agent's own"`
	Model       string            `json:"model,omitempty" maxLength:"200" doc:"The model of this turn, instead of the agent's own"`
	Agent       string            `json:"agent,omitempty" maxLength:"128" doc:"Id or name of the agent that is to answer, of those that take part; the conversation's own if left out"`
}
