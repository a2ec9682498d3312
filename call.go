package reeve

import "encoding/json"

// Via says where a call came in.
type Via string

// Where calls come in.
const (
	ViaREST   Via = "rest"
	ViaGo     Via = "go"
	ViaRun    Via = "run"
	ViaScript Via = "script"
	ViaMCP    Via = "mcp"

	ViaProposal Via = "proposal" // a person accepted what an agent had proposed
)

// FromBrain tells whether a call was made by the brain of a run, which makes none once the run is over.
func (v Via) FromBrain() bool { return v == ViaRun || v == ViaScript }

// Call is a request to pass the gate.
type Call struct {
	Workspace string          // whose
	Agent     string          // by whom
	Tool      string          // what
	Args      json.RawMessage // with what; need not be valid JSON yet
	Operation string          // operation id; empty means a new one for each call
	// names the thread agent:session:<Session>; empty means the run's or, without a run, the user's default session
	Session     string
	Run         string   // names the thread agent:run:<Run>, and parks with the run
	Automation  string   // set for calls of a script: the item rule applies
	Item        string   // the automation's item that a script makes it for
	Attempt     int      // at that item
	User        string   // on whose behalf
	Via         Via      // where it came in
	Tools       []string // an explicit list of tools for this call; nil means the agent's own
	PreviewOnly bool     // say what would change, change nothing
	Base        string   // apply only if what a preview was based on still holds
	Reason      string   // why, for the person who approves
	Ref         string   // the caller's own name of the call, such as a model's tool call id

	OnBehalfOf []Delegator // whose rights limit the call, besides those that its run names
}

// Result is what a call came to.
type Result struct {
	CallID      string  `json:"call_id" doc:"The call's id: reeve explain takes it. Empty for a call of a batch that was not made"`
	OperationID string  `json:"operation_id,omitempty" doc:"Set when the call changes something"`
	State       State   `json:"state,omitempty" doc:"Where the operation stands"`
	Content     string  `json:"content" doc:"What the tool said, scrubbed and cut to the cap"`
	IsError     bool    `json:"is_error" doc:"True when the tool refused or failed"`
	Code        Code    `json:"code,omitempty" doc:"Why it is an error, or why it waits"`
	Message     string  `json:"message,omitempty"`
	Hint        string  `json:"hint,omitempty"`
	Fields      []Field `json:"fields,omitempty"`
	Truncated   bool    `json:"truncated,omitempty"`
	Size        int     `json:"size" doc:"Bytes of the full output"`
	Hash        string  `json:"hash,omitempty" doc:"Address of the full output when it was cut: read it with output_read"`
	Base        string  `json:"base,omitempty" doc:"Of a preview: pass it back, with the same arguments, to apply this change or nothing"`
	Preview     bool    `json:"preview,omitempty" doc:"True when nothing was changed"`
	Deferred    bool    `json:"deferred,omitempty" doc:"True when its tool is asynchronous and its result comes later"`
	Replayed    bool    `json:"replayed,omitempty" doc:"True when this is the stored result of an earlier call"`
	ApprovalID  string  `json:"approval_id,omitempty" doc:"Set when a person must approve first"`
	ProposalID  string  `json:"proposal_id,omitempty" doc:"Set when the call became, or is already, an item of a change set"`
	Undo        *Undo   `json:"undo,omitempty" doc:"The call that takes this one back"`
	Changed     []Token `json:"changed,omitempty" doc:"What changed"`
	Spent       Amount  `json:"spent,omitzero" doc:"What it cost"`
}

// BatchResult is one call's end in a batch.
type BatchResult struct {
	Result Result
	Err    error
	Made   bool // false when it was not made, because one before it waits for a person
}

// Step is what one step of the gate said of a call.
type Step struct {
	Name    string  `json:"step"`
	Verdict Verdict `json:"verdict,omitempty"`
	Why     string  `json:"why,omitempty"`
}

// Verdict is a step's answer.
type Verdict string

// The verdicts.
const (
	Passed     Verdict = "passed" // also what a missing verdict means
	Refused    Verdict = "refused"
	Waits      Verdict = "waits"
	NotReached Verdict = "not_reached"
)

// Explanation is the whole of what the gate said of a call.
type Explanation struct {
	CallID       string     `json:"call_id,omitempty"`
	OperationID  string     `json:"operation_id,omitempty"`
	Agent        string     `json:"agent"`
	Tool         string     `json:"tool"`
	Hypothetical bool       `json:"hypothetical" doc:"True when nothing was run: this is what the gate would say now"`
	Steps        []Step     `json:"steps"`
	Outcome      string     `json:"outcome" doc:"In a sentence, what became of it"`
	Operation    *Operation `json:"operation,omitempty"`
	Approval     *Approval  `json:"approval,omitempty"`
	Proposal     *Proposal  `json:"proposal,omitempty" doc:"The proposal that the call made, or applied"`
}

// CallOutcome is what something came to that a call began and waits for.
type CallOutcome struct {
	Content string
	Err     *Error // why it came to nothing; nil means that it did not
	Spent   Amount // what it cost, which budgets have been charged with already
}

// DelegationRequest is what one agent asks another, by a call of its own.
type DelegationRequest struct {
	Workspace    string
	User         string // on whose behalf
	Agent        Agent  // who is asked
	Conversation string // where it joins in; empty means a fresh one
	Input        string
	Operation    string     // the call that waits for the answer
	Ancestors    []Ancestor // who led to it; the last one asks
	OnBehalfOf   []Delegator
}

// Requester is who asks.
func (a DelegationRequest) Requester() Ancestor { return a.Ancestors[len(a.Ancestors)-1] }
