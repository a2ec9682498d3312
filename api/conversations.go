package api

import "reeve"

// ConversationList is a page of conversations.
type ConversationList struct {
	Conversations []reeve.Conversation `json:"conversations"`
	Next          string               `json:"next_cursor,omitempty"`
}

// TurnList is a page of turns.
type TurnList struct {
	Turns []reeve.Turn `json:"turns"`
	Next  string       `json:"next_cursor,omitempty"`
}

// TurnDetail is a turn with everything that was said and done in it.
type TurnDetail struct {
	reeve.Turn
	Messages []reeve.Message  `json:"messages"`
	Feedback []reeve.Feedback `json:"feedback,omitempty"`
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

// FrameList is a page of a conversation's kept frames, in order.
type FrameList struct {
	Frames []reeve.Frame `json:"frames"`
	Last   int64         `json:"last" doc:"The seq of the conversation's last kept frame"`
}

// PlaygroundRequest is what a person says in a playground session.
type PlaygroundRequest struct {
	Message   string            `json:"message" minLength:"1" maxLength:"1000000"`
	Agent     string            `json:"agentId" minLength:"1" maxLength:"128" doc:"Id or name; the session stays with it"`
	Variables map[string]string `json:"variables,omitempty" doc:"Put into the agent's instructions where they say {{name}}, literally"`
	Model     string            `json:"model,omitempty" maxLength:"200" doc:"The model of this turn, instead of the agent's own"`
	Detach    bool              `json:"detach,omitempty" doc:"Answer at once with where the turn is, and let it go on without you"`
}

// PlaygroundInfo says where a playground session is kept.
type PlaygroundInfo struct {
	SessionID      string `json:"sessionId"`
	ConversationID string `json:"conversationId"`
	TurnID         string `json:"turnId"`
}

// ClientFrame is what a client of a conversation sends. Which fields it needs depends on its type.
type ClientFrame struct {
	Type string `json:"type" doc:"message, ping, cancel, approve or deny"`
	ID   string `json:"id,omitempty" doc:"Of message: sent again with the same one, it is said once"`
	reeve.TurnRequest
	TurnID     string `json:"turn_id,omitempty" doc:"Of cancel"`
	ApprovalID string `json:"approval_id,omitempty" doc:"Of approve and deny"`
	Comment    string `json:"comment,omitempty" doc:"Of approve and deny"`
}

// The types of frame that clients send.
const (
	ClientMessage = "message"
	ClientPing    = "ping"
	ClientCancel  = "cancel"
	ClientApprove = "approve"
	ClientDeny    = "deny"
)
