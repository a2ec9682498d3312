package reeve

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"reeve/internal/redact"
)

// The bodies of the REST API, shared by server, client and CLI. Their tags become the OpenAPI document.

// ToolView is a tool as the API shows it. ParametersSchema is Parameters as text, for callers that expect that.
type ToolView struct {
	Tool
	ParametersSchema string          `json:"parameters_schema" doc:"The schema of the arguments, as text"`
	Config           json.RawMessage `json:"config,omitempty" doc:"Of an agent's tool: the agent's settings for it"`
}

// ToolList is a list of tools.
type ToolList struct {
	Tools []ToolView `json:"tools"`
}

// ToolRequest describes a user-defined tool.
type ToolRequest struct {
	ID           string          `json:"id" doc:"What callers say" minLength:"1" maxLength:"128"`
	Kind         ToolKind        `json:"kind,omitempty" enum:"http,script,mcp" doc:"Where its handler comes from; mcp is not in this build yet" default:"http"`
	Name         string          `json:"name,omitempty" maxLength:"200" doc:"What people read"`
	Description  string          `json:"description" minLength:"1" maxLength:"8000" doc:"What a model reads"`
	Parameters   json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments"`
	ConfigSchema json.RawMessage `json:"config_schema,omitempty" doc:"JSON Schema of the per-agent settings"`
	Category     string          `json:"category,omitempty" maxLength:"64"`
	Tier         Tier            `json:"tier,omitempty" enum:"read_only,side_effecting,privileged"`
	Effect       Effect          `json:"effect,omitempty" enum:"read,keyed,verifiable,unsafe,local" doc:"Absent means unsafe"`
	Capability   string          `json:"capability,omitempty" maxLength:"64"`
	Risk         Risk            `json:"risk,omitempty" enum:"low,medium,high"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty" minimum:"0" maximum:"3600000"`
	Retry        Retry           `json:"retry,omitzero" required:"false"`
	Identity     []string        `json:"identity,omitempty"`
	Async        bool            `json:"async,omitempty" doc:"Callers go on without waiting for it; an endpoint that answers 202 delivers the outcome later"`
	Cost         Amount          `json:"cost,omitzero" required:"false"`
	Spec         json.RawMessage `json:"spec" doc:"How it is reached; see docs/http-tools.md"`
}

// Tool is the row a request describes.
func (r ToolRequest) Tool(workspace string) Tool {
	if r.Kind == "" {
		r.Kind = HTTPTool
	}
	return Tool{ID: r.ID, WorkspaceID: workspace, Kind: r.Kind, Name: r.Name, Description: r.Description, Parameters: r.Parameters, ConfigSchema: r.ConfigSchema,
		Category: r.Category, Tier: r.Tier, Effect: r.Effect, Capability: r.Capability, Risk: r.Risk, TimeoutMS: r.TimeoutMS, Retry: r.Retry,
		Identity: r.Identity, Async: r.Async, Cost: r.Cost, Spec: r.Spec}
}

// AttachRequest gives an agent a tool.
type AttachRequest struct {
	ToolID string          `json:"tool_id" minLength:"1" maxLength:"128"`
	Config json.RawMessage `json:"config,omitempty" doc:"The agent's settings for the tool: an object"`
}

// AgentRequest makes or changes an agent. In a change, what is left out stays.
type AgentRequest struct {
	Name       *string         `json:"name,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$"`
	Kind       *string         `json:"kind,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-z][a-z0-9_.-]*$" doc:"Chooses the capability profile; assistant if left out"`
	Lifecycle  *Lifecycle      `json:"lifecycle,omitempty" enum:"created,active,dormant,destroyed" doc:"A new one is active if left out, and is not made as destroyed"`
	Mode       *Mode           `json:"mode,omitempty" enum:"autonomous,interactive,hybrid" doc:"Who may wake it"`
	ThrottleMS *int64          `json:"throttle_ms,omitempty" minimum:"0" maximum:"86400000" doc:"How long after a run changes and timers wait"`
	Categories *[]string       `json:"categories,omitempty" maxItems:"1000" doc:"The categories it may touch, by id or name; kept by id"`
	Policy     *Policy         `json:"policy,omitempty" doc:"Which calls a person must approve or accept"`
	Config     json.RawMessage `json:"config,omitempty" doc:"An object: the settings of its brain, schema_version, and extension by namespace; see docs/agents.md"`
}

// AgentList is a page of agents.
type AgentList struct {
	Agents []Agent `json:"agents"`
	Next   string  `json:"next_cursor,omitempty"`
}

