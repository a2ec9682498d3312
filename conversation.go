package reeve

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Conversation is an interactive thread of users and agents. Each turn is a run of an agent.
type Conversation struct {
	ID           string        `json:"id"`
	WorkspaceID  string        `json:"workspace_id"`
	AgentID      string        `json:"agent_id" doc:"Agent that answers by default"`
	UserID       string        `json:"user_id" doc:"User who started it"`
	Title        string        `json:"title,omitempty"`
	Origin       string        `json:"origin,omitempty" doc:"How it was started: chat, openai or playground"`
	State        string        `json:"state" doc:"active or completed; only a person completes it"`
	Turns        int           `json:"turns" doc:"Number of turns so far"`
	Participants []Participant `json:"participants,omitempty"`
	CreatedAt    time.Time     `json:"created_at"`
	UpdatedAt    time.Time     `json:"updated_at"`
}

// The states of a conversation.
const (
	ConversationActive    = "active"
	ConversationCompleted = "completed"
)

// ThreadID returns the id of the conversation's thread.
func (c Conversation) ThreadID() string { return SessionThread(c.AgentID, c.ID) }

// HasUser reports whether a user takes part in the conversation.
func (c Conversation) HasUser(user string) bool {
	return slices.ContainsFunc(c.Participants, func(p Participant) bool {
		return p.Kind == UserParticipant && p.ID == user
	})
}

// SharedDefaultSession is the default session of the server's owner and of calls without a user.
const SharedDefaultSession = "default"

// DefaultSession returns the session of the user's calls that name no session.
func DefaultSession(user string) string {
	if user == "" || user == OwnerUser {
		return SharedDefaultSession
	}
	return SharedDefaultSession + ":" + user
}

// IsDefaultSession reports whether session is the default session of any user.
func IsDefaultSession(session string) bool {
	return session == SharedDefaultSession || strings.HasPrefix(session, SharedDefaultSession+":")
}

// SharedSessionPrefix begins the name of a session whose files, scratchpad and shell all members share.
const SharedSessionPrefix = "shared:"

// OwnSessionPrefix begins the stored names of the sessions that users have named.
const OwnSessionPrefix = "user:"

// PrivateSessionPrefix returns what the stored names of a user's own sessions begin with. The escaped user contains no
// colon, so that no user's prefix begins with that of another.
func PrivateSessionPrefix(user string) string { return OwnSessionPrefix + url.QueryEscape(user) + ":" }

// SessionThread returns the id of the thread of an agent's session.
func SessionThread(agent, session string) string { return agent + ":session:" + session }

// AutomationSession is the session whose files and scratchpad all runs of an automation share.
const AutomationSession = "automation"

// RunThread returns the id of a run's own thread.
func RunThread(agent, run string) string { return agent + ":run:" + run }

// Participant is a user or an agent that takes part in a conversation.
type Participant struct {
	Kind    string    `json:"kind" doc:"user or agent"`
	ID      string    `json:"id"`
	AddedBy string    `json:"added_by,omitempty" doc:"Turn or person that added the participant"`
	AddedAt time.Time `json:"added_at"`
}

// The kinds of participant.
const (
	UserParticipant  = "user"
	AgentParticipant = "agent"
)

// Turn is a run in a conversation.
type Turn struct {
	ID             string     `json:"id" doc:"Id of the run"`
	ConversationID string     `json:"conversation_id"`
	AgentID        string     `json:"agent_id"`
	UserID         string     `json:"user_id,omitempty"`
	ParentID       string     `json:"parent_id,omitempty" doc:"Turn or run whose call started it"`
	State          RunState   `json:"state"`
	Input          string     `json:"input"`
	Output         string     `json:"output,omitempty" doc:"Final answer"`
	Code           Code       `json:"code,omitempty"`
	Message        string     `json:"message,omitempty"`
	ModelRequests  int        `json:"model_requests" doc:"Number of model requests"`
	Issues         TurnIssues `json:"issues,omitzero"`
	Attempts       int        `json:"attempts"`
	Spent          Amount     `json:"spent"`
	StartedAt      time.Time  `json:"started_at"`
	FinishedAt     *time.Time `json:"finished_at,omitempty"`
}

// TurnIssues lists problems of a turn that did not end it.
type TurnIssues struct {
	ToolFailures     int  `json:"tool_failures,omitempty"`
	ExtractionFailed bool `json:"memory_extraction_failed,omitempty"`
	LimitReached     bool `json:"limit_reached,omitempty" doc:"The turn reached max_model_requests and had to give a final answer"`

	AnswerCut CutReason `json:"answer_cut,omitempty" enum:"length,refused" doc:"Why an answer is incomplete"`
}

