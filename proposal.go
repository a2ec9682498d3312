package reeve

import "time"

// ProposalState is the state of a proposal.
type ProposalState string

// The states of a proposal. The states from ProposalApplied on are outcomes of an accepted proposal. A proposal also
// becomes stale when the agent makes it again on another base.
const (
	ProposalPending  ProposalState = "pending"  // waits for a person
	ProposalRejected ProposalState = "rejected" // refused by a person, who may reopen it
	ProposalAccepted ProposalState = "accepted" // accepted by a person; being applied
	ProposalApplied  ProposalState = "applied"  // the change was made
	ProposalFailed   ProposalState = "failed"   // the tool refused or failed, without effect
	ProposalDenied   ProposalState = "denied"   // the gate refused the call that applies it
	// ProposalStale means that the tool or the base has changed since. Nothing was applied.
	ProposalStale   ProposalState = "stale"
	ProposalUnknown ProposalState = "unknown" // the change may have been made
)

// ProposalStates lists the states of a proposal.
func ProposalStates() []ProposalState {
	return []ProposalState{ProposalPending, ProposalRejected, ProposalAccepted, ProposalApplied, ProposalFailed,
		ProposalDenied, ProposalStale, ProposalUnknown}
}

// IsVoid reports whether the proposal has no effect. A rejected one can still be reopened.
func (s ProposalState) IsVoid() bool {
	return s == ProposalRejected || s == ProposalFailed || s == ProposalDenied || s == ProposalStale
}

// Proposal is a call that an agent may only propose, as one item of a change set. It is valid for the exact arguments,
// tool, settings and base of that call. It is applied at most once, because its operation id derives from its id.
type Proposal struct {
	ID          string        `json:"id"`
	WorkspaceID string        `json:"workspace_id"`
	SetID       string        `json:"set_id" doc:"Change set of the run or session"`
	Ordinal     int           `json:"ordinal" doc:"Position in the change set, from 1"`
	Round       int           `json:"round" doc:"How often this agent has proposed this call, from 1"`
	AgentID     string        `json:"agent_id"`
	RunID       string        `json:"run_id,omitempty"`
	ThreadID    string        `json:"thread_id"`
	CallID      string        `json:"call_id" doc:"Call that proposed it"`
	Tool        string        `json:"tool"`
	Args        string        `json:"args" doc:"Exact arguments, as canonical JSON"`
	ArgsHash    string        `json:"args_hash"`
	ToolVersion string        `json:"tool_version"`
	Settings    string        `json:"settings" doc:"Hash of the agent's settings for the tool"`
	Base        string        `json:"base,omitempty" doc:"What the change was based on"`
	Preview     string        `json:"preview,omitempty" doc:"What would change, if the tool supports previews"`
	Reason      string        `json:"reason,omitempty" doc:"Reason given by the caller"`
	UserID      string        `json:"user_id,omitempty" doc:"User that the agent acts for"`
	State       ProposalState `json:"state"`
	DecidedBy   string        `json:"decided_by,omitempty"`
	Comment     string        `json:"comment,omitempty"`
	DecidedAt   *time.Time    `json:"decided_at,omitempty"`
	ReopenedBy  string        `json:"reopened_by,omitempty" doc:"Who last reopened it after a rejection"`
	ReopenedAt  *time.Time    `json:"reopened_at,omitempty"`
	OperationID string        `json:"operation_id,omitempty" doc:"Accepted proposals only: operation that applies it"`
	Code        Code          `json:"code,omitempty" doc:"Why an accepted proposal was not applied"`
	Message     string        `json:"message,omitempty"`
	CreatedAt   time.Time     `json:"created_at"`
	// Stale is set when a member reads one pending proposal.
	Stale string `json:"stale,omitempty" doc:"Why accepting it would apply nothing, such as a changed file; not in lists"`

	PrivateTo string `json:"-"` // as in the operation of the call that proposed it
}

// ChangeSet is the list of proposals of one run. Outside runs it is the list of proposals of one session.
type ChangeSet struct {
	ID        string                `json:"id"`
	AgentID   string                `json:"agent_id"`
	RunID     string                `json:"run_id,omitempty"`
	ThreadID  string                `json:"thread_id"`
	Counts    map[ProposalState]int `json:"counts" doc:"Number of items by state"`
	CreatedAt time.Time             `json:"created_at"`
	Items     []Proposal            `json:"items,omitempty" doc:"First 500 items in order; absent in lists"`
}

// ChangeSetKey returns the id of an agent's change set for a run or a session. kind says which of the two id names.
func ChangeSetKey(workspace, agent, kind, id string) string {
	return DeriveID(PrefixChangeSet, workspace, agent, kind, id)
}

// ProposalKey returns the operation id that applies a proposal. It is the same however often the proposal is accepted.
func ProposalKey(proposal string) string { return DeriveID(PrefixOperation, "proposal", proposal) }

// SetDecision is the result of a decision on several items. Each item is decided on its own.
type SetDecision struct {
	Items []ItemDecision `json:"items"`
}

// ItemDecision is the result of a decision on one item: the item after the decision, or an error.
type ItemDecision struct {
	ID       string    `json:"id"`
	Proposal *Proposal `json:"proposal,omitempty"`
	Code     Code      `json:"code,omitempty" doc:"Why the decision failed"`
	Message  string    `json:"message,omitempty"`
	Hint     string    `json:"hint,omitempty"`
}
