package reeve

import (
	"encoding/json"
	"time"
)

// ApprovalState is the state of an approval.
type ApprovalState string

// The states of an approval. All but Pending are final.
const (
	ApprovalPending  ApprovalState = "pending"
	ApprovalApproved ApprovalState = "approved"
	ApprovalDenied   ApprovalState = "denied"
	ApprovalExpired  ApprovalState = "expired"
	// ApprovalLapsed means approved but not run, because the tool, the policy or the base had changed or the run had
	// ended.
	ApprovalLapsed ApprovalState = "lapsed"
	// ApprovalReplaced means that a person changed the arguments. The call did not run; another call asks instead.
	ApprovalReplaced ApprovalState = "replaced"
)

// ApprovalStates lists the states of an approval.
func ApprovalStates() []ApprovalState {
	return []ApprovalState{ApprovalPending, ApprovalApproved, ApprovalDenied, ApprovalExpired, ApprovalLapsed,
		ApprovalReplaced}
}

// Approval is a parked call that waits for a person. It is valid for the exact arguments, tool version and policy of
// that call, and is used once.
type Approval struct {
	ID          string        `json:"id"`
	WorkspaceID string        `json:"workspace_id"`
	OperationID string        `json:"operation_id"`
	CallID      string        `json:"call_id"`
	AgentID     string        `json:"agent_id"`
	Tool        string        `json:"tool"`
	Args        string        `json:"args" doc:"Exact arguments, as canonical JSON"`
	ArgsHash    string        `json:"args_hash"`
	ToolVersion string        `json:"tool_version"`
	Policy      string        `json:"policy"`
	Why         string        `json:"why" doc:"Why the call needs approval"`
	Reason      string        `json:"reason,omitempty" doc:"Reason given by the caller"`
	Preview     string        `json:"preview,omitempty" doc:"What the call would change, if the tool supports previews"`
	State       ApprovalState `json:"state"`
	DecidedBy   string        `json:"decided_by,omitempty"`
	Comment     string        `json:"comment,omitempty"`
	DecidedAt   *time.Time    `json:"decided_at,omitempty"`
	ExpiresAt   time.Time     `json:"expires_at"`
	CreatedAt   time.Time     `json:"created_at"`

	PrivateTo string `json:"-"` // as in the operation
}

// HasExpired reports whether the approval is pending and its time is over at now.
func (a Approval) HasExpired(now time.Time) bool {
	return a.State == ApprovalPending && !a.ExpiresAt.After(now)
}

// AsOf returns the approval with its state at now. A pending approval may have expired before the store records it.
func (a Approval) AsOf(now time.Time) Approval {
	if a.HasExpired(now) {
		a.State = ApprovalExpired
	}
	return a
}

// ShownHash returns the hash of what a person decides on: the call and its preview. A decision that carries it applies
// to exactly that.
func (a Approval) ShownHash() string {
	text, err := json.Marshal([]string{a.ID, a.AgentID, a.Tool, a.ArgsHash, a.ToolVersion, a.Policy, a.Preview})
	if err != nil { // strings always marshal
		panic(err)
	}
	return Hash(text)
}
