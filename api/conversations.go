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

// TurnDetail is a turn with its messages and feedback.
type TurnDetail struct {
	reeve.Turn
	Messages []reeve.Message  `json:"messages"`
	Feedback []reeve.Feedback `json:"feedback,omitempty"`
}

// ParticipantRequest adds a participant to a conversation.
type ParticipantRequest struct {
	Kind string `json:"kind" enum:"user,agent"`
	ID   string `json:"id" minLength:"1" maxLength:"128" doc:"User, or id or name of an agent"`
}

// FeedbackRequest rates a turn.
type FeedbackRequest struct {
	Score   int    `json:"score" minimum:"-1" maximum:"1"`
	Comment string `json:"comment,omitempty" maxLength:"8000"`
}

// FrameList is a page of a conversation's stored frames, in order.
type FrameList struct {
	Frames []reeve.Frame `json:"frames"`
	Last   int64         `json:"last" doc:"Sequence number of the last stored frame"`
}

// AttachmentList is a page of the files that people attached to a conversation, in order.
type AttachmentList struct {
	Attachments []reeve.StoredAttachment `json:"attachments"`
	Next        int                      `json:"next,omitempty" doc:"Number to pass as after for the next page"`
}

// PlaygroundRequest is a user's message in a playground session.
type PlaygroundRequest struct {
	Message   string            `json:"message" minLength:"1" maxLength:"1000000"`
	Agent     string            `json:"agentId" minLength:"1" maxLength:"128" doc:"Id or name; fixed for the session"`
	Variables map[string]string `json:"variables,omitempty" doc:"Values for {{name}} in the instructions"`
	Model     string            `json:"model,omitempty" maxLength:"200" doc:"Model of this turn, instead of the agent's"`
	Detach    bool              `json:"detach,omitempty" doc:"Return at once and run the turn in the background"`
}

// PlaygroundInfo has the ids of a playground turn.
type PlaygroundInfo struct {
	SessionID      string `json:"sessionId"`
	ConversationID string `json:"conversationId"`
	TurnID         string `json:"turnId"`
}

// ClientFrame is a frame sent by a client of a conversation. Its type decides which fields are needed.
type ClientFrame struct {
	Type string `json:"type" doc:"message, ping, cancel, approve or deny"`
	ID   string `json:"id,omitempty" doc:"message: your key; a message with the same id is accepted once"`
	reeve.TurnRequest
	TurnID     string `json:"turn_id,omitempty" doc:"cancel: turn to end"`
	ApprovalID string `json:"approval_id,omitempty" doc:"approve, deny"`
	Comment    string `json:"comment,omitempty" doc:"approve, deny"`
}

// The types of frame that clients send.
const (
	ClientMessage = "message"
	ClientPing    = "ping"
	ClientCancel  = "cancel"
	ClientApprove = "approve"
	ClientDeny    = "deny"
)
