package reeve

import (
	"encoding/json"
	"strings"
	"time"
)

// Conversation is an interactive thread: people and agents who speak in turns. A turn is a run of its agent.
type Conversation struct {
	ID          string        `json:"id"`
	WorkspaceID string        `json:"workspace_id"`
	AgentID     string        `json:"agent_id" doc:"Who answers, unless another agent is asked"`
	UserID      string        `json:"user_id" doc:"Who began it"`
	Title       string        `json:"title,omitempty"`
	Origin      string        `json:"origin,omitempty" doc:"Where it came from: chat, openai, playground"`
	State       string        `json:"state" doc:"active or completed; only a person completes it"`
	Turns       int           `json:"turns" doc:"How many there have been"`
	Members     []Participant `json:"participants,omitempty"`
	CreatedAt   time.Time     `json:"created_at"`
	UpdatedAt   time.Time     `json:"updated_at"`
}

// The states of a conversation.
const (
	ConversationActive    = "active"
	ConversationCompleted = "completed"
)

// ThreadID is the thread that a conversation's messages are in.
func (c Conversation) ThreadID() string { return SessionThread(c.AgentID, c.ID) }

// SharedDefault is the default session of the server's owner, and of programs that call on behalf of nobody.
const SharedDefault = "default"

// DefaultSession is the session of calls that name none. Each user has one of their own.
func DefaultSession(user string) string {
	if user == "" || user == OwnerUser {
		return SharedDefault
	}
	return SharedDefault + ":" + user
}

// IsDefaultSession tells whether a session is the default session of some user.
func IsDefaultSession(session string) bool {
	return session == SharedDefault || strings.HasPrefix(session, SharedDefault+":")
}

// SessionThread is the thread of an agent's session.
func SessionThread(agent, session string) string { return agent + ":session:" + session }

// AutomationSession is the session whose files and scratchpad all runs of an automation share.
const AutomationSession = "automation"

// RunThread is the thread of a run that has one of its own.
func RunThread(agent, run string) string { return agent + ":run:" + run }

// Participant is somebody who takes part in a conversation.
type Participant struct {
	Kind    string    `json:"kind" doc:"user or agent"`
	ID      string    `json:"id"`
	AddedBy string    `json:"added_by,omitempty" doc:"The turn, or the person, that brought it in"`
	AddedAt time.Time `json:"added_at"`
}

// The kinds of participant.
const (
	UserParticipant  = "user"
	AgentParticipant = "agent"
)

// Turn is a run in a conversation, as people see it.
type Turn struct {
	ID             string     `json:"id" doc:"The run's id"`
	ConversationID string     `json:"conversation_id"`
	AgentID        string     `json:"agent_id"`
	UserID         string     `json:"user_id,omitempty"`
	ParentID       string     `json:"parent_id,omitempty" doc:"The turn or run whose call began it"`
	State          RunState   `json:"state"`
	Input          string     `json:"input"`
	Output         string     `json:"output,omitempty" doc:"What was said last"`
	Code           Code       `json:"code,omitempty"`
	Message        string     `json:"message,omitempty"`
	Moves          int        `json:"moves" doc:"How often the model was asked"`
	Issues         TurnIssues `json:"issues,omitzero"`
	Attempts       int        `json:"attempts"`
	Spent          Amount     `json:"spent"`
	StartedAt      time.Time  `json:"started_at"`
	FinishedAt     *time.Time `json:"finished_at,omitempty"`
}

// TurnIssues is what went wrong in a turn without ending it.
type TurnIssues struct {
	ToolFailures     int       `json:"tool_failures,omitempty"`
	ExtractionFailed bool      `json:"memory_extraction_failed,omitempty"`
	LimitReached     bool      `json:"limit_reached,omitempty" doc:"It came to its limit of moves and was asked for a final answer"`
	AnswerCut        CutReason `json:"answer_cut,omitempty" enum:"length,refused" doc:"An answer of the model's is not whole: length, it came to its limit of tokens; refused, the model or its provider's filter declined to go on"`
}