// CallRequest asks for one call.
type CallRequest struct {
	Tool        string          `json:"tool" minLength:"1" maxLength:"128"`
	Args        json.RawMessage `json:"args,omitempty" doc:"The arguments: an object, or the text a model sent"`
	Session     string          `json:"session,omitempty" maxLength:"128" doc:"Names the thread; your own default session if left out"`
	Run         string          `json:"run,omitempty" maxLength:"128" doc:"Names the run the call belongs to"`
	Tools       []string        `json:"tools,omitempty" maxItems:"200" doc:"An explicit list of tools for this call"`
	PreviewOnly bool            `json:"preview_only,omitempty" doc:"Say what would change, change nothing"`
	Base        string          `json:"base,omitempty" maxLength:"512" doc:"The base that a preview gave: the call is STALE if what it is about has changed since. Pass the preview's arguments with it: of a file it binds what the file holds, and not what is to be done with it"`
	Reason      string          `json:"reason,omitempty" maxLength:"2000" doc:"Why, for the person who approves"`
	Key         string          `json:"idempotency_key,omitempty" maxLength:"255" doc:"Same as the Idempotency-Key header: of one agent, person, and session or run"`
}

// BatchRequest asks for several calls, as one model response does.
type BatchRequest struct {
	Calls []CallRequest `json:"calls" minItems:"1" maxItems:"64"`
}

// BatchAnswer is what each call of a batch came to, in order.
type BatchAnswer struct {
	Results []Result `json:"results"`
}

// OperationList is a page of operations.
type OperationList struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next_cursor,omitempty"`
}

// ApprovalList is a page of approvals.
type ApprovalList struct {
	Approvals []Approval `json:"approvals"`
	Next      string     `json:"next_cursor,omitempty"`
}

// MessageList is a page of a thread.
type MessageList struct {
	Messages []Message `json:"messages"`
	Next     string    `json:"next_cursor,omitempty"`
}

// DecisionRequest answers an approval.
type DecisionRequest struct {
	Decision string `json:"decision" enum:"approve,deny"`
	Comment  string `json:"comment,omitempty" maxLength:"2000"`
}

// ResolveRequest is a person's word on an operation of unknown outcome.
type ResolveRequest struct {
	Resolution Resolution `json:"resolution" enum:"happened,retry,skip" doc:"It happened; it did not happen, run it again; skip"`
	Tries      *int       `json:"tries,omitempty" minimum:"0" doc:"The operation's, as it was looked at: the answer is STALE if it was run again since. As it is when the answer arrives if left out"`
}

// Inbox is everything that waits for a person.
type Inbox struct {
	Approvals []Approval    `json:"approvals" doc:"Answer each with approve or deny"`
	Unknown   []Operation   `json:"unknown" doc:"Answer each with happened, retry or skip"`
	Proposals []Proposal    `json:"proposals" doc:"Accept or reject each, or its whole change set"`
	Items     []WaitingItem `json:"items" doc:"Items of automations that need attention: skip or reprocess each"`
	Questions []Errand      `json:"questions" doc:"Questions of the planner: answer each"`
	More      bool          `json:"more,omitempty" doc:"There are more of a kind than are shown"`

	Hold *Hold `json:"hold,omitempty" doc:"Set while the server is held: nothing goes on until a person resumes it"`
}

// Waiting is how much of an inbox waits for a person.
func (i Inbox) Waiting() int {
	return len(i.Approvals) + len(i.Unknown) + len(i.Proposals) + len(i.Items) + len(i.Questions)
}

// StopRequest turns the kill switch on.
type StopRequest struct {
	Agent  string `json:"agent,omitempty" maxLength:"128" doc:"One agent; everything in the workspace if left out"`
	Reason string `json:"reason,omitempty" maxLength:"500"`
}

// ProfileList is a workspace's capability profiles, built-in ones included.
type ProfileList struct {
	Profiles []Profile `json:"profiles"`
}

// ProfileRequest sets what agents of a kind may do.
type ProfileRequest struct {
	Capabilities []string `json:"capabilities" maxItems:"200"`
}

// BudgetList is a workspace's budgets.
type BudgetList struct {
	Budgets []Budget `json:"budgets"`
}

// BudgetRequest sets a subject's limits.
type BudgetRequest struct {
	Parent   string   `json:"parent,omitempty" maxLength:"200" doc:"Another subject this one draws on"`
	Limit    Amount   `json:"limit"`
	OnExceed OnExceed `json:"on_exceed,omitempty" enum:"end,park" default:"end"`
}

// TokenRequest asks for a bearer token.
type TokenRequest struct {
	Name       string   `json:"name" minLength:"1" maxLength:"100"`
	User       string   `json:"user,omitempty" maxLength:"100" doc:"Who acts with it; the maker if left out"`
	Role       Role     `json:"role" enum:"viewer,member,owner"`
	Workspaces []string `json:"workspaces,omitempty" maxItems:"100" doc:"Where it is valid; this workspace if left out"`
	ExpiresAt  string   `json:"expires_at,omitempty" format:"date-time" doc:"RFC 3339 with an offset; never if left out"`
}

