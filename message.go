package reeve

import (
	"encoding/json"
	"time"
)

// MessageKind says what a message is.
type MessageKind string

// The kinds of message.
const (
	Observation MessageKind = "observation"
	UserMessage MessageKind = "user"
	Thought     MessageKind = "thought"
	Action      MessageKind = "action"
	ToolResult  MessageKind = "tool_result"
	Summary     MessageKind = "summary"
	SystemNote  MessageKind = "system"
)

// Message is an entry in a thread's log. A call is shown as an action and, once there is one, its result, which names
// the action as ActionID.
type Message struct {
	ID          string          `json:"id"`
	WorkspaceID string          `json:"workspace_id"`
	ThreadID    string          `json:"thread_id"`
	AgentID     string          `json:"agent_id"`
	RunID       string          `json:"run_id,omitempty" doc:"The run it was written in"`
	Kind        MessageKind     `json:"kind"`
	PrevID      string          `json:"prev_id,omitempty" doc:"The message before it in the thread"`
	ActionID    string          `json:"action_id,omitempty" doc:"Of a result: the action it answers"`
	OperationID string          `json:"operation_id,omitempty"`
	Content     string          `json:"content" doc:"Of an action: the arguments; of a result: what the caller is shown"`
	Metadata    json.RawMessage `json:"metadata" doc:"An action or result envelope, by kind"`
	CreatedAt   time.Time       `json:"created_at"`
}

// ActionInfo is the metadata of an action message.
type ActionInfo struct {
	Type        string   `json:"type" doc:"tool_call"`
	Tool        string   `json:"tool"`
	ToolVersion string   `json:"tool_version,omitempty"`
	ArgsHash    string   `json:"args_hash,omitempty"`
	Categories  []string `json:"categories,omitempty" doc:"The agent's categories when it was judged"`
	Via         Via      `json:"via,omitempty" doc:"Where the call came in"`
	User        string   `json:"user,omitempty"`
	Session     string   `json:"session,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Ref         string   `json:"ref,omitempty" doc:"The caller's own name of the call, such as a model's tool call id"`
	Item        string   `json:"item,omitempty" doc:"The automation's item that a script made the call for"`
	Attempt     int      `json:"attempt,omitempty" doc:"The attempt at that item"`
	Preview     bool     `json:"preview,omitempty"`
	Tools       []string `json:"tools,omitempty" doc:"The call's own list of tools"`
	Base        string   `json:"base,omitempty"`
	ProposalID  string   `json:"proposal_id,omitempty" doc:"The proposal that the call applies"`
	Undoes      string   `json:"undoes,omitempty" doc:"The operation that the call takes back"`
	Trail       []Step   `json:"trail,omitempty" doc:"What each step of the gate said"`
}

// ResultInfo is the metadata of a result message.
type ResultInfo struct {
	Status     string  `json:"status" doc:"success or error"`
	Code       Code    `json:"code,omitempty"`
	Message    string  `json:"message,omitempty"`
	Hint       string  `json:"hint,omitempty"`
	Fields     []Field `json:"fields,omitempty"`
	Step       Step    `json:"step,omitzero" doc:"The step that refused"`
	Size       int     `json:"size,omitempty" doc:"Bytes before it was cut"`
	Hash       string  `json:"hash,omitempty" doc:"Address of the full output when it was cut"`
	Base       string  `json:"base,omitempty"`
	Changed    []Token `json:"changed,omitempty"`
	Undo       *Undo   `json:"undo,omitempty"`
	Spent      Amount  `json:"spent,omitzero"`
	Attempts   int     `json:"attempts,omitempty"`
	ProposalID string  `json:"proposal_id,omitempty" doc:"Nothing was changed: the call became, or is already, this item of a change set"`
	Truncated  bool    `json:"truncated,omitempty"`
}

// Token is a notification of a change, in one of three classes, which never mix.
type Token struct {
	Class TokenClass `json:"class"`
	Name  string     `json:"name"`
}

// Check refuses a token that cannot be recorded: one of no known class, or whose name no database takes.
func (k Token) Check() error {
	if k.Class != SemanticKey && k.Class != Subtype && k.Class != EntityID {
		return Errorf(Validation, "a token is of class key, subtype or id, and not %q", k.Class)
	}
	if !IsStorableText(k.Name) {
		return Errorf(Validation, "the name of a token must be UTF-8 without NUL, and not %q", k.Name)
	}
	return nil
}

// TokenClass is the class of a notification token.
type TokenClass string

// The token classes.
const (
	SemanticKey TokenClass = "key"
	Subtype     TokenClass = "subtype"
	EntityID    TokenClass = "id"
)