// CutReason is the reason why an answer is incomplete.
type CutReason string

// The reasons.
const (
	CutLength  CutReason = "length"  // the answer reached its token limit
	CutRefused CutReason = "refused" // the model or the provider's filter declined to continue
)

// Turn returns the run as a turn of its conversation.
func (r Run) Turn() Turn {
	return Turn{ID: r.ID, ConversationID: r.SessionID, AgentID: r.AgentID, UserID: r.UserID, ParentID: r.ParentID,
		State: r.State, Input: r.Input, Output: r.Output, Code: r.Code,
		Message: r.Message, ModelRequests: r.ModelRequests, Issues: r.Issues, Attempts: r.Attempts, Spent: r.Spent,
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt}
}

// Attachment is a file sent with a message. The store keeps its bytes under their hash.
type Attachment struct {
	ID        string `json:"id,omitempty" doc:"Set by the server: id in the conversation"`
	Number    int    `json:"number,omitempty" doc:"Set by the server: number in the conversation, from 1"`
	Name      string `json:"name,omitempty" maxLength:"255"`
	MediaType string `json:"media_type" maxLength:"255" doc:"For example image/png"`
	Hash      string `json:"hash,omitempty" doc:"SHA-256 of the stored bytes"`
	Size      int    `json:"size,omitempty"`
	Data      []byte `json:"data,omitempty" doc:"Bytes in base64; requests only"`
	URL       string `json:"url,omitempty" maxLength:"4096" doc:"URL to fetch the file from, instead of data"`
	Caption   string `json:"caption,omitempty" doc:"Set by the server: text that an agent sent with the file"`
}

// StoredAttachment is a file that a person attached to a turn of a conversation.
type StoredAttachment struct {
	ID        string    `json:"id"`
	Number    int       `json:"number" doc:"Number in the conversation, from 1"`
	TurnID    string    `json:"turn_id"`
	UserID    string    `json:"user_id,omitempty" doc:"Who attached it"`
	Name      string    `json:"name,omitempty"`
	MediaType string    `json:"media_type"`
	Size      int       `json:"size"`
	Hash      string    `json:"hash" doc:"SHA-256 of the bytes"`
	CreatedAt time.Time `json:"created_at"`
}

// FileName returns the name of an attachment. An attachment without a name gets one from its number.
func (a StoredAttachment) FileName() string {
	if a.Name != "" {
		return a.Name
	}
	return "attachment-" + strconv.Itoa(a.Number)
}

// FrameType is the type of a frame.
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
	FrameReport    FrameType = "report"
)

// Frame is one event that the clients of a conversation receive. Its type decides which fields are set. All frames
// except tokens are stored: a client that reconnects with the last Seq it saw receives each later frame once. The
// message_complete frame after a sequence of tokens has the whole text.
type Frame struct {
	Seq            int64           `json:"seq,omitempty" doc:"Sequence number, strictly increasing per conversation"`
	LastSeq        int64           `json:"last_seq,omitempty" doc:"connected: latest seq; missed frames follow"`
	Type           FrameType       `json:"type"`
	ConversationID string          `json:"conversation_id,omitempty"`
	TurnID         string          `json:"turn_id,omitempty"`
	AgentID        string          `json:"agent_id,omitempty"`
	UserID         string          `json:"user_id,omitempty"`
	ByAgentID      string          `json:"by_agent_id,omitempty" doc:"turn_started: requesting agent, if any"`
	ParentID       string          `json:"parent_id,omitempty" doc:"turn_started: turn or run whose call started it"`
	MessageID      string          `json:"message_id,omitempty"`
	Text           string          `json:"text,omitempty" doc:"Text of a token, answer, input or report"`
	Title          string          `json:"title,omitempty" doc:"report: name of the schedule, or how its run failed"`
	ScheduleID     string          `json:"schedule_id,omitempty" doc:"report: schedule whose run ended"`
	Final          bool            `json:"final,omitempty" doc:"message_complete: last message of the turn"`
	Cut            CutReason       `json:"cut,omitempty" enum:"length,refused" doc:"Why the text is incomplete"`
	Reasoning      bool            `json:"reasoning,omitempty" doc:"token: part of the reasoning, not the answer"`
	Discard        bool            `json:"discard,omitempty" doc:"token: discard earlier tokens of this message"`
	Attachments    []Attachment    `json:"attachments,omitempty" doc:"turn_started: attached files, served at /api/conversations/{id}/attachments/{id}. media, report: files that an agent sent, at /api/conversations/{id}/media/{hash}"`
	ToolCallID     string          `json:"tool_call_id,omitempty"`
	Tool           string          `json:"tool,omitempty"`
	Args           json.RawMessage `json:"args,omitempty"`
	Content        string          `json:"content,omitempty" doc:"tool_result: output shown to the model"`
	IsError        bool            `json:"is_error,omitempty"`
	ApprovalID     string          `json:"approval_id,omitempty"`
	OperationID    string          `json:"operation_id,omitempty"`
	Preview        string          `json:"preview,omitempty" doc:"approval_required: what would change"`
	State          RunState        `json:"state,omitempty" doc:"turn_complete, report: final state"`
	Code           Code            `json:"code,omitempty"`
	Message        string          `json:"message,omitempty"`
	Hint           string          `json:"hint,omitempty"`
	RetryAfterMS   int64           `json:"retry_after_ms,omitempty" doc:"error: delay before a retry, if known"`
	Spent          *Amount         `json:"spent,omitempty"`
	At             *time.Time      `json:"at,omitempty"`
}

