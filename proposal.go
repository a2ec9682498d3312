package reeve

import "time"

// ProposalState is where a proposal stands.
type ProposalState string

// The states of a proposal. From ProposalApplied on they say what became of one that was accepted, except that a
// proposal also goes stale when the agent makes it again on another base.
const (
	ProposalPending  ProposalState = "pending"  // waits for a person
	ProposalRejected ProposalState = "rejected" // a person said no, and that stays until a person reopens it
	ProposalAccepted ProposalState = "accepted" // a person said yes; it is being applied
	ProposalApplied  ProposalState = "applied"  // it happened
	ProposalFailed   ProposalState = "failed"   // its tool refused or failed: it did not happen
	ProposalDenied   ProposalState = "denied"   // the gate refused it when it came to be applied
	// the tool or what the change was based on is not what was proposed: nothing was applied
	ProposalStale   ProposalState = "stale"
	ProposalUnknown ProposalState = "unknown" // nobody can tell whether it happened
)

// ProposalStates lists the states of a proposal.
func ProposalStates() []ProposalState {
	return []ProposalState{ProposalPending, ProposalRejected, ProposalAccepted, ProposalApplied, ProposalFailed,
		ProposalDenied, ProposalStale, ProposalUnknown}
}

// IsVoid tells whether a proposal came to nothing. A rejected one can still be reopened.
func (s ProposalState) IsVoid() bool {
	return s == ProposalRejected || s == ProposalFailed || s == ProposalDenied || s == ProposalStale
}

// Proposal is a call that an agent may only propose: one item of a change set. It is bound to the exact arguments,
// tool, settings and base it was made with, and is applied at most once, under an operation id that derives from its
// own.
type Proposal struct {
	ID          string        `json:"id"`
	WorkspaceID string        `json:"workspace_id"`
	SetID       string        `json:"set_id" doc:"The change set: all that one run, or one session, proposed"`
	Ordinal     int           `json:"ordinal" doc:"Its place in the set, from 1"`
	Round       int           `json:"round" doc:"How often this agent has proposed exactly this, on whose behalf ever, from 1"`
	AgentID     string        `json:"agent_id"`
	RunID       string        `json:"run_id,omitempty"`
	ThreadID    string        `json:"thread_id"`
	CallID      string        `json:"call_id" doc:"The call that proposed it"`
	Tool        string        `json:"tool"`
	Args        string        `json:"args" doc:"The exact arguments"`
	ArgsHash    string        `json:"args_hash"`
	ToolVersion string        `json:"tool_version"`
	Settings    string        `json:"settings" doc:"Hash of the agent's settings for the tool"`
	Base        string        `json:"base,omitempty" doc:"What the change was based on"`
	Preview     string        `json:"preview,omitempty" doc:"What it would change, where the tool can say"`
	Reason      string        `json:"reason,omitempty" doc:"The caller's reason"`
	UserID      string        `json:"user_id,omitempty" doc:"On whose behalf"`
	State       ProposalState `json:"state"`
	DecidedBy   string        `json:"decided_by,omitempty"`
	Comment     string        `json:"comment,omitempty"`
	DecidedAt   *time.Time    `json:"decided_at,omitempty"`
	ReopenedBy  string        `json:"reopened_by,omitempty" doc:"Who made a rejected one pending again, the last time"`
	ReopenedAt  *time.Time    `json:"reopened_at,omitempty"`
	OperationID string        `json:"operation_id,omitempty" doc:"Of an accepted one: the operation that applies it"`
	Code        Code          `json:"code,omitempty" doc:"Of an accepted one that was not applied: why"`
	Message     string        `json:"message,omitempty"`
	CreatedAt   time.Time     `json:"created_at"`
}

// ChangeSet is what one run of an agent proposed; outside runs, what it proposed in one session.
type ChangeSet struct {
	ID        string                `json:"id"`
	AgentID   string                `json:"agent_id"`
	RunID     string                `json:"run_id,omitempty"`
	ThreadID  string                `json:"thread_id"`
	Counts    map[ProposalState]int `json:"counts" doc:"How many items are in each state"`
	CreatedAt time.Time             `json:"created_at"`
	Items     []Proposal            `json:"items,omitempty" doc:"In order, where one set is shown; the first 500"`
}

// ChangeSetKey is the id of the change set that collects what an agent proposes in a run or a session, as kind says.
func ChangeSetKey(workspace, agent, kind, id string) string {
	return Key(PrefixChangeSet, workspace, agent, kind, id)
}

// ProposalKey is the operation id under which a proposal is applied: however often and wherever it is accepted, it is
// one.
func ProposalKey(proposal string) string { return Key(PrefixOperation, "proposal", proposal) }

// SetDecision is what the answer to many items came to, for each of them: every item is decided on its own.
type SetDecision struct {
	Items []ItemDecision `json:"items"`
}

// ItemDecision is what the answer to one item came to: the item as it is now, or why it could not be answered so.
type ItemDecision struct {
	ID       string    `json:"id"`
	Proposal *Proposal `json:"proposal,omitempty"`
	Code     Code      `json:"code,omitempty" doc:"Why it could not be answered so"`
	Message  string    `json:"message,omitempty"`
	Hint     string    `json:"hint,omitempty"`
}