// NewToken is a token just made: the only time it is shown.
type NewToken struct {
	AccessToken
	Token string `json:"token" doc:"Keep it: it is not shown again"`
}

// TokenList is the tokens valid in a workspace.
type TokenList struct {
	Tokens []AccessToken `json:"tokens"`
}

// SecretRequest stores a secret.
type SecretRequest struct {
	Value string `json:"value" minLength:"1" maxLength:"65536" doc:"Printable ASCII of 6 characters or more; line breaks at its end are left out"`
}

// SecretRule says what a secret must be. A shorter value occurs by chance in ordinary text, so that it could not be
// redacted; other characters fit into no header.
const SecretRule = "printable ASCII of 6 characters or more"

// SecretMark begins a reference to a secret in the spec of a tool, as in ${secret:NAME}.
const SecretMark = "${secret:"

// CheckSecret refuses a value that cannot be used as a secret. It ignores line breaks at the end, as files have them.
func CheckSecret(value string) error {
	value = strings.TrimRight(value, "\r\n")
	switch {
	case len(value) < redact.MinStored:
		return Wrong("/value", "is too short for a secret: it would occur by chance and could not be redacted", SecretRule)
	case strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0x7e }):
		return Wrong("/value", "cannot be used as a secret", SecretRule)
	case strings.Contains(value, Redacted):
		return Wrong("/value", "holds the mark that replaces a secret where it is shown", "the secret itself")
	}
	return nil
}

// SecretList is the names of a workspace's secrets.
type SecretList struct {
	Secrets []SecretName `json:"secrets"`
}

// WorkspaceRequest makes a workspace.
type WorkspaceRequest struct {
	ID   string `json:"id" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9_-]*$"`
	Name string `json:"name,omitempty" maxLength:"200"`
}

// WorkspaceList is the workspaces a token is valid in.
type WorkspaceList struct {
	Workspaces []Workspace `json:"workspaces"`
}

// Status is how a server is.
type Status struct {
	Version   string    `json:"version"`
	Engine    string    `json:"engine" doc:"sqlite or postgres"`
	Workspace Workspace `json:"workspace"`
	Role      Role      `json:"role" doc:"Of the token that asks"`
	User      string    `json:"user"`
	Waiting   int       `json:"waiting" doc:"How much waits for a person"`
	More      bool      `json:"more,omitempty" doc:"More than that waits: of each kind no more than the inbox shows is counted"`
	Broken    []string  `json:"broken,omitempty" doc:"Tools that cannot be called"`
	StartedAt time.Time `json:"started_at"`
	Hold      *Hold     `json:"hold,omitempty" doc:"Set while the server is held: nothing goes on until a person resumes it"`
	Node      string    `json:"node" doc:"This node's id in the version vectors of what nodes share"`
}

// CheckUp is the health of a server's parts.
type CheckUp struct {
	Checks []PartHealth `json:"checks"`
}

// PartHealth is one part's health.
type PartHealth struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// OutputSlice is a part of a kept output.
type OutputSlice struct {
	Content    string `json:"content" doc:"Text, of whole characters"`
	Data       []byte `json:"data,omitempty" doc:"Instead of content, the bytes in base64: of what is no text, or when the slice does not begin or end with a whole character"`
	Offset     int    `json:"offset"`
	NextOffset int    `json:"next_offset,omitempty" doc:"Where to go on; absent at the end"`
	Size       int    `json:"size" doc:"Bytes of the whole output"`
}

// NewOutputSlice makes the slice of what is shown of the bytes from offset to next.
func NewOutputSlice(b []byte, offset, next, size int) OutputSlice {
	s := OutputSlice{Offset: offset, Size: size}
	if utf8.Valid(b) {
		s.Content = string(b)
	} else {
		s.Data = b // JSON would put replacement characters in
	}
	if next < size {
		s.NextOffset = next
	}
	return s
}

// Problem is how the API reports an error (RFC 9457).
type Problem struct {
	Type      string  `json:"type" doc:"about:blank"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail" doc:"What was wrong"`
	Code      Code    `json:"code" doc:"What kind of error this is"`
	Hint      string  `json:"hint,omitempty" doc:"What to do about it"`
	Errors    []Field `json:"errors,omitempty" doc:"Which inputs were wrong"`
	RequestID string  `json:"request_id"`
	CallID    string  `json:"call_id,omitempty" doc:"The refused call"`
}
