package reeve

import (
	"encoding/json"
	"time"
)

// MessageKind is the kind of a message.
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

// Message is an immutable entry in a thread's log. A call appears as an action message and, once it has a result, as a
// result message with the ActionID of the action.
type Message struct {
	ID          string          `json:"id"`
	WorkspaceID string          `json:"workspace_id"`
	ThreadID    string          `json:"thread_id"`
	AgentID     string          `json:"agent_id"`
	RunID       string          `json:"run_id,omitempty" doc:"Run that wrote it"`
	Kind        MessageKind     `json:"kind"`
	PrevID      string          `json:"prev_id,omitempty" doc:"Previous message of the thread"`
	ActionID    string          `json:"action_id,omitempty" doc:"Results only: the action"`
	OperationID string          `json:"operation_id,omitempty"`
	Content     string          `json:"content" doc:"Text; of an action the arguments, of a result the output"`
	Metadata    json.RawMessage `json:"metadata" doc:"ActionInfo, ResultInfo or MessageInfo, by kind"`
	CreatedAt   time.Time       `json:"created_at"`
}

// ActionInfo is the metadata of an action message.
type ActionInfo struct {
	Type        string   `json:"type" doc:"tool_call"`
	Tool        string   `json:"tool"`
	ToolVersion string   `json:"tool_version,omitempty"`
	ArgsHash    string   `json:"args_hash,omitempty"`
	Categories  []string `json:"categories,omitempty" doc:"Categories of the agent at the time of the call"`
	Via         Via      `json:"via,omitempty" doc:"How the call entered"`
	User        string   `json:"user,omitempty"`
	Session     string   `json:"session,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Ref         string   `json:"ref,omitempty" doc:"The caller's id of the call, such as a model's tool call id"`
	Item        string   `json:"item,omitempty" doc:"Item of the automation"`
	Attempt     int      `json:"attempt,omitempty" doc:"Attempt at the item"`
	Preview     bool     `json:"preview,omitempty"`
	Tools       []string `json:"tools,omitempty" doc:"Tools available to the call"`
	Base        string   `json:"base,omitempty"`
	ProposalID  string   `json:"proposal_id,omitempty" doc:"Proposal that the call applies"`
	Undoes      string   `json:"undoes,omitempty" doc:"Operation that the call undoes"`
	Replaces    string   `json:"replaces,omitempty" doc:"Approval whose arguments a person changed in this call"`
	TraceID     string   `json:"trace_id,omitempty" doc:"OpenTelemetry trace of the call, if spans are exported"`
	Trace       []Step   `json:"trace,omitempty" doc:"Verdicts of the gate's steps"`
}

// UnmarshalJSON also accepts the name trail for trace, which schema version 100 stored.
func (a *ActionInfo) UnmarshalJSON(b []byte) error {
	type fields ActionInfo
	in := struct {
		*fields
		Trail []Step `json:"trail"`
	}{fields: (*fields)(a)}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if a.Trace == nil {
		a.Trace = in.Trail
	}
	return nil
}

// ResultInfo is the metadata of a result message.
type ResultInfo struct {
	Status     string  `json:"status" doc:"success or error"`
	Code       Code    `json:"code,omitempty"`
	Message    string  `json:"message,omitempty"`
	Hint       string  `json:"hint,omitempty"`
	Fields     []Field `json:"fields,omitempty"`
	Step       Step    `json:"step,omitzero" doc:"Step that refused the call"`
	Size       int     `json:"size,omitempty" doc:"Size in bytes before truncation"`
	Hash       string  `json:"hash,omitempty" doc:"Hash of the full output, if truncated"`
	Base       string  `json:"base,omitempty"`
	Changed    []Token `json:"changed,omitempty"`
	Undo       *Undo   `json:"undo,omitempty"`
	Spent      Amount  `json:"spent,omitzero"`
	Attempts   int     `json:"attempts,omitempty"`
	ProposalID string  `json:"proposal_id,omitempty" doc:"Proposal that the call became"`
	Truncated  bool    `json:"truncated,omitempty"`
	ReplacedBy string  `json:"replaced_by,omitempty" doc:"Operation that runs instead, with the arguments of a person"`
	Untrusted  bool    `json:"untrusted,omitempty" doc:"True if the result has text from outside, such as a web page or a mail"`

	Warnings []Warning `json:"warnings,omitempty"`
}

// Token names something that changed. Subscriptions match tokens by class and name.
type Token struct {
	Class TokenClass `json:"class"`
	Name  string     `json:"name"`
}

// Check returns an error if the class is unknown or the name cannot be stored.
func (k Token) Check() error {
	if k.Class != SemanticKey && k.Class != Subtype && k.Class != EntityID {
		return Errorf(Validation, "unknown token class %q; use key, subtype or id", k.Class)
	}
	if !IsStorableText(k.Name) {
		return Errorf(Validation, "token name %q is not UTF-8 without NUL", k.Name)
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