// CutReason is why an answer is not whole.
type CutReason string

// The reasons.
const (
	CutLength  CutReason = "length"  // it came to its limit of tokens
	CutRefused CutReason = "refused" // the model, or a filter of its provider's, declined to go on
)

// Turn is how a run looks as a turn.
func (r Run) Turn() Turn {
	return Turn{ID: r.ID, ConversationID: r.SessionID, AgentID: r.AgentID, UserID: r.UserID, ParentID: r.ParentID,
		State: r.State, Input: r.Input, Output: r.Output, Code: r.Code,
		Message: r.Message, Moves: r.Moves, Issues: r.Issues, Attempts: r.Attempts, Spent: r.Spent,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt}
}

// Attachment is a file that comes with what a person says. Its bytes are kept by content hash.
type Attachment struct {
	Name      string `json:"name,omitempty" maxLength:"255"`
	MediaType string `json:"media_type" maxLength:"255" doc:"Such as image/png"`
	Hash      string `json:"hash,omitempty" doc:"Where its bytes are kept"`
	Size      int    `json:"size,omitempty"`
	Data      []byte `json:"data,omitempty" doc:"Its bytes in base64, when it is sent"`
	URL       string `json:"url,omitempty" maxLength:"4096" doc:"Where it is, instead of its bytes"`
}

// FrameType says what a frame tells.
type FrameType string

// The types of frame.
const (
	FrameConnected FrameType = "connected"
	FrameStarted   FrameType = "turn_started"
	FrameToken     FrameType = "token"
	FrameTool      FrameType = "tool_started"
	FrameResult    FrameType = "tool_result"
	FrameMessage   FrameType = "message_complete"
	FrameComplete  FrameType = "turn_complete"
	FrameApproval  FrameType = "approval_required"
	FrameError     FrameType = "error"
	FramePong      FrameType = "pong"
	FrameMedia     FrameType = "media"
)

// Frame is what the clients of a conversation are sent. Which fields are set depends on its type. Frames other than
// tokens are kept: a client that comes back with the last Seq it saw gets every one after it, once. What tokens said is
// whole in the message_complete that follows them.
type Frame struct {
	Seq            int64           `json:"seq,omitempty" doc:"Grows strictly within a conversation"`
	LastSeq        int64           `json:"last_seq,omitempty" doc:"Of connected: the last that was given in the conversation; what you lack of it follows"`
	Type           FrameType       `json:"type"`
	ConversationID string          `json:"conversation_id,omitempty"`
	TurnID         string          `json:"turn_id,omitempty"`
	AgentID        string          `json:"agent_id,omitempty"`
	UserID         string          `json:"user_id,omitempty"`
	ByAgentID      string          `json:"by_agent_id,omitempty" doc:"Of turn_started: the agent that asks, if it is no person"`
	ParentID       string          `json:"parent_id,omitempty" doc:"Of turn_started: the turn or run whose call began it"`
	MessageID      string          `json:"message_id,omitempty"`
	Text           string          `json:"text,omitempty" doc:"Of token: a piece of the answer; of message_complete: the whole; of turn_started: what was said"`
	Final          bool            `json:"final,omitempty" doc:"Of message_complete: the agent has said all, unless something comes later"`
	Cut            CutReason       `json:"cut,omitempty" enum:"length,refused" doc:"Of message_complete: why the text is not whole, as answer_cut of the turn's issues has it"`
	Reasoning      bool            `json:"reasoning,omitempty" doc:"Of token: the piece is not of the answer but of the thinking before it"`
	Discard        bool            `json:"discard,omitempty" doc:"Of token: forget the pieces of this turn's message so far; it is made anew"`
	Attachments    []Attachment    `json:"attachments,omitempty" doc:"Of media: what the agent sent; the bytes are at /api/conversations/{id}/media/{hash}"`
	ToolCallID     string          `json:"tool_call_id,omitempty"`
	Tool           string          `json:"tool,omitempty"`
	Args           json.RawMessage `json:"args,omitempty"`
	Content        string          `json:"content,omitempty" doc:"Of tool_result: what the model is shown"`
	IsError        bool            `json:"is_error,omitempty"`
	ApprovalID     string          `json:"approval_id,omitempty"`
	OperationID    string          `json:"operation_id,omitempty"`
	Preview        string          `json:"preview,omitempty" doc:"Of approval_required: what would change"`
	State          RunState        `json:"state,omitempty" doc:"Of turn_complete: how it ended"`
	Code           Code            `json:"code,omitempty"`
	Message        string          `json:"message,omitempty"`
	Hint           string          `json:"hint,omitempty"`
	RetryAfterMS   int64           `json:"retry_after_ms,omitempty" doc:"Of error: when to say it again, if known"`
	Spent          *Amount         `json:"spent,omitempty"`
	At             *time.Time      `json:"at,omitempty"`
}

