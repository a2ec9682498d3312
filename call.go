package reeve

import "encoding/json"

// Via is the way a call entered Reeve.
type Via string

// The values of Via.
const (
	ViaREST   Via = "rest"
	ViaGo     Via = "go"
	ViaRun    Via = "run"
	ViaScript Via = "script"
	ViaMCP    Via = "mcp"

	ViaProposal Via = "proposal" // a person accepted a proposal
)

// IsFromBrain reports whether the brain of a run made the call. A brain makes no calls after its run has ended.
func (v Via) IsFromBrain() bool { return v == ViaRun || v == ViaScript }

// Call is a request to call a tool through the gate.
type Call struct {
	Workspace string
	Agent     string // id of the agent that makes the call
	Tool      string
	Args      json.RawMessage // as received; the gate parses and validates them
	Operation string          // operation id; empty means a new one
	// Session selects the thread agent:session:<Session>. Empty means the run's session or, without a run, the user's
	// default session.
	Session     string
	Run         string   // selects the thread agent:run:<Run>; the call parks with the run
	Automation  string   // set for calls of a script, to which the item rule applies
	Item        string   // item of the automation that a script makes the call for
	Attempt     int      // attempt at that item
	User        string   // user that the agent acts for
	Via         Via      // how the call entered
	Tools       []string // tools available to this call; nil means the agent's tools
	PreviewOnly bool     // return what would change and change nothing
	Base        string   // base of a preview; the call is refused as stale if the state has changed since
	Reason      string   // reason shown to the person who approves
	Ref         string   // the caller's id of the call, such as a model's tool call id

	OnBehalfOf []Delegator // agents whose rights limit the call, in addition to those of its run
}

// Result is the result of a call.
type Result struct {
	CallID      string  `json:"call_id" doc:"Id for reeve explain; empty if a batch skipped the call"`
	OperationID string  `json:"operation_id,omitempty" doc:"Set if the call changes something"`
	State       State   `json:"state,omitempty" doc:"State of the operation"`
	Content     string  `json:"content" doc:"Output of the tool, redacted and truncated"`
	IsError     bool    `json:"is_error" doc:"True if the tool refused or failed"`
	Code        Code    `json:"code,omitempty" doc:"Reason of the error or of the wait"`
	Message     string  `json:"message,omitempty"`
	Hint        string  `json:"hint,omitempty"`
	Fields      []Field `json:"fields,omitempty"`
	Truncated   bool    `json:"truncated,omitempty"`
	Size        int     `json:"size" doc:"Size of the full output in bytes"`
	Hash        string  `json:"hash,omitempty" doc:"Set if truncated: hash of the full output, for output_read"`
	Base        string  `json:"base,omitempty" doc:"Previews only: base to apply exactly this change"`
	Preview     bool    `json:"preview,omitempty" doc:"True if this is a preview"`
	Deferred    bool    `json:"deferred,omitempty" doc:"True if the tool is asynchronous and has no result yet"`
	Replayed    bool    `json:"replayed,omitempty" doc:"True if this is the stored result of an earlier call"`
	ApprovalID  string  `json:"approval_id,omitempty" doc:"Set if a person must approve first"`
	ProposalID  string  `json:"proposal_id,omitempty" doc:"Set if the call is a proposal in a change set"`
	Undo        *Undo   `json:"undo,omitempty" doc:"Call that undoes this one"`
	Changed     []Token `json:"changed,omitempty" doc:"Tokens of the changes"`
	Spent       Amount  `json:"spent,omitzero" doc:"Cost of the call"`

	Warnings []Warning `json:"warnings,omitempty" doc:"What is wrong with a result that is not an error"`
}

// Warning is a problem of a call that has taken effect.
type Warning struct {
	Code    string  `json:"code" doc:"output_invalid: the result does not match the tool's output_schema"`
	Message string  `json:"message"`
	Fields  []Field `json:"fields,omitempty"`
}

// OutputInvalid is the code of a warning about a result that does not match the tool's output schema.
const OutputInvalid = "output_invalid"

// BatchResult is the result of one call of a batch.
type BatchResult struct {
	Result Result
	Err    error
	Made   bool // false if the call was skipped because an earlier call waits for a person
}

// Step is the verdict of one step of the gate on a call.
type Step struct {
	Name    string  `json:"step"`
	Verdict Verdict `json:"verdict,omitempty"`
	Why     string  `json:"why,omitempty"`
}

// Verdict is the verdict of a gate step.
type Verdict string

// The verdicts.
const (
	Passed     Verdict = "passed" // also the meaning of an empty verdict
	Refused    Verdict = "refused"
	Waits      Verdict = "waits"
	NotReached Verdict = "not_reached"
)

// Explanation is the decision trace of a call: the verdict of each gate step, and the outcome.
type Explanation struct {
	CallID       string     `json:"call_id,omitempty"`
	OperationID  string     `json:"operation_id,omitempty"`
	Agent        string     `json:"agent"`
	Tool         string     `json:"tool"`
	Hypothetical bool       `json:"hypothetical" doc:"True if no call was made; shows the decision the gate would make now"`
	TraceID      string     `json:"trace_id,omitempty" doc:"OpenTelemetry trace of the call, if spans are exported"`
	Steps        []Step     `json:"steps"`
	Outcome      string     `json:"outcome" doc:"Outcome in one sentence"`
	Operation    *Operation `json:"operation,omitempty"`
	Approval     *Approval  `json:"approval,omitempty"`
	Proposal     *Proposal  `json:"proposal,omitempty" doc:"Proposal that the call made or applied"`
}

// CallOutcome is the outcome of work that a call started and waits for, such as a delegated run.
type CallOutcome struct {
	Content string
	Err     *Error // nil on success
	Spent   Amount // cost, already charged to budgets
	// Untrusted is true if the work has read text from outside, which the content may repeat.
	Untrusted bool
}

// DelegationRequest is a request of one agent to another, made by a tool call.
type DelegationRequest struct {
	Workspace    string
	User         string // user that the requester acts for
	Agent        Agent  // the agent that is to answer
	Conversation string // conversation that it joins; empty means a new one
	Input        string
	Operation    string     // operation of the call that waits for the answer
	Ancestors    []Ancestor // the runs that led to the request; the requester is the last
	OnBehalfOf   []Delegator
}

// Requester returns the run and agent that made the request.
func (a DelegationRequest) Requester() Ancestor { return a.Ancestors[len(a.Ancestors)-1] }
