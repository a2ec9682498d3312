package reeve

import "time"

// ApprovalState is where an approval stands.
type ApprovalState string

// The states of an approval. All but Pending are final.
const (
	Pending  ApprovalState = "pending"
	Approved ApprovalState = "approved"
	Rejected ApprovalState = "denied"
	Expired  ApprovalState = "expired"
	// approved, but the tool, the policy or the base had changed, or the run had ended, before it ran
	Lapsed ApprovalState = "lapsed"
)

// ApprovalStates lists the states of an approval.
func ApprovalStates() []ApprovalState {
	return []ApprovalState{Pending, Approved, Rejected, Expired, Lapsed}
}

// Approval is a parked call waiting for a person. It is bound to the exact arguments, tool and policy it was asked for,
// and is used once.
type Approval struct {
	ID          string        `json:"id"`
	WorkspaceID string        `json:"workspace_id"`
	OperationID string        `json:"operation_id"`
	CallID      string        `json:"call_id"`
	AgentID     string        `json:"agent_id"`
	Tool        string        `json:"tool"`
	Args        string        `json:"args" doc:"The exact arguments"`
	ArgsHash    string        `json:"args_hash"`
	ToolVersion string        `json:"tool_version"`
	Policy      string        `json:"policy"`
	Why         string        `json:"why" doc:"Why it was asked for"`
	Reason      string        `json:"reason,omitempty" doc:"The caller's reason"`
	Preview     string        `json:"preview,omitempty" doc:"What it would change, where the tool can say"`
	State       ApprovalState `json:"state"`
	DecidedBy   string        `json:"decided_by,omitempty"`
	Comment     string        `json:"comment,omitempty"`
	DecidedAt   *time.Time    `json:"decided_at,omitempty"`
	ExpiresAt   time.Time     `json:"expires_at"`
	CreatedAt   time.Time     `json:"created_at"`
}

// HasExpired tells whether nobody has answered an approval and its time is over at a moment.
func (a Approval) HasExpired(now time.Time) bool {
	return a.State == Pending && !a.ExpiresAt.After(now)
}

// AsOf is the approval as it stands at a moment: one whose time is over has expired, though that may not be written
// down yet.
func (a Approval) AsOf(now time.Time) Approval {
	if a.HasExpired(now) {
		a.State = Expired
	}
	return a
}