// Feedback is what a person thinks of a turn.
type Feedback struct {
	ID        string    `json:"id"`
	TurnID    string    `json:"turn_id"`
	UserID    string    `json:"user_id"`
	Score     int       `json:"score" minimum:"-1" maximum:"1" doc:"1 good, -1 bad, 0 neither"`
	Comment   string    `json:"comment,omitempty" maxLength:"8000"`
	CreatedAt time.Time `json:"created_at"`
}

// MessageInfo is the metadata of messages that are neither actions nor results.
type MessageInfo struct {
	Type        string            `json:"type" doc:"said, answer, woken, final"`
	User        string            `json:"user,omitempty"`
	Agent       string            `json:"agent,omitempty" doc:"Of what one agent asks another: who asks"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	Variables   map[string]string `json:"variables,omitempty" doc:"Of what was said: what goes into the agent's instructions"`
	Tools       []string          `json:"tools,omitempty" doc:"Of what was said: the tools of this turn, instead of the agent's own"`
	Model       string            `json:"model,omitempty" doc:"Of what was said: the model of this turn"`
	Move        int               `json:"move,omitempty" doc:"Of an answer: which of the turn, from 1"`
	Seen        string            `json:"seen,omitempty" doc:"Of an answer: the last message that it knew of"`
	Awaits      []string          `json:"awaits,omitempty" doc:"Of an answer: calls, by their messages, whose results it did not know of"`
	Spent       Amount            `json:"spent,omitzero" doc:"Of an answer: what it cost"`
	Answer      json.RawMessage   `json:"answer,omitempty" doc:"Of an answer: the whole of it, as it goes back to the model"`
	Given       *ClientHistory    `json:"given,omitempty" doc:"Of what a client with a history of its own said"`
}

// ClientHistory is what a client brings along that keeps its own history, such as one that speaks OpenAI's language.
type ClientHistory struct {
	History     string          `json:"history,omitempty" doc:"Where the history is kept, by hash: messages as models are told them"`
	System      string          `json:"system,omitempty" doc:"Goes behind the agent's own instructions"`
	Offered     json.RawMessage `json:"offered,omitempty" doc:"Tools that the client itself offers and answers"`
	Choice      string          `json:"choice,omitempty" doc:"Whether tools must be called, or none may be: required or none"`
	ChoiceTool  string          `json:"choice_tool,omitempty" doc:"The one tool that must be called"`
	OneCall     bool            `json:"one_call,omitempty" doc:"At most one tool is called at once"`
	StopAt      []string        `json:"stop_at,omitempty" doc:"Texts before which an answer ends"`
	MaxTokens   int             `json:"max_tokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"top_p,omitempty"`
	Effort      string          `json:"effort,omitempty" doc:"How hard the model is to think"`
	Previous    string          `json:"previous,omitempty" doc:"The response that this one goes on from"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"What the client wants to be shown again: texts by name"`
	Format      json.RawMessage `json:"format,omitempty" doc:"That the answer is to be JSON, and of what shape: a model.Format"`
}