// Feedback is a user's rating of a turn.
type Feedback struct {
	ID        string    `json:"id"`
	TurnID    string    `json:"turn_id"`
	UserID    string    `json:"user_id"`
	Score     int       `json:"score" minimum:"-1" maximum:"1" doc:"1 good, 0 neutral, -1 bad"`
	Comment   string    `json:"comment,omitempty" maxLength:"8000"`
	CreatedAt time.Time `json:"created_at"`
}

// MessageInfo is the metadata of a message that is neither an action nor a result.
type MessageInfo struct {
	Type          string            `json:"type" doc:"said, answer, woken or final"`
	User          string            `json:"user,omitempty"`
	Agent         string            `json:"agent,omitempty" doc:"Requesting agent, if one agent asks another"`
	Attachments   []Attachment      `json:"attachments,omitempty"`
	Variables     map[string]string `json:"variables,omitempty" doc:"said: values for the agent's instructions"`
	Tools         []string          `json:"tools,omitempty" doc:"said: tools of this turn, instead of the agent's"`
	Model         string            `json:"model,omitempty" doc:"said: model of this turn"`
	ModelRequest  int               `json:"model_request,omitempty" doc:"answer: number of the model request within the turn, from 1"`
	LastMessage   string            `json:"seen,omitempty" doc:"answer: last message sent to the model"`
	PendingCalls  []string          `json:"awaits,omitempty" doc:"answer: action messages that had no result when the model was asked"`
	Spent         Amount            `json:"spent,omitzero" doc:"answer: cost"`
	Answer        json.RawMessage   `json:"answer,omitempty" doc:"answer: whole answer, as sent back to the model"`
	ClientHistory *ClientHistory    `json:"given,omitempty" doc:"said: history of a client that keeps its own"`
}

// UnmarshalJSON also accepts the name move for model_request, which schema version 100 stored.
func (m *MessageInfo) UnmarshalJSON(b []byte) error {
	type fields MessageInfo
	in := struct {
		*fields
		Move int `json:"move"`
	}{fields: (*fields)(m)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if m.ModelRequest == 0 {
		m.ModelRequest = in.Move
	}
	return nil
}

// ClientHistory is the history and the settings sent by a client that keeps its own history, such as an OpenAI client.
type ClientHistory struct {
	History     string          `json:"history,omitempty" doc:"Hash of the stored history, in model format"`
	System      string          `json:"system,omitempty" doc:"Appended to the agent's instructions"`
	Offered     json.RawMessage `json:"offered,omitempty" doc:"Tools that the client executes itself"`
	Choice      string          `json:"choice,omitempty" doc:"Tool choice: required or none"`
	ChoiceTool  string          `json:"choice_tool,omitempty" doc:"Tool that must be called"`
	OneCall     bool            `json:"one_call,omitempty" doc:"Allow at most one tool call per answer"`
	StopAt      []string        `json:"stop_at,omitempty" doc:"Texts at which the answer stops"`
	MaxTokens   int             `json:"max_tokens,omitempty"`
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"top_p,omitempty"`
	Effort      string          `json:"effort,omitempty" doc:"Reasoning effort"`
	Previous    string          `json:"previous,omitempty" doc:"Id of the response that this one continues"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"Metadata to return to the client"`
	Format      json.RawMessage `json:"format,omitempty" doc:"Required JSON format of the answer"`
}
